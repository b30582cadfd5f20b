"""Several rows in one turn: one copy in and one out for all of them, and a loop over rows where they are computed.

1. A turn is a counted loop's that calls functions and does nothing else. Some load the counter's row into a queue's
   tensor or store one, in one copy each, and do nothing else; the others compute. Rows lie one behind the other.
2. Loads and stores move as many rows as the turn has. What is computed is called for one row after the other, and gets
   that row's part of a tensor from its queue (``QueueOfRows``), so that its text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import affine, at, resolved
from ...reading.classes import Members, in_front, members
from ...reading.counted import CountedLoop, counted_loops
from ...reading.kernel_program import ApiCall, KernelProgram, flat
from ..motif import Change, Motif
from .queues import MAKE, RING

QUEUE = "QueueOfRows"  # their class
_ROWS, _ROW = "rowsOfTurn", "rowInTurn"
_MANY = (8, 4, 16)  # rows a turn that are offered; the gate says what fits
_TENSOR = re.compile(
    r"(?:(?:AscendC::)?LocalTensor<[^;=]*>|auto)\s+(\w+)\s*=\s*((?:this->)?\w+)\s*\.\s*(?:template\s+)?"
    r"(AllocTensor|DeQue)\s*<([^;=()]*)>\s*\(\s*\)\s*;"
)
_PARAMS = re.compile(r"(?:AscendC::)?DataCopy(?:Ext)?Params\s+(\w+)\s*=?\s*(\{.*\})\s*;")
_SCALAR = re.compile(r"(?:const\s+)?(?:u?int\d+_t|int|size_t|auto)\s+(\w+)\s*=\s*([^;]+);")
_PADDING = re.compile(r"(?:AscendC::)?DataCopyPad(?:Ext)?Params\b.*;")
_QUEUES = re.compile(rf"(?:(?:AscendC::)?TQue|{RING})\s*<\s*(?:\w+::)*(?:VECIN|VECOUT)\s*,[^;<>]*>")
_GIVEN_ON = ("EnQue", "FreeTensor")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CLASS = f"""\
#ifndef QUEUE_OF_ROWS
#define QUEUE_OF_ROWS
// A queue whose tensors hold rows: whoever loads or stores has all of a turn, whoever computes one after the other.
template <typename QUEUED, bool LOADED>
class {QUEUE} {{
 public:
  __aicore__ inline void Begin(uint32_t count, uint32_t bytes) {{ Make(queue, count, bytes, 0); }}
  __aicore__ inline void Turn(uint32_t rowsOfTurn, uint32_t elements) {{
    rows = rowsOfTurn;
    length = elements;
    row = 0;
  }}
  __aicore__ inline void Row(uint32_t next) {{ row = next; }}
  __aicore__ inline uint32_t Rows() {{ return rows; }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    if constexpr (LOADED) {{
      return queue.template AllocTensor<T>();
    }} else {{
      if (row == 0) {{
        whole = queue.template AllocTensor<T>().template ReinterpretCast<uint8_t>();
      }}
      return whole.template ReinterpretCast<T>()[row * length];
    }}
  }}
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>& tensor) {{
    if constexpr (LOADED) {{
      queue.EnQue(tensor);
    }} else if (row + 1 == rows) {{
      queue.EnQue(whole.template ReinterpretCast<T>());
    }}
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{
    if constexpr (LOADED) {{
      if (row == 0) {{
        whole = queue.template DeQue<T>().template ReinterpretCast<uint8_t>();
      }}
      return whole.template ReinterpretCast<T>()[row * length];
    }} else {{
      return queue.template DeQue<T>();
    }}
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>& tensor) {{
    AscendC::LocalTensor<T> all = tensor;
    if constexpr (LOADED) {{
      if (row + 1 < rows) {{
        return;
      }}
      all = whole.template ReinterpretCast<T>();
    }}
    queue.FreeTensor(all);
  }}

 private:
{MAKE}
  QUEUED queue;
  AscendC::LocalTensor<uint8_t> whole;
  uint32_t rows = 1, row = 0, length = 0;
}};
#endif

