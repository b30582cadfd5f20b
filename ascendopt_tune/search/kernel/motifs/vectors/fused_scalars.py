"""A product and a sum of which one operand, or both, is a scalar: FusedMulAdd, with the scalar as a block of 32 bytes.

AscendC has one instruction for a tensor times a tensor plus a tensor (FusedMulAdd), and for a tensor times a scalar
added to a tensor (Axpy), but none that adds a scalar to a product, or a tensor to a product it overwrites: the steps of
a polynomial, ``x * scale + bias``. A block that every repeat reads again (stride 0) makes the scalar a tensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.api import root
from ...reading.classes import merged, unused, with_member
from ...reading.declared import local_types
from ...reading.kernel_program import ApiCall, KernelProgram, Where, where
from ...reading.room import room
from ..motif import Change, Motif
from .pairs import Neighbours, dead_behind, floats, one_for, pairs

_CLASS_NAME = "FusedScalars"
_MEMBER = "fusedScalars"
_CLASS = f"""\
#ifndef FUSED_SCALARS
#define FUSED_SCALARS
// Scalars as blocks of 32 bytes, which every repeat of an instruction reads again.
template <uint32_t COUNT>
class {_CLASS_NAME} {{
 public:
  // A block of one value, written once.
  template <typename T, typename V>
  __aicore__ inline AscendC::LocalTensor<T> Kept(const AscendC::LocalTensor<T>& like, uint32_t i, V value) {{
    if (!kept[i]) {{
      kept[i] = true;
      return Anew(like, i, value);
    }}
    return memory.template Get<T>()[i * (32 / sizeof(T))];
  }}
  // A block of a value that isn't the same each time.
  template <typename T, typename V>
  __aicore__ inline AscendC::LocalTensor<T> Anew(const AscendC::LocalTensor<T>&, uint32_t i, V value) {{
    if (!made) {{
      AscendC::GetTPipePtr()->InitBuffer(memory, COUNT * 32);
      made = true;
    }}
    const AscendC::LocalTensor<T> block = memory.template Get<T>()[i * (32 / sizeof(T))];
    AscendC::Duplicate(block, static_cast<T>(value), static_cast<int32_t>(32 / sizeof(T)));
    fresh = true;
    return block;
  }}
  // y = y * x + scalar
  template <typename T>
  __aicore__ inline void PlusScalar(const AscendC::LocalTensor<T>& y, const AscendC::LocalTensor<T>& x,
                                    const AscendC::LocalTensor<T>& scalar, uint64_t count) {{
    Fuse(y, x, scalar, count, AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 0));
  }}
  // y = y * scalar + x
  template <typename T>
  __aicore__ inline void TimesScalar(const AscendC::LocalTensor<T>& y, const AscendC::LocalTensor<T>& scalar,
                                     const AscendC::LocalTensor<T>& x, uint64_t count) {{
    Fuse(y, scalar, x, count, AscendC::BinaryRepeatParams(1, 0, 1, 8, 0, 8));
  }}
  // y = y * scale + bias
  template <typename T>
  __aicore__ inline void ScaleAndAdd(const AscendC::LocalTensor<T>& y, const AscendC::LocalTensor<T>& scale,
                                     const AscendC::LocalTensor<T>& bias, uint64_t count) {{
    Fuse(y, scale, bias, count, AscendC::BinaryRepeatParams(1, 0, 0, 8, 0, 0));
  }}

 private:
  template <typename T>
  __aicore__ inline void Fuse(const AscendC::LocalTensor<T>& y, const AscendC::LocalTensor<T>& a,
                              const AscendC::LocalTensor<T>& b, uint64_t count,
                              const AscendC::BinaryRepeatParams& strides) {{
    if (count == 0) return;
    if (fresh) AscendC::PipeBarrier<PIPE_V>();
    fresh = false;
    AscendC::SetMaskCount();
    AscendC::SetVectorMask<T, AscendC::MaskMode::COUNTER>(0, count);
    AscendC::FusedMulAdd<T, false>(y, a, b, AscendC::MASK_PLACEHOLDER, 1, strides);
    AscendC::SetMaskNorm();
    AscendC::ResetMask();
  }}

  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;
  bool made = false, fresh = false;  // whether there is memory; whether somebody has to wait for a block
  bool kept[COUNT] = {{}};
}};
#endif

