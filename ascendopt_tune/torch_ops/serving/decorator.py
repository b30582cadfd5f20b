"""``@aot.tune(...)``: a function on npu tensors whose calls the cache's best pair serves.

The function stays what it was: it serves whatever is not tuned, needs a gradient, or fails.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ...errors import CaseError, OperatorError
from ...nouns.operator import Operator
from ...nouns.run_options import check_option
from ...settings import check_policy
from ..device.dynamo import keep_whole
from .registered import registered

if TYPE_CHECKING:
    from .resolve import Options

F = TypeVar("F", bound=Callable[..., Any])


def tune(
    source: str | Path | Operator,
    *,
    policy: str | None = None,
    returns: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    buckets: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """A decorator: calls with npu tensors are served by the tuned pair of ``source``.

    Parameters are matched to the operator's inputs and attributes by name.

    Args:
        source: ``rms_norm`` or ``registry/rms_norm`` (a registry operator), a folder with ``op_host/`` and
            ``op_kernel/``, or an Operator.
        policy: ``off`` (the original), ``lookup`` (the cache, else the original), ``lazy`` (the original, and tune in
            the background) or ``blocking`` (tune what is missing, then serve it). See policy.py for what goes before
            and after it.
        returns: names of the operator's outputs the function returns, where it doesn't return all.
        names: ``{parameter: operator's name}`` for parameters that are called otherwise.
        buckets: which shapes share a tiling program, see neighbours.py; default: what op.toml says.
        options: how a case is tuned, by name: ``budget`` (evaluations), ``chip``, ``seed``, ``invariant``, ... as in
            docs/options.md; what is not given is what the environment says when a case is first met. On a real NPU
            ``chip`` is the device's own.

    Raises:
        SettingsError: an unknown policy or option.
        CaseError: a value that an option can't have. (An operator that can't be found is logged at the first call, and
            the original serves.)
        OperatorError: ``source`` isn't one of these, or what is decorated is no function whose parameters can be read.
    """
    if not isinstance(source, (str, Path, Operator)) or not name_of(source):
        raise OperatorError(
            "the decorator has the operator's name or folder as its argument"
            + (f", not {source!r}." if not callable(source) else "."),
            'Write @tune("rms_norm") above the function.',
        )
    make = options_of(policy, returns, names, buckets, options)

    def decorate(function: F) -> F:
        from .dispatch import TunedOp

        if isinstance(function, staticmethod):
            return cast(F, staticmethod(decorate(function.__func__)))
        _check_parameters(function)
        op = TunedOp(name_of(source), loader(source), function, make())
        registered.append(op)

        call = functools.update_wrapper(op.function, function, updated=())
        call.tuned = op  # type: ignore[attr-defined]
        keep_whole(call)
        return cast(F, call)

    return decorate


def _check_parameters(function: Any) -> None:
    """Parameters are matched by name. Raises OperatorError where a function's can't be read."""
    if not callable(function):
        raise OperatorError(
            f"{function!r} is decorated, which is no function.",
            "Decorate a function, and call it from the method: operators have neither self nor cls."
            if isinstance(function, classmethod)
            else "",
        )
    if hasattr(function, "_schema") or hasattr(function, "_opoverload") or hasattr(function, "overloads"):
        return  # an operator of torch's
    try:
        inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise OperatorError(
            f"the parameters of {function!r} can't be read, and they are matched to the operator's by name.",
            "Decorate a function that calls it: def f(x, y): ...",
        ) from error


def options_of(
    policy: str | None,
    returns: Sequence[str],
    names: Mapping[str, str] | None,
    buckets: Mapping[str, Sequence[Any]] | None,
    run: Mapping[str, Any],
) -> Callable[[], Options]:
    """Makes the options, once torch may be imported. Raises as :func:`tune`, at once."""
    if isinstance(returns, str) or not all(isinstance(name, str) for name in returns):
        raise CaseError(f"returns = {returns!r} is no list of names.", 'Name outputs in order: returns=["y", "scale"].')
    for what, value, example in (("names", names, '{"weight": "gamma"}'), ("buckets", buckets, '{"x": ["pow2"]}')):
        if value is not None and not isinstance(value, Mapping):
            raise CaseError(f"{what} = {value!r} is no mapping.", f"Write it as {what}={example}.")
    if policy is not None:
        check_policy(policy)
    given = checked(run)

    def make() -> Options:
        from .resolve import Options

        return Options(policy, tuple(returns), dict(names or {}), buckets, given)

    return make


def checked(run: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of a run that are given.

    Raises:
        SettingsError: there is no such option.
        CaseError: a value that it can't have.
    """
    given = {name: value for name, value in run.items() if value is not None}
    for name, value in given.items():
        check_option(name, value)
    return given


def name_of(source: str | Path | Operator) -> str:
    return source.name if isinstance(source, Operator) else str(source)


def loader(source: str | Path | Operator) -> Callable[[], Operator]:
    """Loads the operator a decorator names when it is called; a relative folder is one of now's working folder."""
    from ...sources.registry import rooted

    return functools.partial(load, rooted(source))


def load(source: str | Path | Operator) -> Operator:
    """The operator a decorator names. Raises OperatorError if there is none."""
    from ...sources.registry import operator_of

    return operator_of(source)