"""


@dataclass(frozen=True)
class _Copy:
    """A copy of a row; ``count`` is what says how much, and becomes that of many rows."""

    call: ApiCall
    queue: str
    count: Node
    apart: str  # elements from row to row in the queue's tensor, for who calls


@dataclass
class _Step:
    """A function of a turn. ``copies``: of a function that loads or stores rows and does nothing else."""

    call: ApiCall
    function: Function
    copies: list[_Copy] = field(default_factory=list)


@dataclass(frozen=True)
class _Turn:
    """What a loop does in each turn; ``rows``: queue -> elements from row to row."""

    loop: CountedLoop
    steps: list[_Step]
    rows: Mapping[str, str]


# -- finding -----------------------------------------------------------------------------------------------------------


def _turns(kernel: KernelProgram) -> Iterator[list[_Turn]]:
    """The turns that call the same functions in the same order."""
    own: dict[tuple[str, str], list[Function]] = {}
    for f in kernel.functions:
        own.setdefault((kernel.class_of(f), f.name), []).append(f)
    found: dict[tuple[str, ...], list[_Turn]] = {}
    for loop in counted_loops(kernel):
        of = kernel.class_of(loop.block.function)
        calls = [s.call for s in loop.block.steps if s.node.type != "comment"]
        steps: list[_Step] = []
        for call in calls:
            named = own.get((of, call.name), []) if call is not None and call.receiver in ("", "this") else []
            if call is None or len(named) != 1 or len(named[0].parameters) != len(call.args):
                break
            steps.append(_Step(call, named[0], _moves(kernel, call, named[0], loop.name)))
        if of and (loop.first, loop.step) == ("0", "1") and len(calls) == len(steps) > 2:
            rows = _rows(kernel, steps)
            if rows:
                found.setdefault((of, *(s.call.name for s in steps)), []).append(_Turn(loop, steps, rows))
    yield from found.values()


def turns_of_rows(kernel: KernelProgram) -> set[tuple[str, int]]:
    """Loops, by path and first byte, whose turns may be of several rows."""
    return {(t.loop.block.function.path, t.loop.node.start_byte) for found in _turns(kernel) for t in found}


def _moves(kernel: KernelProgram, call: ApiCall, f: Function, counter: str) -> list[_Copy]:
    """The copies of a function that only loads or stores the counter's row; none where it does anything else."""
    names = dict(zip(f.parameters, call.args, strict=False))
    if any(p in _WORD.findall(a) for p in names for q, a in names.items() if p != q):
        return []  # the same name here and there
    tensors: dict[str, tuple[str, str]] = {}  # name -> queue, type
    params: dict[str, Node] = {}
    copies: list[_Copy] = []
    for node in f.body.named_children:
        text, inner = flat(kernel.text(f.path, node)), kernel.call_of(f, node)
        if (found := _TENSOR.fullmatch(text)) is not None:
            tensors[found[1]] = (found[2].removeprefix("this->"), found[4])
        elif (named := _PARAMS.fullmatch(text)) is not None:
            params[named[1]] = next(n for n in walk(node) if n.type == "initializer_list")
        elif (scalar := _SCALAR.fullmatch(text)) is not None and "(" not in scalar[2]:
            names[scalar[1]] = scalar[2]
        elif inner is not None and inner.name in ("DataCopy", "DataCopyPad") and len(inner.args) > 2:
            copy = _copy(kernel, inner, tensors, params, names, counter)
            if copy is None:
                return []
            copies.append(copy)
        elif node.type == "comment" or _PADDING.fullmatch(text) is not None:
            continue
        elif inner is None or inner.name not in _GIVEN_ON or inner.args not in [(t,) for t in tensors]:
            return []
    return copies


def _copy(
    kernel: KernelProgram,
    call: ApiCall,
    tensors: Mapping[str, tuple[str, str]],
    params: Mapping[str, Node],
    names: Mapping[str, str],
    counter: str,
) -> _Copy | None:
    """The copy of a row a turn; None for any other. ``names``: what the function's variables are, for the caller."""
    name = next((n for n in tensors if n in call.args[:2]), "")
    outside = call.args[1] if call.args[0] == name else call.args[0]
    place = affine(resolved(outside, names), counter, "0", {}) if name else None
    if place is None:
        return None
    queue, kind = tensors[name]
    if call.name == "DataCopy":
        length = resolved(call.args[2], names)
        whole = len(call.args) == 3 and _plain(place.step) == _plain(length)
        return _Copy(call, queue, call.arguments[2], length) if whole else None
    listed = call.arguments[2] if call.arguments[2].type == "initializer_list" else params.get(call.args[2])
    parts = listed.named_children if listed is not None else []
    texts = [_plain(resolved(kernel.text(call.path, p), names)) for p in parts]
    size = f"sizeof({kind.strip()})"
    sizes = (f"{_plain(place.step)}*{size}", f"{size}*{_plain(place.step)}")
    if len(texts) < 4 or texts[0] != "1" or texts[1] not in sizes or set(texts[2:]) != {"0"}:
        return None
    return _Copy(call, queue, parts[0], f"(({place.step}) * {size} + 31) / 32 * 32 / {size}")


