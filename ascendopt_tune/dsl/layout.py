"""How a kernel's buffers lie in the Unified Buffer: which are queues, which stay, and how many bytes it all takes.

A transfer goes through a queue. A buffer that is only loaded, and only used where its load is, *is* the queue's tensor;
so is one that is computed and stored at the same place. Every other buffer keeps its place for the whole kernel, and a
transfer from or to it copies (or converts, which has to be anyway) between it and the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .ir import Buffer, DType, Expr, For, If, Kernel, Load, Op, Reduce, Statement, Store, num, reads, walk, writes

ALIGNMENT = 512  # bytes: two repeats of the vector unit, once around its bank groups; comparisons read whole ones
GAP = 256  # bytes between buffers that begin at the first and those that begin at the ninth bank group
ROWS = 4095  # of one transfer (DataCopyPad)
REDUCED_ROW = 2040  # elements of a row that is reduced: 255 blocks, a stride of eight bits
_WORK_API = 16384  # bytes of scratch that Erf is given


@dataclass(frozen=True)
class Queue:
    """``name`` of its tensor; ``bytes`` of one of its buffers; ``into`` the core, or out of it."""

    tensor: str
    dtype: DType
    into: bool
    bytes: Expr


@dataclass(frozen=True)
class Layout:
    """``direct``: buffers that are a queue's tensor, by name. ``kept``: the others. ``scratch``: bytes by purpose:
    ``reduce``, ``mask``, ``fill``, ``api``, ``index`` (0, 1, 2, ...), ``offset``, ``scan``,
    ``columns``."""

    queues: tuple[Queue, ...]
    direct: dict[str, Queue]
    kept: tuple[Buffer, ...]
    scratch: dict[str, Expr]

    def total(self, depth: Expr) -> Expr:
        """Bytes of the Unified Buffer, ``depth`` buffers in every queue."""
        total = num(GAP)
        for q in self.queues:
            total = _sum(total, Expr("*", "int", (q.bytes, depth)))
        for b in self.kept:
            total = _sum(total, buffer_bytes(b))
        for e in self.scratch.values():
            total = _sum(total, e)
        return total


def pitch(b: Buffer) -> Expr:
    """Elements from one row of a tile to the next: rows begin at multiples of 32 bytes."""
    return Expr("align", "int", (b.shape[-1], num(32 // b.dtype.size)))


def elements(b: Buffer) -> Expr:
    """Elements of a buffer, gaps between rows included."""
    return b.shape[0] if len(b.shape) == 1 else Expr("*", "int", (b.shape[0], pitch(b)))


def buffer_bytes(b: Buffer, dtype: DType | None = None) -> Expr:
    """Bytes of a buffer, or of as many elements of another dtype."""
    count = elements(b)
    if dtype is not None and len(b.shape) == 2:  # rows are padded by the dtype they are moved in
        count = Expr(
            "*", "int", (b.shape[0], Expr("align", "int", (b.shape[1], num(32 // min(dtype.size, b.dtype.size)))))
        )
    return _aligned(Expr("*", "int", (count, num((dtype or b.dtype).size))), ALIGNMENT)


def plan(kernel: Kernel, dtypes: dict[str, DType]) -> Layout:
    """The layout of a kernel; ``dtypes`` are those of its tensors."""
    into: dict[str, list[Buffer]] = {}
    out: dict[str, list[Buffer]] = {}
    chosen: dict[str, tuple[str, bool]] = {}
    for b in kernel.buffers.values():
        loads = [s for s in walk(kernel.body) if isinstance(s, Load) and s.buffer == b.name]
        stores = [s for s in walk(kernel.body) if isinstance(s, Store) and s.buffer == b.name]
        for t in {s.tensor for s in loads}:
            into.setdefault(t, []).append(b)
        for t in {s.tensor for s in stores}:
            out.setdefault(t, []).append(b)
        of_queue = _queue_of(kernel, b, dtypes, loads, stores)
        if of_queue is not None:
            chosen[b.name] = of_queue
    queues = {}
    for way, of in ((True, into), (False, out)):
        for t, buffers in of.items():
            size = _largest([buffer_bytes(b, dtypes[t]) for b in buffers])
            queues[t, way] = Queue(t, dtypes[t], way, size)
    direct = {b: queues[key] for b, key in chosen.items()}
    kept = tuple(b for b in kernel.buffers.values() if b.name not in direct)
    return Layout(tuple(queues.values()), direct, kept, _scratch(kernel))


def _queue_of(
    kernel: Kernel, b: Buffer, dtypes: dict[str, DType], loads: list[Load], stores: list[Store]
) -> tuple[str, bool] | None:
    """The queue in which a buffer can lie: its tensor, and whether it comes in; None: it needs a place of its own."""
    tensors, targets = {s.tensor for s in loads}, {s.tensor for s in stores}
    if len(tensors) == 1 and dtypes[next(iter(tensors))] == b.dtype and _only_loaded(kernel, b.name):
        return next(iter(tensors)), True
    if loads or len(targets) != 1 or any(s.atomic for s in stores):
        return None
    target = next(iter(targets))
    return (target, False) if dtypes[target] == b.dtype and _computed_and_stored(kernel, b.name) else None


def ranges(kernel: Kernel, buffer: str) -> Iterator[tuple[tuple[Statement, ...], int, int]]:
    """Where a loaded buffer lives: (the body, the load's place in it, the place behind the last use)."""
    for body in bodies(kernel.body):
        loads = [i for i, s in enumerate(body) if isinstance(s, Load) and s.buffer == buffer]
        for i, end in pairwise([*loads, len(body)]):
            uses = [k for k in range(i + 1, end) if _touches(body[k], buffer)]
            yield body, i, (uses[-1] if uses else i) + 1


def store_ranges(kernel: Kernel, buffer: str) -> Iterator[tuple[tuple[Statement, ...], int, int]]:
    """Where a stored buffer lives: (the body, its first write, its store); ends where that can't be told."""
    for body in bodies(kernel.body):
        first = None
        for i, s in enumerate(body):
            if first is None and writes(s) == buffer and buffer not in reads(s):
                first = i
            if isinstance(s, Store) and s.buffer == buffer and first is not None:
                yield body, first, i
                first = None


def bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """A body and those in it."""
    yield body
    for s in body:
        if isinstance(s, For):
            yield from bodies(s.body)
        elif isinstance(s, If):
            yield from bodies(s.body)
            yield from bodies(s.orelse)


def _touches(s: Statement, buffer: str) -> bool:
    return any(writes(x) == buffer or buffer in reads(x) for x in walk((s,)))


def _only_loaded(kernel: Kernel, buffer: str) -> bool:
    """Whether every use of the buffer follows a load of it in the same body (or in a body within that one)."""
    loads = [s for s in walk(kernel.body) if isinstance(s, Load) and s.buffer == buffer]
    if any(s.other is not None and s.before is None for s in loads):
        return False  # filled by the vector unit first
    covered: list[Statement] = []
    for body, i, end in ranges(kernel, buffer):
        for s in body[i + 1 : end]:
            inner = list(walk((s,)))
            if any(isinstance(x, Load) and x.buffer == buffer for x in inner):
                return False
            covered += inner
    return _all_covered(kernel, buffer, covered, Load) and not _stored(kernel, buffer)


def _computed_and_stored(kernel: Kernel, buffer: str) -> bool:
    """Whether every use of the buffer lies between its first write and its store in one body."""
    covered: list[Statement] = []
    for body, first, store in store_ranges(kernel, buffer):
        for s in body[first : store + 1]:
            inner = list(walk((s,)))
            if s is not body[store] and any(isinstance(x, Store) and x.buffer == buffer for x in inner):
                return False
            covered += inner
    return _all_covered(kernel, buffer, covered, type(None))


def _all_covered(kernel: Kernel, buffer: str, covered: list[Statement], but: type) -> bool:
    known = {id(s) for s in covered}
    of = [s for s in walk(kernel.body) if writes(s) == buffer or buffer in reads(s)]
    return all(isinstance(s, but) or id(s) in known for s in of)


def _stored(kernel: Kernel, buffer: str) -> bool:
    return any(isinstance(s, Store) and s.buffer == buffer for s in walk(kernel.body))


def _scratch(kernel: Kernel) -> dict[str, Expr]:
    """Scratch of operations, each the largest that one of them needs."""
    need: dict[str, list[Expr]] = {}
    for s in walk(kernel.body):
        if isinstance(s, Reduce):
            first = _results(elements(kernel.buffers[s.src]))  # of blocks of eight, and of blocks of these
            work = Expr("*", "int", (_sum(first, _results(first)), num(4)))
            if s.axis == 1:
                work = Expr("*", "int", (kernel.buffers[s.src].shape[0], num(4)))
            if s.axis == 0:  # half of the rows, which are added to the other half
                half = Expr("ceil_div", "int", (kernel.buffers[s.src].shape[0], num(2)))
                half = Expr("*", "int", (half, pitch(kernel.buffers[s.src])))
                need.setdefault("columns", []).append(_aligned(Expr("*", "int", (half, num(4))), ALIGNMENT))
            else:
                need.setdefault("reduce", []).append(_aligned(work, ALIGNMENT))
        if isinstance(s, Op):
            shape = kernel.buffers[s.dst]
            if s.name.startswith("where_"):
                need.setdefault("mask", []).append(
                    _aligned(Expr("ceil_div", "int", (elements(shape), num(8))), ALIGNMENT)
                )
            if s.name in ("take", "gather") or s.name.startswith("cum"):
                for purpose in ("index", "offset") if s.name != "gather" else ("offset",):
                    need.setdefault(purpose, []).append(buffer_bytes(shape))
            if s.name.startswith("cum"):  # with eight neutral elements at an end
                count = Expr("+", "int", (Expr("align", "int", (elements(shape), num(8))), num(8)))
                need.setdefault("scan", []).append(_aligned(Expr("*", "int", (count, num(4))), ALIGNMENT))
            if s.name == "erf":
                need.setdefault("api", []).append(num(_WORK_API))
            for _ in range(fills(s)):
                need.setdefault("fill", []).append(buffer_bytes(shape))
    return {purpose: _largest(sizes) for purpose, sizes in need.items()}


def _results(count: Expr) -> Expr:
    """Elements that a reduction by blocks leaves of so many, whole repeats."""
    return _aligned(Expr("*", "int", (Expr("ceil_div", "int", (count, num(64))), num(8))), 64)


def fills(s: Op) -> int:
    """How many scalars of an operation have to become tiles first (0 or 1): the device has no such form."""
    scalar = [isinstance(a, Expr) for a in s.args]
    if s.name in ("sigmoid", "tanh", "reciprocal", "rsqrt"):
        return 1
    if s.name == "div":
        return int(scalar[1] or scalar[0])
    if s.name.startswith("where_"):
        return int(scalar[2])
    return 0


def _largest(of: list[Expr]) -> Expr:
    distinct = list(dict.fromkeys(of))
    return distinct[0] if len(distinct) == 1 else Expr("max", "int", tuple(distinct))


def _aligned(e: Expr, to: int) -> Expr:
    return Expr("align", "int", (e, num(to)))


def _sum(a: Expr, b: Expr) -> Expr:
    return b if a == num(0) else Expr("+", "int", (a, b))