"""

_ROOM = 1024  # bytes: 32 scalars
_CAST = re.compile(r"^(?:static_cast<[^<>]*>\((.*)\)|\(\s*\w+\s*\)\s*(.+)|-\s*(.+)|\(([^()]*)\)|float\(([^()]*)\))$")
_LITERAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*")
_VALUE = rf"\(?\s*(?:\(\w+\)\s*)?{_LITERAL.pattern}\s*\)?"
_NAMED = re.compile(
    rf"\bconst(?:expr)?\b[^;={{}}()]*\b(\w+)\s*=\s*({_VALUE})\s*;|#[ \t]*define[ \t]+(\w+)[ \t]+({_VALUE})[ \t]*$",
    re.MULTILINE,
)
_ALIAS = re.compile(r"\bLocalTensor\s*<[^<>;]+>\s*&\s*(\w+)\s*=\s*(\w+)\s*;")


@dataclass(frozen=True)
class _Fused:
    """A pair that one instruction does; ``y`` is overwritten, ``operands`` follow it, scalars by their place."""

    pair: Neighbours
    form: str  # the method of the class above
    y: str
    operands: tuple[str, ...]
    scalars: tuple[int, ...]  # which of the operands are scalars

    @property
    def count(self) -> str:
        return self.pair.first.args[3]


def _found(kernel: KernelProgram) -> dict[Where, list[_Fused]]:
    """By function, what can be fused there; functions of no class have nowhere to keep blocks."""
    out: dict[Where, list[_Fused]] = {}
    for pair in pairs(kernel):
        f = pair.block.function
        fused = _fused(kernel, pair)
        if fused is not None and kernel.class_node(f) is not None and floats(kernel, pair.second):
            out.setdefault(where(f), []).append(fused)
    return out


def _fused(kernel: KernelProgram, pair: Neighbours) -> _Fused | None:
    a, b = pair.first, pair.second
    if len(a.args) != 4 or len(b.args) != 4 or a.args[3] != b.args[3] or a.name not in ("Mul", "Muls"):
        return None
    same = _aliases(kernel, a.function)
    y, product, target = (same.get(name, name) for name in (a.args[1], a.args[0], b.args[0]))
    factor = a.args[2]
    if a.name == "Mul" and y != product:
        y, factor = same.get(a.args[2], a.args[2]), a.args[1]
    held = a.args[0] if product == y else b.args[0]
    if y != target or (product != y and not dead_behind(kernel, pair)):
        return None
    if b.name == "Adds" and same.get(b.args[1], b.args[1]) == product:
        if a.name == "Muls":
            return _Fused(pair, "ScaleAndAdd", held, (factor, b.args[2]), (0, 1))
        if same.get(factor, factor) != y:
            return _Fused(pair, "PlusScalar", held, (factor, b.args[2]), (1,))
    terms = [t for t in b.args[1:3] if same.get(t, t) != product]
    if b.name == "Add" and a.name == "Muls" and len(terms) == 1:
        return _Fused(pair, "TimesScalar", held, (factor, terms[0]), (0,))
    if b.name == "Sub" and a.name == "Muls" and terms == [b.args[1]]:  # from something else, not something else from it
        return _Fused(pair, "TimesScalar", held, (f"-({factor})", terms[0]), (0,))
    return None


def _aliases(kernel: KernelProgram, f: Function) -> dict[str, str]:
    """Reference -> the tensor it stands for, in the function."""
    return dict(_ALIAS.findall(kernel.text(f.path, f.node)))


def _constants(kernel: KernelProgram) -> dict[str, set[str]]:
    """Name -> the numbers that constants and macros of that name are, in all files."""
    out: dict[str, set[str]] = {}
    for source in kernel.program.files.values():
        for m in _NAMED.finditer(source.data.decode("utf-8", "replace")):
            out.setdefault(m[1] or m[3], set()).add(m[2] or m[4])
    return out


def _constant(kernel: KernelProgram, pair: Neighbours, scalar: str) -> str | None:
    """A name for the scalar's value where it is a number, or stands for one; None where it may change."""
    inner = scalar.strip()
    while (cast := _CAST.match(inner)) is not None:
        inner = next(g for g in cast.groups() if g is not None).strip()
    if _LITERAL.fullmatch(inner):
        return scalar
    if not re.fullmatch(r"[A-Za-z_]\w*", inner):
        return None
    declared = rf"\bconst(?:expr)?\b[^;={{}}()]*\b{inner}\s*=\s*({_VALUE})\s*;"
    defined = rf"#[ \t]*define[ \t]+{inner}[ \t]+({_VALUE})[ \t]*$"
    named = re.compile(f"{declared}|{defined}", re.MULTILINE)
    values = kernel.once(_constants).get(inner, set())
    f = pair.block.function
    here = kernel.text(f.path, f.node)
    if len(re.findall(rf"\b[A-Za-z_]\w*[\s&*]+{inner}\s*[=,;)]", here)) > len(named.findall(here)):
        return None  # a parameter or a variable of that name
    if len(values) == 1:
        return scalar
    block: Node | None = pair.block.node
    while values and block is not None and block != f.node:
        if any(named.search(kernel.text(f.path, n)) for n in block.named_children if n.type == "declaration"):
            return f"{scalar} at {block.start_byte}"
        block = block.parent
    return None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = _found(kernel)
    places = list(enumerate(found.values(), unused(kernel, _MEMBER)))
    edits = {i: _edits(kernel, fused, f"{_MEMBER}{i}") for i, fused in places}
    if len(places) > 1:
        every = merged(e for i, _ in places for e in edits[i])
        count = sum(len(fused) for _, fused in places)
        yield from _with_room(kernel, "all", f"{count} products and sums with scalars, each one instruction", every)
    for i, fused in places:
        f = fused[0].pair.block.function
        change = f"{len(fused)} products and sums with scalars in {f.name}, each one instruction"
        first = fused[0].pair.first.statement
        assert first is not None
        yield from _with_room(kernel, kernel.site(f, first), change, edits[i])


