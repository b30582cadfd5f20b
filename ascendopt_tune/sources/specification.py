"""What an operator's results are judged by, besides its sources. What was judged by something else is no answer."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

from ..nouns.operator import Operator

_SETTINGS = ("domain", "initial", "in_place", "specials", "tolerance")  # of op.toml


def specification(operator: Operator) -> str:
    """A name of the operator's input domains, initial values, tolerances and reference: equal names, equal judgement.

    Comments and layout of the reference's file don't count.

    Raises:
        OSError: the reference's file can't be read.
    """
    settings = {name: operator.settings[name] for name in _SETTINGS if name in operator.settings}
    text = json.dumps([settings, _reference(operator.reference)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _reference(function: Any) -> str:
    """The text that computes expected outputs; the name of a function that has none."""
    if function is None:
        return ""
    file = getattr(function, "file", None)
    if isinstance(file, Path):
        return _parsed(file.read_text(encoding="utf-8"))
    try:
        return _parsed(inspect.getsource(function))
    except (OSError, TypeError):
        return str(getattr(function, "__qualname__", type(function).__qualname__))


def _parsed(text: str) -> str:
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except SyntaxError:  # said where it is called
        return text
