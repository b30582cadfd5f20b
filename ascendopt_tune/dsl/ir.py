"""What a program of the tile language is once it is read: host, kernel, and some fifteen kinds of nodes.

Scalars are expressions (:class:`Expr`), tiles are named buffers in the Unified Buffer. Every statement keeps the line
it was written on; every message of the reader, the interpreter and the lowering names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

Number = int | float


@dataclass(frozen=True)
class DType:
    """A dtype of the language: its name (torch's), numpy's, AscendC's and CANN's, and bytes an element."""

    name: str
    numpy: str
    cpp: str
    ge: str
    size: int

    @property
    def floating(self) -> bool:
        return self.name.startswith(("float", "bfloat"))


DTYPES = {
    d.name: d
    for d in (
        DType("float32", "float32", "float", "DT_FLOAT", 4),
        DType("float16", "float16", "half", "DT_FLOAT16", 2),
        DType("bfloat16", "bfloat16", "bfloat16_t", "DT_BF16", 2),
        DType("int32", "int32", "int32_t", "DT_INT32", 4),
        DType("int64", "int64", "int64_t", "DT_INT64", 8),
        DType("uint8", "uint8", "uint8_t", "DT_UINT8", 1),
        DType("bool", "bool", "uint8_t", "DT_BOOL", 1),
    )
}
FLOAT32, INT32 = DTYPES["float32"], DTYPES["int32"]

ScalarType = Literal["int", "float", "bool"]


@dataclass(frozen=True)
class Expr:
    """A scalar: ``op`` with its arguments. ``num`` and ``var`` hold ``value``; ``dim`` and ``numel`` a tensor's name,
    ``extract`` a buffer's."""

    op: str
    type: ScalarType
    args: tuple[Expr, ...] = ()
    value: Number | str = 0

    def walk(self) -> Iterator[Expr]:
        """The expression and everything in it."""
        yield self
        for a in self.args:
            yield from a.walk()

    def variables(self) -> set[str]:
        return {str(e.value) for e in self.walk() if e.op == "var"}

    def substitute(self, by: dict[str, Expr]) -> Expr:
        """With other expressions in place of variables."""
        if self.op == "var":
            return by.get(str(self.value), self)
        return replace(self, args=tuple(a.substitute(by) for a in self.args))


def num(value: Number) -> Expr:
    return Expr("num", "float" if isinstance(value, float) else "int", (), value)


def var(name: str, type: ScalarType = "int") -> Expr:
    return Expr("var", type, (), name)


@dataclass(frozen=True)
class Region:
    """Elements of a tensor: ``count`` from ``offset``; with ``rows`` that many times, ``stride`` elements apart."""

    offset: Expr
    count: Expr
    rows: Expr | None = None
    stride: Expr | None = None


@dataclass(frozen=True)
class Buffer:
    """A buffer of the Unified Buffer: ``shape`` is its capacity in elements, one or two axes."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    line: int


@dataclass(frozen=True)
class Statement:
    line: int


@dataclass(frozen=True)
class Let(Statement):
    name: str
    value: Expr


@dataclass(frozen=True)
class For(Statement):
    """``var`` from ``start`` to below ``stop`` in steps of ``step``."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class If(Statement):
    test: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class Load(Statement):
    """From a tensor into a buffer, converted to its dtype. With ``other`` the rest of the buffer is filled with it.

    With ``before`` and ``after`` so many elements of ``other`` lie at the ends of what is loaded, and no more.
    """

    tensor: str
    region: Region
    buffer: str
    other: Expr | None
    before: Expr | None = None
    after: Expr | None = None


@dataclass(frozen=True)
class Store(Statement):
    """From a buffer to a tensor, converted to its dtype; ``atomic`` is ``add``, ``max`` or ``min``, or nothing."""

    tensor: str
    region: Region
    buffer: str
    atomic: str = ""


@dataclass(frozen=True)
class Op(Statement):
    """A vector operation: ``name`` of ops.OPS; operands are buffers by name or scalars.

    ``fill`` may have a second one: how many elements, where that is fewer than the buffer holds.
    """

    name: str
    dst: str
    args: tuple[str | Expr, ...]


@dataclass(frozen=True)
class Reduce(Statement):
    """``name`` is sum, max or min. ``axis``: None for everything to one element, 0 over rows, 1 along rows."""

    name: str
    dst: str
    src: str
    axis: int | None


@dataclass(frozen=True)
class Insert(Statement):
    """One element of a buffer is set."""

    buffer: str
    index: Expr
    value: Expr


@dataclass(frozen=True)
class Sync(Statement):
    """All cores meet."""


@dataclass(frozen=True)
class Kernel:
    """``parameters``: names in order; those in ``tensors`` are global memory, the others scalars."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    buffers: dict[str, Buffer]
    tensors: frozenset[str]
    line: int


@dataclass(frozen=True)
class Tensor:
    """A tensor of the host function: ``shape`` None for an input, whose shape the caller decides."""

    name: str
    dtype: DType
    kind: Literal["input", "output", "workspace"]
    shape: tuple[Expr, ...] | None
    line: int


@dataclass(frozen=True)
class Attribute:
    name: str
    type: ScalarType
    default: Number


#: The knob that says how many buffers a queue has; without it there are two, or as many as have an event id.
BUFFERS = "BUFFER_NUM"
#: From one pipe to another (AscendC reference, SetFlag). A queue's buffer that is free, or filled, holds one.
EVENT_IDS = 8


@dataclass(frozen=True)
class Knob:
    """A named number that the tuner may move."""

    name: str
    variable: str
    default: int
    limit: Expr | None  # the value is the smaller of the knob and this
    why: str
    line: int


@dataclass(frozen=True)
class Check:
    """``assert`` of the host function."""

    test: Expr
    text: str
    line: int


@dataclass(frozen=True)
class Host:
    """``steps`` in order: variables, checks and knobs. ``ranks``: the rank an input must have, where the text says."""

    name: str
    tensors: dict[str, Tensor]
    attributes: dict[str, Attribute]
    steps: tuple[Let | Check | Knob, ...]
    ranks: dict[str, tuple[int, int]]  # rank, line
    cores: Expr
    arguments: tuple[str | Expr, ...]  # of the launch, in the order of the kernel's parameters
    line: int
    doc: str = ""


@dataclass(frozen=True)
class Program:
    """A host function and the kernel it launches; ``text`` is the user's file."""

    host: Host
    kernel: Kernel
    file: str
    text: str = field(repr=False, default="")

    @property
    def queues(self) -> int:
        """Tensors that are loaded, or stored, whichever are more: each has a queue."""
        moved = [s for s in walk(self.kernel.body) if isinstance(s, (Load, Store))]
        return max(len({s.tensor for s in moved if isinstance(s, kind)}) for kind in (Load, Store))

    @property
    def buffers(self) -> int:
        """Of a queue."""
        chosen = (s.default for s in self.host.steps if isinstance(s, Knob) and s.name == BUFFERS)
        return next(chosen, max(1, min(2, EVENT_IDS // max(1, self.queues))))

    def of_kind(self, kind: str) -> list[Tensor]:
        return [t for t in self.host.tensors.values() if t.kind == kind]

    def tensor_of(self, parameter: str) -> Tensor:
        """The host's tensor behind a parameter of the kernel."""
        return self.host.tensors[str(self.host.arguments[self.kernel.parameters.index(parameter)])]


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, outer ones first."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from walk(s.body)
        elif isinstance(s, If):
            yield from walk(s.body)
            yield from walk(s.orelse)


def scalars(s: Statement) -> Iterator[Expr]:
    """The scalar expressions a statement reads, without those of statements in it."""
    if isinstance(s, (Let, Insert)):
        yield s.value
    if isinstance(s, Insert):
        yield s.index
    if isinstance(s, For):
        yield from (s.start, s.stop, s.step)
    if isinstance(s, If):
        yield s.test
    if isinstance(s, Op):
        yield from (a for a in s.args if isinstance(a, Expr))
    if isinstance(s, (Load, Store)):
        r = s.region
        yield from (e for e in (r.offset, r.count, r.rows, r.stride) if e is not None)
    if isinstance(s, Load):
        yield from (e for e in (s.other, s.before, s.after) if e is not None)


def reads(s: Statement) -> set[str]:
    """The buffers a statement reads, without those of statements in it."""
    found = {str(e.value) for x in scalars(s) for e in x.walk() if e.op == "extract"}
    if isinstance(s, Op):
        found |= {a for a in s.args if isinstance(a, str)}
    if isinstance(s, Reduce):
        found.add(s.src)
    if isinstance(s, Store):
        found.add(s.buffer)
    return found


def writes(s: Statement) -> str | None:
    """The buffer a statement writes."""
    if isinstance(s, (Op, Reduce)):
        return s.dst
    if isinstance(s, Load):
        return s.buffer
    if isinstance(s, Insert):
        return s.buffer
    return None