def _with_room(kernel: KernelProgram, site: str, change: str, edits: tuple[Edit, ...]) -> Iterator[Change]:
    """The change, and the same with tiles shorter by what the blocks need."""
    yield Change(site, change, edits)
    shorter = tuple(room(kernel, _ROOM))
    if shorter:
        yield Change(f"{site}/room", f"{change}, tiles shorter by the room", edits, shorter)


def _edits(kernel: KernelProgram, fused: list[_Fused], member: str) -> tuple[Edit, ...]:
    places: dict[tuple[str, ...], int] = {}  # constant of a type, or changing use -> its block
    f = fused[0].pair.block.function
    kinds = local_types([kernel.text(f.path, f.node)])
    edits: list[Edit] = []
    for n, one in enumerate(fused):
        operands = list(one.operands)
        for k in one.scalars:
            constant = _constant(kernel, one.pair, one.operands[k])
            kind = kinds.get(root(one.y), one.y)
            i = places.setdefault((constant, kind) if constant else (f"{n}/{k}",), len(places))
            operands[k] = f"{member}.{'Kept' if constant else 'Anew'}({one.y}, {i}, {one.operands[k]})"
        text = f"{member}.{one.form}({', '.join((one.y, *operands, one.count))})"
        edits += one_for(kernel, one.pair, text)
    declared = f"{_CLASS_NAME}<{len(places)}> {member};"
    return (*edits, *with_member(kernel, f, _CLASS_NAME, _CLASS, declared))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """The two instructions again; the class stays."""
    for call in kernel.named("PlusScalar", "TimesScalar", "ScaleAndAdd"):
        statement = call.statement
        if statement is None or not call.receiver.startswith(_MEMBER) or len(call.args) != 4:
            continue
        y, a, b, n = call.args
        first, second = (_scalar(kernel, call, i) for i in (1, 2))
        product = f"Muls({y}, {y}, {first}, {n})" if first else f"Mul({y}, {y}, {a}, {n})"
        total = f"Adds({y}, {y}, {second}, {n})" if second else f"Add({y}, {y}, {b}, {n})"
        barrier = "" if kernel.auto_sync else " AscendC::PipeBarrier<PIPE_V>();"
        text = f"AscendC::{product};{barrier} AscendC::{total};"
        change = f"{call.name} made two instructions in {call.function.name}"
        yield Change(kernel.site(call.function, statement), change, (kernel.replace(call.path, statement, text),))


def _scalar(kernel: KernelProgram, call: ApiCall, i: int) -> str:
    """The scalar behind an operand that is a block of one, or an empty string."""
    node = call.arguments[i]
    if node.type != "call_expression":
        return ""
    block = kernel.call_at(call.function, node)
    return block.args[2] if block.name in ("Kept", "Anew") and len(block.args) == 3 else ""


FUSED_SCALARS = Motif(
    name="fused-scalars",
    title="A product and a sum with scalars in one instruction",
    description="Muls + Adds, Muls + Add and Mul + Adds that overwrite their product are FusedMulAdd, the scalar a "
    "block of 32 bytes that every repeat reads again (stride 0): the steps of a polynomial, a scale and an offset.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="float or half; UB has room for a block a scalar; rounding between the two is not relied upon.",
    faster=_faster,
    slower=_slower,
    together="no",
    through_calls=True,
)
