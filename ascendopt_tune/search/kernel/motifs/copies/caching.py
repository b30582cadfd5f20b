"""What L2 keeps: inputs that are read once leave it to the results.

Only all inputs at once. Results past L2, or one input of several, gain where a launch is repeated on the same tensors,
as it is when it is measured: the other inputs are in L2 from the launch before. In a model they would not be.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...reading.api import COPY, root
from ...reading.kernel_program import ApiCall, KernelProgram
from ..motif import Change, Motif

_HINT = "SetL2CacheHint"
_PAST = "CacheMode::CACHE_MODE_DISABLE"
# By the scalar unit's own cache, or with a hint already.
_OTHERWISE = frozenset(["GetValue", "SetValue", "SetL2CacheHint"])


def _tensors(kernel: KernelProgram) -> dict[str, list[ApiCall]]:
    """Tensors in global memory without a hint that only copies touch, each with what says where it lies."""
    found: dict[str, list[ApiCall]] = {}
    for c in kernel.named("SetGlobalBuffer"):
        if c.receiver and c.statement is not None:
            found.setdefault(root(c.receiver), []).append(c)
    other = {root(c.receiver) for c in kernel.calls if c.receiver and c.name in _OTHERWISE}
    whole = {n for n, calls in found.items() if all(c.receiver.removeprefix("this->") == n for c in calls)}
    return {name: calls for name, calls in found.items() if name in whole - other}


def _directions(kernel: KernelProgram) -> tuple[set[str], set[str]]:
    """Names of what copies read, and of what they write."""
    copies = [c for c in kernel.calls if c.name in COPY and len(c.args) > 1]
    return {root(c.args[1]) for c in copies}, {root(c.args[0]) for c in copies}


def _past_l2(kernel: KernelProgram, inputs: dict[str, list[ApiCall]]) -> Change:
    edits = [
        kernel.after(c.path, c.statement, f"{c.receiver}.{_HINT}(AscendC::{_PAST});")
        for calls in inputs.values()
        for c in calls
        if c.statement is not None
    ]
    return Change("inputs", f"read past L2: {', '.join(inputs)}", tuple(edits))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    read, written = _directions(kernel)
    inputs = {name: calls for name, calls in _tensors(kernel).items() if name in read - written}
    if inputs:
        yield _past_l2(kernel, inputs)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for c in kernel.named(_HINT):
        if c.statement is not None and any(_PAST in a for a in c.args):
            edit = kernel.delete(c.path, c.statement)
            yield Change(kernel.site(c.function, c.statement), f"{c.receiver} through L2", (edit,))


CACHE_HINT = Motif(
    name="cache-hint",
    title="Inputs that are read once, past L2",
    description="Where a launch moves more than L2 holds, inputs that come once push the results out of it. "
    "SetL2CacheHint(CACHE_MODE_DISABLE) reads them past L2, which is left to the results.",
    bottlenecks=("L2 misses",),
    preconditions="A launch moves more than L2 holds; no core reads what another one, or it itself, has read.",
    faster=_faster,
    slower=_slower,
    together="no",
    beyond_l2=True,
)
