"""``@aot.tune(...)``: a function on npu tensors whose calls the cache's best pair serves.

The function stays what it was: it serves whatever is not tuned, needs a gradient, is traced by torch.compile, or fails.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..operator import Operator
from ..settings import check_policy

if TYPE_CHECKING:
    from .dispatch import TunedOp

F = TypeVar("F", bound=Callable[..., Any])

_tuned: list[TunedOp] = []


def tune(
    source: str | Path | Operator,
    *,
    policy: str | None = None,
    budget: int | None = None,
    chip: str | None = None,
    seed: int = 0,
    returns: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """A decorator: calls with npu tensors are served by the tuned pair of ``source``.

    Parameters are matched to the operator's inputs and attributes by name.

    Args:
        source: ``rms_norm`` or ``registry/rms_norm`` (a registry operator), a folder with ``op_host/`` and
            ``op_kernel/``, or an Operator.
        policy: ``off`` (the original), ``lookup`` (the cache, else the original) or ``blocking`` (tune what is missing,
            then serve it). Default: ``ASCENDOPT_POLICY``, read when a case is first met.
        budget: evaluations per case; default ``ASCENDOPT_BUDGET``.
        chip: default ``ASCENDOPT_CHIP`` on the virtual NPU, the device's own on a real one.
        seed: of inputs and search.
        returns: names of the operator's outputs the function returns, where it doesn't return all.
        names: ``{parameter: operator's name}`` for parameters that are called otherwise.

    Raises:
        SettingsError: an unknown policy. (An operator that can't be found is logged at the first call, and the original
            serves.)
    """
    if policy is not None:
        check_policy(policy)

    def decorate(function: F) -> F:
        from .dispatch import Options, TunedOp

        options = Options(policy, budget, chip, seed, tuple(returns), dict(names or {}))
        name = source.name if isinstance(source, Operator) else str(source)
        op = TunedOp(name, functools.partial(_load, source), function, options)
        _tuned.append(op)

        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            return op(*args, **kwargs)

        call.tuned = op  # type: ignore[attr-defined]
        return cast(F, call)

    return decorate


def _load(source: str | Path | Operator) -> Operator:
    """The operator a decorator names. Raises OperatorError if there is none."""
    from ..registry import load_folder, load_operator, operator_names

    if isinstance(source, Operator):
        return source
    name = str(source).removeprefix("registry/")
    if name not in operator_names() and Path(source).is_dir():
        return load_folder(Path(source))
    return load_operator(name)


def stats() -> dict[str, dict[str, Any]]:
    """Calls of every tuned operator so far: ``hits, kept, misses, tuned, fallbacks {reason: count}`` by its source.

    Operators with the same source are added up.
    """
    total: dict[str, dict[str, Any]] = {}
    for op in _tuned:
        row = total.setdefault(op.name, {"hits": 0, "kept": 0, "misses": 0, "tuned": 0, "fallbacks": {}})
        for count in ("hits", "kept", "misses", "tuned"):
            row[count] += getattr(op.served, count)
        for reason, number in op.served.fallbacks.items():
            if number:
                row["fallbacks"][reason] = row["fallbacks"].get(reason, 0) + number
    return total


def not_modelled() -> dict[str, int]:
    """Calls by operator that torch's CPU kernels served on the virtual NPU: no modelled time stands for them."""
    served = sys.modules.get(f"{__package__}.cpu_call")  # loaded with the virtual NPU's torch_npu
    return dict(served.calls) if served is not None else {}


def status() -> str:
    """Both for people: a line per operator, one per reason why the original served, one for what is not modelled."""
    lines = []
    for name, row in stats().items():
        counts = ", ".join(f"{row[k]} {k}" for k in ("hits", "kept", "misses", "tuned"))
        lines.append(f"{name}: {counts}, {sum(row['fallbacks'].values())} fallbacks")
        lines += [f"  {number} x {reason}" for reason, number in row["fallbacks"].items()]
    lines = lines or ["no tuned operators"]
    if calls := not_modelled():
        lines.append(f"on the CPU, not modelled: {sum(calls.values())} calls of {len(calls)} torch operators")
    return "\n".join(lines)
