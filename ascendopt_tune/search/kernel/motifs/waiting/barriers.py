"""Barriers: one that stops every pipe inside a loop, and one between vector instructions that need none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from .....sources.cpp import Function, walk
from ...reading.api import COPY, VECTOR, depend, is_barrier
from ...reading.counted import CountedLoop, counted_loops
from ...reading.kernel_program import LOOPS, ApiCall, KernelProgram, neighbour, siblings
from ...reading.turn import apart, turn_of
from ..motif import Change, Motif

# A copy pipe needs no barrier of its own either: queues and flags order what its copies touch.
_STOPPING = ("PIPE_ALL", "PIPE_MTE2", "PIPE_MTE3")


def _barriers(kernel: KernelProgram, pipe: str) -> list[ApiCall]:
    """Barriers of the pipe that run again and again."""
    return [c for c in kernel.calls if is_barrier(c, pipe) and c.statement and kernel.repeated(c.function, c.node)]


def _without(kernel: KernelProgram, barriers: list[ApiCall], change: str, site: str) -> Change:
    edits = [kernel.delete(c.path, c.statement) for c in barriers if c.statement is not None]
    return Change(site, change, tuple(edits))


def _around(kernel: KernelProgram, barrier: ApiCall) -> tuple[ApiCall | None, ApiCall | None]:
    """The calls before and behind a barrier in its block; None where something else, or nothing, is there."""
    assert barrier.statement is not None
    before, after = (neighbour(barrier.statement, step) for step in (-1, 1))
    return kernel.call_of(barrier.function, before), kernel.call_of(barrier.function, after)


def _full_faster(kernel: KernelProgram) -> Iterator[Change]:
    found = [c for pipe in _STOPPING for c in _barriers(kernel, pipe)]
    if not found:
        return
    if len(found) > 1:
        yield _without(kernel, found, f"all {len(found)} full barriers inside loops taken out", "all")
    for c in found:
        assert c.statement is not None
        site = kernel.site(c.function, c.statement)
        before, after = _around(kernel, c)
        text = kernel.text(c.path, c.node)
        yield _without(kernel, [c], f"{text} in {c.function.name} taken out", site)
        if (
            not kernel.auto_sync
            and "PIPE_ALL" in text
            and before
            and after
            and before.name in VECTOR
            and after.name in VECTOR
        ):
            weaker = kernel.text(c.path, c.statement).replace("PIPE_ALL", "PIPE_V")
            edit = kernel.replace(c.path, c.statement, weaker)
            yield Change(f"{site}/V", f"PipeBarrier<PIPE_ALL> in {c.function.name} made PIPE_V", (edit,))


def _steps(kernel: KernelProgram, wanted: Callable[[ApiCall], bool]) -> Iterator[tuple[Function, list[Node]]]:
    """By function: the statements of repeated code that are a wanted call."""
    by_function: dict[tuple[str, int], tuple[Function, list[Node]]] = {}
    for c in kernel.calls:
        statement = c.statement
        if statement is None or statement.parent is None or statement.parent.type != "compound_statement":
            continue
        if wanted(c) and kernel.repeated(c.function, c.node):
            by_function.setdefault((c.path, c.function.node.start_byte), (c.function, []))[1].append(statement)
    yield from by_function.values()


def _full_slower(kernel: KernelProgram) -> Iterator[Change]:
    own = {f.name for f in kernel.functions}
    for f, statements in _steps(kernel, lambda c: c.name in own and not c.receiver):
        loops = [n for n in walk(f.body) if n.type in LOOPS]
        steps = [s for s in statements if any(n.start_byte < s.start_byte < n.end_byte for n in loops)]
        steps = [s for s in steps if not _followed(kernel, f, s, "PIPE_ALL")]
        if steps:
            edits = tuple(kernel.after(f.path, s, "PipeBarrier<PIPE_ALL>();") for s in steps)
            yield Change(f"{f.name}/steps", f"PipeBarrier<PIPE_ALL> behind each step of the loop in {f.name}", edits)
    for f, statements in _steps(kernel, lambda c: c.name in VECTOR | COPY):
        steps = [s for s in statements if not _followed(kernel, f, s, "PIPE_ALL")]
        if steps:
            edits = tuple(kernel.after(f.path, s, "PipeBarrier<PIPE_ALL>();") for s in steps)
            yield Change(f"{f.name}/instructions", f"PipeBarrier<PIPE_ALL> behind each instruction of {f.name}", edits)


def _followed(kernel: KernelProgram, f: Function, statement: Node, pipe: str) -> bool:
    call = kernel.call_of(f, neighbour(statement, 1))
    return call is not None and is_barrier(call, pipe)


def _vector_faster(kernel: KernelProgram) -> Iterator[Change]:
    found = [c for c in kernel.calls if is_barrier(c, "PIPE_V") and c.statement]
    if not found:
        return
    needless = [c for c in found if _needless(kernel, c)]
    if kernel.auto_sync and len(found) > len(needless):
        yield _without(kernel, found, f"all {len(found)} PipeBarrier<PIPE_V> left to the compiler", "all")
    if len(needless) > 1:
        change = f"{len(needless)} PipeBarrier<PIPE_V> between independent instructions taken out"
        yield _without(kernel, needless, change, "needless")
    for c in needless:
        assert c.statement is not None
        site = kernel.site(c.function, c.statement)
        yield _without(kernel, [c], f"PipeBarrier<PIPE_V> in {c.function.name} taken out", site)
    for loop in counted_loops(kernel):
        yield from _behind_loop(kernel, loop)


def _behind_loop(kernel: KernelProgram, loop: CountedLoop) -> Iterator[Change]:
    """The barrier that ends each turn of a loop whose turns touch different rows, made one behind the loop."""
    last, turn = loop.block.steps[-1].call if loop.block.steps else None, turn_of(kernel, loop)
    if last is None or last.statement is None or not is_barrier(last, "PIPE_V") or turn is None:
        return
    names, longer, calls = turn
    if longer or any(c.name not in VECTOR for c in calls) or not apart(loop, calls, names):
        return
    f = loop.block.function
    following = kernel.call_of(f, neighbour(loop.node, 1))
    edits = [kernel.delete(f.path, last.statement)]
    if following is None or not is_barrier(following, "PIPE_V"):
        edits.append(kernel.after(f.path, loop.node, kernel.text(f.path, last.statement)))
    site = f"{kernel.site(f, loop.node)}/behind"
    yield Change(site, f"PipeBarrier<PIPE_V> of {f.name} once behind the loop, not in each turn", tuple(edits))


def _needless(kernel: KernelProgram, barrier: ApiCall) -> bool:
    """Is what stands behind the barrier independent of what stands in front of it, by name?"""
    before, after = _around(kernel, barrier)
    if after is not None and (is_barrier(after, "PIPE_V") or is_barrier(after, "PIPE_ALL")):
        return True
    if _ended_by_barriers(kernel, barrier):
        return True
    if before is None or before.name not in VECTOR:
        return False
    assert barrier.statement is not None
    block = siblings(barrier.statement)
    behind = (kernel.call_of(barrier.function, s) for s in block if s.start_byte > barrier.statement.start_byte)
    for call in behind:
        if call is None:
            return False
        if call.name in VECTOR:
            return not depend(before, call)
        if call.name not in ("EnQue", "FreeTensor", "SetFlag", "WaitFlag"):
            return False
    return False


def _ended_by_barriers(kernel: KernelProgram, barrier: ApiCall) -> bool:
    """Does the barrier follow a loop whose turns end with one, and that one precedes, so that no turn needs none?"""
    assert barrier.statement is not None
    loop = neighbour(barrier.statement, -1)
    body = loop.child_by_field_name("body") if loop is not None and loop.type in LOOPS else None
    if loop is None or body is None or not body.named_children:
        return False
    ends = (kernel.call_of(barrier.function, n) for n in (body.named_children[-1], neighbour(loop, -1)))
    return all(c is not None and is_barrier(c, "PIPE_V") for c in ends)


def _vector_slower(kernel: KernelProgram) -> Iterator[Change]:
    for f, statements in _steps(kernel, lambda c: c.name in VECTOR):
        following = [(s, kernel.call_of(f, neighbour(s, 1))) for s in statements]
        bare = [s for s, call in following if call is not None and call.name in VECTOR]
        if bare:
            edits = tuple(kernel.after(f.path, s, "PipeBarrier<PIPE_V>();") for s in bare)
            yield Change(f.name, f"PipeBarrier<PIPE_V> between all vector instructions of {f.name}", edits)


FULL_BARRIER = Motif(
    name="full-barrier",
    title="No full barrier inside a loop",
    description="PipeBarrier<PIPE_ALL> makes every pipe wait for every other one, so nothing of one tile overlaps "
    "with the next. Queues, or the one flag that is needed, order the same accesses; where the compiler "
    "synchronizes, none is needed.",
    bottlenecks=("scalar round trips", "no overlap", "scalar", "vector barriers"),
    preconditions="What the barrier ordered is ordered by a queue, a flag or the compiler's automatic synchronization.",
    faster=_full_faster,
    slower=_full_slower,
    together="auto-sync",
)

VECTOR_BARRIER = Motif(
    name="vector-barrier",
    title="No barrier between independent vector instructions",
    description="PipeBarrier<PIPE_V> holds the next vector instruction back. Between instructions that touch different "
    "bytes it only costs time; where the compiler synchronizes, it finds the pairs that need one.",
    bottlenecks=("vector barriers", "short vector instructions", "vector", "no overlap", "launch"),
    preconditions="The instructions on both sides touch different bytes, or the compiler synchronizes.",
    faster=_vector_faster,
    slower=_vector_slower,
    together="auto-sync",
)
