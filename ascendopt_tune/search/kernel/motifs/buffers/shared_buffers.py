"""TBufs that are parts of one: each InitBuffer costs the scalar unit time before the first copy is issued.

1. Members of type TBuf in the Unified Buffer of which nothing is asked but tensors (Get, GetWithOffset, AllocTensor,
   FreeTensor), by the methods of their class and of those derived from it.
2. Where several are made one behind the other, one InitBuffer makes room for all of them, and each is told its part.
   What stands between must touch none of them, nor change their lengths.
3. So with rings (queues.py) of the Unified Buffer, each of which makes a TBuf for its buffers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.classes import Members, family_members, in_front, members, title_of
from ...reading.kernel_program import ApiCall, KernelProgram, siblings
from ..motif import Change, Motif
from .queues import RING_CLASS, RINGS, SHARED_RING

SHARED = "SharedBuffer"  # their class
_ASKED = ("Get", "GetWithOffset", "AllocTensor", "FreeTensor")
_DECLARED = re.compile(r"(?:AscendC::)?TBuf\s*<\s*(?:(?:\w+::)*(?:VECCALC|VECIN|VECOUT)\s*)?>")
_OURS = re.compile(SHARED)
_WORD = re.compile(r"[A-Za-z_]\w*")
_SET = re.compile(r"([A-Za-z_]\w*)\s*(?:[-+*/%|&]|<<|>>)?=(?!=)|\+\+|--")
_CLASS = f"""\
#ifndef SHARED_BUFFER
#define SHARED_BUFFER
// A part of a TBuf: several are made by one InitBuffer.
class {SHARED} {{
 public:
  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;  // of all, in the first one
  __aicore__ static inline uint32_t Bytes() {{ return 0; }}
  template <typename... REST>
  __aicore__ static inline uint32_t Bytes(uint32_t first, REST... rest) {{
    return (first + 31) / 32 * 32 + Bytes(rest...);
  }}
  template <typename WHOLE>
  __aicore__ static inline void Place(WHOLE&, uint32_t) {{}}
  template <typename WHOLE, typename PART, typename... REST>
  __aicore__ static inline void Place(WHOLE& whole, uint32_t at, PART& first, uint32_t bytes, REST&&... rest) {{
    bytes = (bytes + 31) / 32 * 32;
    first.Within(whole.template GetWithOffset<uint8_t>(bytes, at), bytes);
    Place(whole, at + bytes, rest...);
  }}
  __aicore__ inline void Within(const AscendC::LocalTensor<uint8_t>& given, uint32_t) {{ part = given; }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Get() {{
    return part.template ReinterpretCast<T>();
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Get(uint32_t size) {{
    return GetWithOffset<T>(size, 0);
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> GetWithOffset(uint32_t size, uint32_t at) {{
    AscendC::LocalTensor<T> found = part[at].template ReinterpretCast<T>();
    found.SetSize(size);
    return found;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    return Get<T>();
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {{}}

 private:
  AscendC::LocalTensor<uint8_t> part;
}};
#endif

"""


@dataclass(frozen=True)
class _Run:
    """Statements of one block that make buffers, with nothing between that needs them one by one."""

    function: Function
    calls: tuple[ApiCall, ...]


def _name(expression: str) -> str:
    return expression.removeprefix("this->")


@dataclass(frozen=True)
class _Family:
    """A class with those derived from it: its lines of TBufs, and what makes them."""

    lines: tuple[Members, ...]
    runs: tuple[_Run, ...]


def _found(kernel: KernelProgram) -> Iterator[_Family]:
    by_owner: dict[str, list[Members]] = {}
    methods: dict[str, list[Function]] = {}
    for of_type in (_DECLARED, RINGS) if _has_rings_as_written(kernel) else (_DECLARED,):
        for line, once, own in family_members(kernel, of_type):
            if line.names and once == frozenset(line.names) and (of_type is _DECLARED or "VEC" in line.found[1]):
                by_owner.setdefault(title_of(kernel, line), []).append(line)
                methods[title_of(kernel, line)] = own
    for owner, lines in by_owner.items():
        family = _of_one(kernel, lines, methods[owner])
        if any(len(r.calls) > 1 for r in family.runs):
            yield family


def _has_rings_as_written(kernel: KernelProgram) -> bool:
    """Whether the rings' class is the text that is made one of parts; other motifs change it, too (bank-groups)."""
    return any(RING_CLASS.encode() in source.data for source in kernel.program.files.values())


def _is_ring(line: Members) -> bool:
    return line.found.re is RINGS


def _of_one(kernel: KernelProgram, lines: Iterable[Members], methods: Iterable[Function]) -> _Family:
    calls = [c for f in methods for c in kernel.calls_in(f)]
    made = [c for c in calls if c.name in ("InitBuffer", "Begin") and len(c.args) == 2 and c.statement is not None]
    rings = {n for line in lines if _is_ring(line) for n in line.names}
    fit = rings | _plain(kernel, methods, calls, made)
    kept = tuple(line for line in lines if fit.issuperset(line.names))
    names = {n for line in kept for n in line.names}
    chosen = [c for c in made if _made_by(c) in names and (_made_by(c) in rings) == (c.name == "Begin")]
    return _Family(kept, tuple(r for f in methods for r in _runs(kernel, f, chosen)))


def _plain(
    kernel: KernelProgram, methods: Iterable[Function], calls: Iterable[ApiCall], made: Iterable[ApiCall]
) -> set[str]:
    """Names of what is made and asked for tensors, and for nothing else."""
    words = Counter(w for f in methods for w in _WORD.findall(kernel.text(f.path, f.node)))
    asked = Counter(_name(c.receiver) for c in calls if c.name in _ASKED)
    begun = Counter(map(_made_by, made))
    return {n for n in begun if words[n] == asked[n] + begun[n]}


def _made_by(call: ApiCall) -> str:
    """The buffer, or the ring, that a call makes: ``pipe.InitBuffer(buffer, bytes)``, ``ring.Begin(count, bytes)``."""
    return _name(call.receiver if call.name == "Begin" else call.args[0])


def _part(call: ApiCall) -> tuple[str, str]:
    """(what gets the part, its bytes)."""
    if call.name == "InitBuffer":
        return call.args[0], f"static_cast<uint32_t>({call.args[1]})"
    count, length = (f"static_cast<uint32_t>({a})" for a in call.args)
    return f"{call.receiver}.Of({call.args[0]})", f"{count} * (({length} + 31) / 32 * 32)"


def _runs(kernel: KernelProgram, f: Function, made: list[ApiCall]) -> Iterator[_Run]:
    mine = {
        c.statement.start_byte: c
        for c in made
        if c.function.node.start_byte == f.node.start_byte and c.path == f.path
        if c.statement is not None
    }
    seen: set[int] = set()
    for start, call in sorted(mine.items()):
        if start in seen or call.statement is None:
            continue
        run: list[ApiCall] = []
        block = call.statement.parent
        around = siblings(call.statement) if block is not None and block.type == "compound_statement" else []
        for node in around or [call.statement]:
            here = mine.get(node.start_byte)
            if here is not None and node.start_byte not in seen and node.start_byte >= start:
                run.append(here)
                seen.add(node.start_byte)
            elif run and _between(kernel.text(f.path, node), run):
                break
        yield _Run(f, tuple(run))


def _between(text: str, run: list[ApiCall]) -> bool:
    """May the buffers of the run not be made behind this statement?"""
    lengths = {w for c in run for w in _WORD.findall(c.args[1])}
    names = {_made_by(c) for c in run}
    if names & set(_WORD.findall(text)):
        return True
    return any(m[1] in lengths or not m[1] for m in _SET.finditer(text))


def _made(kernel: KernelProgram, run: _Run) -> Iterator[Edit]:
    path = run.function.path
    for call in run.calls[:-1]:
        assert call.statement is not None
        yield kernel.delete(path, call.statement)
    last = run.calls[-1].statement
    assert last is not None
    pipes = [kernel.text(path, c.node).partition("InitBuffer")[0] for c in run.calls if c.name == "InitBuffer"]
    pipe = pipes[0] if pipes else "AscendC::GetTPipePtr()->"
    first, parts = run.calls[0], list(map(_part, run.calls))
    memory = f"{first.receiver if first.name == 'Begin' else first.args[0]}.memory"
    text = f"{pipe}InitBuffer({memory}, {SHARED}::Bytes({', '.join(length for _, length in parts)}));"
    listed = ", ".join(f"{part}, {length}" for part, length in parts)
    text += f"\n{kernel.indent(path, last)}{SHARED}::Place({memory}, 0, {listed});"
    plain = last.parent is not None and last.parent.type == "compound_statement"
    yield kernel.replace(path, last, text if plain else f"{{ {text} }}")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for family in _found(kernel):
        edits = list[Edit]()
        for line in family.lines:
            if not _is_ring(line):
                edits.append(kernel.replace(line.path, line.type, SHARED))
            written = in_front(kernel, line.path, line.node, SHARED, _CLASS)
            if written is not None and not any(e.path == written.path and e.text == _CLASS for e in edits):
                edits.append(written)
        for run in family.runs:
            edits += _made(kernel, run)
        if any(map(_is_ring, family.lines)):
            edits += _rings_of_parts(kernel)
        count = max(len(r.calls) for r in family.runs)
        owner = title_of(kernel, family.lines[0])
        yield Change(f"{owner}/buffers", f"{count} buffers of {owner} are parts of one", tuple(edits))


def _rings_of_parts(kernel: KernelProgram) -> Iterator[Edit]:
    """The rings' class, wherever it stands, made one whose buffers may be parts of others' memory."""
    for path, source in kernel.program.files.items():
        at = source.data.find(RING_CLASS.encode())
        for old, new in SHARED_RING if at >= 0 else ():
            begin = at + RING_CLASS.encode().index(old.encode())
            yield Edit(path, begin, begin + len(old.encode()), new)


def _placed(kernel: KernelProgram) -> Iterator[tuple[ApiCall, Node, Node]]:
    """(call that places parts, its statement, the one in front, which makes their room)."""
    for f in kernel.functions:
        for call in kernel.calls_in(f):
            before = call.statement.prev_named_sibling if call.statement is not None else None
            if call.name == "Place" and len(call.args) > 3 and call.statement is not None and before is not None:
                yield call, call.statement, before


def _alone(pipe: str, part: str, length: str) -> str:
    ring = re.fullmatch(r"(.+)\.Of\((.*)\)", part, re.DOTALL)
    return f"{ring[1]}.Begin({ring[2]}, ({length}) / ({ring[2]}));" if ring else f"{pipe}InitBuffer({part}, {length});"


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """TBufs again, each made by itself; the class stays."""
    edits: list[Edit] = []
    for line in members(kernel, _OURS):
        edits.append(kernel.replace(line.path, line.type, "TBuf<TPosition::VECCALC>"))
    for call, placed, room in _placed(kernel):
        pipe = kernel.text(call.path, room).partition("InitBuffer")[0]
        pairs = zip(call.args[2::2], call.args[3::2], strict=True)
        edits += [
            kernel.delete(call.path, room),
            kernel.replace(call.path, placed, " ".join(_alone(pipe, part, length) for part, length in pairs)),
        ]
    if edits:
        yield Change("buffers", "every TBuf made by itself", tuple(edits))


SHARED_BUFFERS = Motif(
    name="shared-buffers",
    title="One InitBuffer for many buffers",
    description="Each InitBuffer takes the scalar unit some tens of cycles before the first copy is issued. TBufs, and "
    "rings of buffers, that are made one behind the other are parts of one.",
    bottlenecks=("launch", "scalar"),
    preconditions="Nothing but tensors is asked of the buffers; they are made side by side.",
    faster=_faster,
    slower=_slower,
    together="behind",
)