def _plain(text: str) -> str:
    """An expression without what doesn't change its value."""
    text = re.sub(r"static_cast<[\w:]+>|\(u?int\d+_t\)|this->|\s", "", text)
    while (inner := re.sub(r"(?<!\w)\(([\w*]+(?:\(\w+\))?)\)", r"\1", text)) != text:
        text = inner
    return text.removeprefix("1*")


def _rows(kernel: KernelProgram, steps: Sequence[_Step]) -> dict[str, str]:
    """Queue -> elements from row to row; nothing where a queue isn't made in one place, or rows differ."""
    rows: dict[str, str] = {}
    for step in steps:
        for copy in step.copies:
            if rows.setdefault(copy.queue, copy.apart) != copy.apart or not _is_queue(
                kernel, step.function, copy.queue
            ):
                return {}
    return rows if sum(bool(s.copies) for s in steps) > 1 and not all(s.copies for s in steps) else {}


def _is_queue(kernel: KernelProgram, f: Function, name: str) -> bool:
    """Is it declared in the method's class as a queue to load into or to store from, and made in one place?"""
    return len(list(_declared(kernel, f, name))) == 1 and len([q for q, _ in _made(kernel, f) if q == name]) == 1


def _made(kernel: KernelProgram, f: Function) -> Iterator[tuple[str, ApiCall]]:
    """Queues, and where each gets its buffers: ``InitBuffer(queue, count, bytes)`` or ``ring.Begin(count, bytes)``."""
    for call in kernel.named("InitBuffer", "Begin"):
        queue = call.receiver if call.name == "Begin" else (*call.args, "")[0]
        whole = call.statement is not None and len(call.args) == (2 if call.name == "Begin" else 3)
        if whole and kernel.class_of(call.function) == kernel.class_of(f):
            yield queue.removeprefix("this->"), call


def _declared(kernel: KernelProgram, f: Function, name: str) -> Iterator[Members]:
    """The members of the method's class that have this name and are queues."""
    held = kernel.class_node(f)
    for queue in members(kernel, _QUEUES) if held is not None else ():
        path, node = held or (queue.path, queue.node)
        if queue.path == path and node.start_byte <= queue.node.start_byte < node.end_byte and name in queue.names:
            yield queue


# -- changing ----------------------------------------------------------------------------------------------------------


def _edits(kernel: KernelProgram, turns: Sequence[_Turn], many: int) -> Iterator[Edit]:
    rows = turns[0].rows
    f = turns[0].loop.block.function
    for line in {q.node.start_byte: q for name in rows for q in _declared(kernel, f, name)}.values():
        if not set(line.names) <= set(rows):
            raise ValueError(f"of {', '.join(line.names)} some are no queues of rows")
        kind = kernel.text(line.path, line.type)
        written = in_front(kernel, line.path, line.type, QUEUE, _CLASS)
        if written is not None:
            yield written
        yield kernel.replace(line.path, line.type, f"{QUEUE}<{kind}, {str('VECIN' in kind).lower()}>")
    for queue, call in _made(kernel, f):
        if queue in rows:
            count, size = call.args[-2:]
            yield kernel.replace(call.path, call.node, f"{queue}.Begin({count}, {many} * (({size} + 31) / 32 * 32))")
    counts = {(c.call.path, c.count.start_byte): c for s in turns[0].steps for c in s.copies}  # copies may share one
    for copy in counts.values():
        text, held = kernel.text(copy.call.path, copy.count), f"{copy.queue}.Rows()"
        many_rows = f"static_cast<uint16_t>({held})" if copy.call.name == "DataCopyPad" else f"{held} * ({text})"
        yield kernel.replace(copy.call.path, copy.count, many_rows)
    for turn in turns:
        yield from _counted(kernel, turn, many)


