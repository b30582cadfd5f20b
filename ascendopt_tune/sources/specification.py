"""What an operator's results are judged by, besides its sources. What was judged by something else is no answer."""

from __future__ import annotations

import hashlib
import inspect
import json
import textwrap
from typing import Any

from ..errors import OperatorError
from ..nouns.operator import Operator
from .registry import LazyReference

_SETTINGS = ("domain", "initial", "in_place", "specials", "tolerance")  # of op.toml


def specification(operator: Operator) -> str:
    """A name of the operator's input domains, initial values, tolerances and reference: equal names, equal judgement.

    The reference counts as it is written, as the operator's sources do in the key: what another Python makes of it
    is nobody's change.

    Raises:
        OperatorError: the reference's file can't be read.
    """
    settings = {name: operator.settings[name] for name in _SETTINGS if name in operator.settings}
    text = json.dumps([settings, _reference(operator.reference)], sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _reference(function: Any) -> str:
    """The text that computes expected outputs; the name of a function that has none."""
    if function is None:
        return ""
    if isinstance(function, LazyReference):
        try:
            return function.file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise OperatorError(
                f"{function.file} can't be read: {error}.", "It is the operator's reference."
            ) from error
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return str(getattr(function, "__qualname__", type(function).__qualname__))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)  # an array's text leaves its middle out