def _counted(kernel: KernelProgram, turn: _Turn, many: int) -> Iterator[Edit]:
    """The loop in steps of many rows, fewer at its end; functions that compute in a loop over the rows of a turn."""
    loop, rows = turn.loop, turn.rows
    path, node = loop.block.function.path, loop.node
    space, inner = kernel.indent(path, node), "  "
    head, count = _head(loop, many)
    lines = [
        f"{head} {{",
        f"{inner}{count}",
        *(f"{inner}{queue}.Turn({_ROWS}, {apart});" for queue, apart in rows.items()),
    ]
    computing = False
    for step in turn.steps:
        if computing and step.copies:
            lines += [f"{inner}}}", *(f"{inner}{queue}.Row(0);" for queue in rows)]
        if not computing and not step.copies:
            lines.append(f"{inner}for (uint32_t {_ROW} = 0; {_ROW} < {_ROWS}; {_ROW}++) {{")
            lines += [f"{inner * 2}{queue}.Row({_ROW});" for queue in rows]
        computing = not step.copies
        text = kernel.text(path, step.call.node)
        lines.append(f"{inner * 2}{at(text, loop.name, f'{loop.name} + {_ROW}')};" if computing else f"{inner}{text};")
    lines += [f"{inner}}}"] if computing else []
    lines += ["}", *(f"{queue}.Turn(1, {apart});" for queue, apart in rows.items())]
    yield kernel.replace(path, node, f"\n{space}".join(lines))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for turns in _turns(kernel):
        first = turns[0]
        site = f"{kernel.class_of(first.loop.block.function)}/{'+'.join(s.call.name for s in first.steps)}"
        names = ", ".join(dict.fromkeys(turn.loop.block.function.name for turn in turns))
        for many in _MANY:
            try:
                edits = tuple(_edits(kernel, turns, many))
            except ValueError:
                return
            yield Change(f"{site}/{many}", f"{many} rows in a turn of {names}", edits)
    lengths = [c.args[1] for c in kernel.named("Begin") if len(c.args) == 2]
    room = [int(found[1]) for length in lengths if (found := re.match(r"(\d+) \* \(", length))]
    for loop in counted_loops(kernel):
        if room and loop.step == "1" and _is_ours(kernel, loop):
            yield _stepped(kernel, loop, min(room), f"{min(room)} rows in a turn of {loop.block.function.name}")


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """One row a turn again; queues and functions stay ready for more."""
    for loop in counted_loops(kernel):
        if loop.step != "1" and _is_ours(kernel, loop):
            yield _stepped(kernel, loop, 1, f"one row in a turn of {loop.block.function.name}")


def _is_ours(kernel: KernelProgram, loop: CountedLoop) -> bool:
    """Is it a loop over rows that this motif wrote?"""
    first = loop.block.steps[0].node if loop.block.steps else None
    text = kernel.text(loop.block.function.path, first) if first is not None else ""
    return text.startswith(f"const uint32_t {_ROWS} = ")


def _stepped(kernel: KernelProgram, loop: CountedLoop, many: int, change: str) -> Change:
    """Such a loop with another number of rows."""
    f, first = loop.block.function, loop.block.steps[0].node
    head, count = _head(loop, many)
    edits = (
        Edit(f.path, loop.node.start_byte, loop.block.node.start_byte, f"{head} "),
        kernel.replace(f.path, first, count),
    )
    return Change(f"{f.name}/{loop.name} < {loop.bound}/{'row' if many == 1 else 'rows'}", change, edits)


def _head(loop: CountedLoop, many: int) -> tuple[str, str]:
    """The loop's head, and the statement that counts a turn's rows."""
    step = f"{loop.name} += {many}" if many > 1 else f"{loop.name}++"
    left = f"static_cast<uint32_t>({loop.bound} - {loop.name})"
    rows = f"{left} < {many} ? {left} : {many}" if many > 1 else "1"
    head = f"for ({loop.type} {loop.name} = {loop.first}; {loop.name} < {loop.bound}; {step})"
    return head, f"const uint32_t {_ROWS} = {rows};"


ROWS_PER_TURN = Motif(
    name="rows-per-turn",
    title="Several rows in one turn",
    description="A turn of a loop that handles one short row pays for its copies' issue and latency, and for calls of "
    "queues. Rows that lie one behind the other come and go with one copy; what is computed is called for one row "
    "after the other, and gets its part of the queue's tensor.",
    bottlenecks=("small copies", "scalar", "copies", "no overlap", "short vector instructions"),
    preconditions="Rows of the turn's tensors are adjacent in global memory, whole blocks of 32 bytes where a count "
    "says how long they are; buffers of several fit the Unified Buffer.",
    faster=_faster,
    slower=_slower,
    together="no",
)
