"""Rows that are loaded one a turn and used each for itself: as many in one load as the queue's tensor has room for.

Rows of updates that are scattered, terms of a sum, rows that are stored several times: what is loaded goes on evenly,
what is done with it doesn't, so that the turns can't be one (``rows-per-turn``, ``strided-copy``).

1. The place of a load is affine in the counter of the innermost loop around it, or around the call of its function. A
   store of the turn goes on by the same step only where rows are equally long and the turn can't be one of several.
2. The loop says how many turns are left and how far rows are apart (``Ahead``). A load asks for its place (``Wants``):
   the tensor is the row's part of what was loaded, or the first one of the next rows. Where rows don't fit, or are
   none of equal length, the load is done as it was.
3. Places are compared when the kernel runs, so that turns may skip rows, and loads of other loops are done alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import at, indexed, resolved
from ...reading.api import root
from ...reading.classes import Members, family_members, is_of, may_use, merged, title_of
from ...reading.copied import bytes_of, is_copy
from ...reading.declared import element_type
from ...reading.going_on import EvenTurn, GoingOn, bare
from ...reading.kernel_program import LOOPS, ApiCall, KernelProgram, Where, loops_around, where
from ...reading.steady import Steady
from ..motif import Change, Motif
from .queues import MAKE, RING, as_own, queues_again, unguarded
from .rows_per_turn import turns_of_rows

AHEAD = "LoadedAhead"  # their class
_ASKED = ("AllocTensor", "EnQue", "DeQue", "FreeTensor")
_QUEUES = re.compile(rf"(?:(?:AscendC::)?TQue(?:Bind)?|{RING})\s*<\s*(?:\w+::)*VECIN\s*,[^;<>]*>")
_OURS = re.compile(rf"{AHEAD}\s*<(.*)>", re.DOTALL)
_LAST_APART = re.compile(r"^static_cast<int64_t>\(.*[^-]-\s*1\)+ - static_cast<int64_t>\(\w+\)$")
_TAKEN = re.compile(r"^(?:this->)?(\w+)\s*\.\s*(?:template\s+)?AllocTensor\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CLASS = f"""\
#ifndef LOADED_AHEAD
#define LOADED_AHEAD
// A queue whose tensors hold several rows: loaded at once when the first is wanted, and handed out one by one.
template <typename QUEUED>
class {AHEAD} {{
 public:
  __aicore__ inline void Begin(uint32_t buffers, uint32_t bytes) {{
    bytesAsked = (bytes + 31) / 32 * 32;
    bytesOfTensor = 2 * bytesAsked > PIECE ? bytesAsked : PIECE;
    Make(queue, buffers, bytesOfTensor, 0);
  }}
  // So many rows are left, from the next one that is loaded; so many elements from one to the next.
  __aicore__ inline void Ahead(int64_t rows, int64_t elements) {{
    rowsLeft = rows;
    rowsApart = elements;
  }}
  // The tensor of an element type, until its row is known.
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Row() {{ return AscendC::LocalTensor<T>(); }}
  // Gives a tensor the row at `offset`, behind `skipped` elements of its. Is it still to be loaded?
  template <typename T>
  __aicore__ inline bool Wants(AscendC::LocalTensor<T>& rowTensor, const AscendC::GlobalTensor<T>& from,
                               int64_t offset, int64_t bytes, uint32_t skipped = 0) {{
    const int64_t rows = rowsLeft;
    rowsLeft = 1;
    while (rowNumber + 1 < rowsLoaded && bytesOfRow == bytes && nextPlace <= offset) {{
      rowNumber++;
      nextPlace += elementsApart;
      if (nextPlace - elementsApart == offset) {{
        rowTensor = Part<T>();
        return false;
      }}
    }}
    Anew<T>();
    rowTensor = wholeTensor.template ReinterpretCast<T>();
    const int64_t blocks = (bytes + 31) / 32 * 32;
    bytesOfPart = skipped > 0 ? bytesAsked : blocks;
    bytesOfRow = bytes;
    const int64_t gap = rowsApart * static_cast<int64_t>(sizeof(T)) - bytes;
    if (rows < 2 || bytes <= 0 || 2 * bytesOfPart > bytesOfTensor || gap < 0 || gap > FAR) {{
      return true;
    }}
    const int64_t most = bytesOfTensor / bytesOfPart < 4095 ? bytesOfTensor / bytesOfPart : 4095;
    rowsLoaded = rows < most ? rows : most;
    elementsApart = rowsApart;
    nextPlace = offset + elementsApart;
    if (gap == 0 && bytesOfPart == bytes && skipped == 0) {{
      AscendC::DataCopy(rowTensor, from[offset], static_cast<uint32_t>(rowsLoaded * bytes / sizeof(T)));
    }} else {{
      const AscendC::DataCopyExtParams several{{static_cast<uint16_t>(rowsLoaded), static_cast<uint32_t>(bytes),
                                               static_cast<uint32_t>(gap),
                                               static_cast<uint32_t>((bytesOfPart - blocks) / 32), 0}};
      const AscendC::DataCopyPadExtParams<T> plain{{false, 0, 0, 0}};
      AscendC::DataCopyPad(rowTensor[skipped], from[offset], several, plain);
    }}
    return false;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    Anew<T>();
    return wholeTensor.template ReinterpretCast<T>();
  }}
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>&) {{
    if (!tensorGiven) queue.EnQue(wholeTensor.template ReinterpretCast<T>());
    tensorGiven = true;
  }}
  template <AscendC::TPosition FROM, AscendC::TPosition TO, typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>&) {{
    if (!tensorGiven) queue.template EnQue<FROM, TO, T>(wholeTensor.template ReinterpretCast<T>());
    tensorGiven = true;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{
    if (!tensorTaken) wholeTensor = queue.template DeQue<T>().template ReinterpretCast<uint8_t>();
    tensorTaken = true;
    return Part<T>();
  }}
  template <AscendC::TPosition FROM, AscendC::TPosition TO, typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{
    if (!tensorTaken) wholeTensor = queue.template DeQue<FROM, TO, T>().template ReinterpretCast<uint8_t>();
    tensorTaken = true;
    return Part<T>();
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {{
    if (rowNumber + 1 >= rowsLoaded) Free<T>();
  }}

 private:
  static constexpr uint32_t PIECE = 16384;  // bytes
  static constexpr int64_t FAR = 0x7fffffff;  // what is further apart goes backwards, in unsigned numbers
{MAKE}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Part() {{
    return wholeTensor[static_cast<uint32_t>(rowNumber * bytesOfPart)].template ReinterpretCast<T>();
  }}
  template <typename T>
  __aicore__ inline void Free() {{
    auto all = wholeTensor.template ReinterpretCast<T>();
    if (tensorHeld) queue.FreeTensor(all);
    tensorHeld = false;
    rowsLoaded = 1;
    rowNumber = 0;
  }}
  template <typename T>
  __aicore__ inline void Anew() {{
    Free<T>();
    wholeTensor = queue.template AllocTensor<T>().template ReinterpretCast<uint8_t>();
    tensorHeld = true;
    tensorGiven = false;
    tensorTaken = false;
  }}

  QUEUED queue;
  AscendC::LocalTensor<uint8_t> wholeTensor;
  uint32_t bytesOfTensor = 0, bytesAsked = 0;
  bool tensorHeld = false, tensorGiven = false, tensorTaken = false;
  int64_t rowsLeft = 1, rowsApart = 0, rowNumber = 0, rowsLoaded = 1;
  int64_t nextPlace = 0, elementsApart = 0, bytesOfPart = 0, bytesOfRow = 0;
}};
#endif

"""


@dataclass(frozen=True)
class _Load:
    """A load into the tensor ``name`` that ``taken`` takes from the queue, behind ``skipped`` elements of it."""

    call: ApiCall
    statement: Node
    taken: ApiCall
    name: str
    size: str
    skipped: str


@dataclass(frozen=True)
class _Rows:
    """A queue, where it is made, its loads, and the turns of those."""

    line: Members
    name: str
    made: tuple[ApiCall, ...]
    loads: tuple[_Load, ...]
    turns: tuple[EvenTurn, ...]


class _Finder:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel, self.facts = kernel, kernel.once(Steady)
        self.going, self.also_stored = GoingOn(kernel, self.facts), GoingOn(kernel, self.facts, whatever_is_stored=True)
        self.several = turns_of_rows(kernel)
        self.named: dict[str, list[ApiCall]] = {}
        for c in kernel.calls:
            for name in {c.receiver.removeprefix("this->"), *(a.removeprefix("this->") for a in c.args)}:
                self.named.setdefault(name, []).append(c)

    def found(self) -> Iterator[_Rows]:
        for line, once, methods in family_members(self.kernel, _QUEUES):
            for name in line.names:
                rows = self._rows(line, name, {where(f) for f in methods} if name in once else set())
                if rows is not None:
                    yield rows

    def _rows(self, line: Members, name: str, methods: set[Where]) -> _Rows | None:
        """``methods``: of the class and those derived from it, if the queue's name is one queue's there."""
        ours = [c for c in self.named.get(name, ()) if where(c.function) in methods or self._own(line, c)]
        asked = [c for c in ours if c.name in _ASKED]
        made = tuple(c for c in ours if c.name in ("InitBuffer", "Begin") and c.statement is not None)
        sizes = [len(c.args) - (c.name == "InitBuffer") for c in made]
        if not made or set(sizes) != {2} or len(asked) + len(made) < len(ours):
            return None
        loads, turns = list[_Load](), list[EvenTurn]()
        for taken in (c for c in asked if c.name == "AllocTensor"):
            fills = self._loads(taken, name)
            found = [[t for t in self._turns(load) if self._of_rows(line, made, t)] for load in fills]
            if any(found):
                loads += fills
                turns += [t for each in found for t in each]
        return _Rows(line, name, made, tuple(loads), tuple(dict.fromkeys(turns))) if loads else None

    def _own(self, line: Members, call: ApiCall) -> bool:
        return is_of(self.kernel, line, call.function)

    def _of_rows(self, line: Members, made: tuple[ApiCall, ...], turn: EvenTurn) -> bool:
        """Is it a turn of rows, of a loop that isn't left, where the queue is known?"""
        return may_use(self.kernel, line, turn.function) and not self._of_tile(made, turn) and not _left(turn.loop)

    def _of_tile(self, made: tuple[ApiCall, ...], turn: EvenTurn) -> bool:
        """Is it a tile, with a loop over it, or none that is stored?

        Tiles are as long as the queue's tensors, by words that say so, or the last one is handled behind the loop.
        """
        step = re.escape(bare(turn.step))
        long = any(re.search(rf"(?<!\w){step}(?!\w)", bare(c.args[-1])) for c in made)
        bodies = list(self.going.bodies(turn.function, turn.loop))
        loops = any(n.type in LOOPS for _, body in bodies for n in walk(body))
        long = long or _LAST_APART.search(turn.left) is not None
        return long and (loops or not any(True for f, body in bodies for _ in self.going.stores(f, body)))

    # -- loads ---------------------------------------------------------------------------------------------------------

    def _loads(self, taken: ApiCall, queue: str) -> list[_Load]:
        """The load that fills a tensor of the queue, or one of each branch, before anything else asks for it."""
        f, holder = taken.function, taken.node.parent
        if holder is None or holder.type not in ("init_declarator", "assignment_expression"):
            return []
        match = _TAKEN.match(self.kernel.text(f.path, taken.node))
        name = self.kernel.text(f.path, holder.named_children[0]).removeprefix("this->")
        block = holder.parent.parent if holder.parent is not None else None
        if match is None or match[1] != queue or not name.isidentifier() or block is None:
            return []
        loads = self._filling(taken, name, block, holder.end_byte)
        alone = len(loads) == 1 and loads[0].statement.parent == block
        return loads if alone or all(_in_branch(load.statement, block) for load in loads) else []

    def _filling(self, taken: ApiCall, name: str, block: Node, start: int) -> list[_Load]:
        """Loads into the tensor, before anything else asks for it; none where there are some behind that."""
        f, loads, used = taken.function, list[_Load](), False
        calls = {c.arguments[0].start_byte: c for c in self.kernel.calls_of(f) if c.args and is_copy(self.facts, c)}
        for n in walk(block):
            if n.type != "identifier" or n.start_byte < start or self.kernel.text(f.path, n) != name:
                continue
            if n.parent is not None and "AllocTensor" in self.kernel.text(f.path, n.parent):
                break  # the next one
            load = self._load(taken, name, calls.get(n.start_byte))
            if load is not None and used:
                return []
            used = used or load is None
            loads += [load] if load is not None else []
        return loads

    def _load(self, taken: ApiCall, name: str, call: ApiCall | None) -> _Load | None:
        """The load that a call is, into the tensor or a part of it."""
        if call is None or call.statement is None or len(call.args) < 3:
            return None
        tensor, skipped = indexed(call.args[0])
        source = root(call.args[1].removeprefix("this->"))
        kind = element_type(self.kernel, call.function, source)
        if kind is None or tensor != name or source in self.facts.stored:
            return None
        size = bytes_of(self.kernel, call, kind)
        return _Load(call, call.statement, taken, name, size, skipped or "") if size is not None else None

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _turns(self, load: _Load) -> Iterator[EvenTurn]:
        f, (_, index) = load.call.function, indexed(load.call.args[1])
        if index is None:
            return
        around = loops_around(load.statement, f)
        if around:
            turn = self._turn(load, f, load.statement, index)
            if turn is not None:
                yield turn
            return
        local = self.going.values(f, f.body, load.statement)
        index = resolved(index, {k: v for k, v in local.items() if v is not None})
        if any(v is None and k in _WORD.findall(index) for k, v in local.items()):
            return
        for c in self.kernel.named(f.name):
            around = loops_around(c.node, c.function)
            if c.statement is None or not around or not self.facts.akin(c.function, f):
                continue
            if f.parameters and set(f.parameters[len(c.args) :]) & set(_WORD.findall(index)):
                continue
            text = index
            for i, parameter in enumerate(f.parameters[: len(c.args)]):
                text = at(text, parameter, f"given__{i}")
            for i, given in enumerate(c.args):
                text = at(text, f"given__{i}", given)
            turn = self._turn(load, c.function, c.statement, text)
            if turn is not None:
                yield turn

    def _turn(self, load: _Load, f: Function, statement: Node, index: str) -> EvenTurn | None:
        """The turn of a statement that asks for a place; one that stores as evenly as it loads where rows are equally
        long, and it can't be one of several rows."""
        turn = self.going.turn(f, statement, index)
        if turn is not None or statement.parent is None or statement.parent.type != "compound_statement":
            return turn
        turns = self.facts.turns_of(load.call.function, load.statement)
        if turns is None or not self.facts.number(turns, load.call.function, load.size):
            return None
        turn = self.also_stored.turn(f, statement, index)
        return turn if turn is not None and (f.path, turn.loop.start_byte) not in self.several else None


def _left(loop: Node) -> bool:
    """Is a loop left before its last turn, so that rows behind may be none?"""
    inner = ("switch_statement", *LOOPS)
    for n in walk(loop):
        if n.type == "break_statement":
            around = n.parent
            while around is not None and around.type not in inner:
                around = around.parent
            if around == loop:
                return True
    return any(n.type == "return_statement" for n in walk(loop))


def _in_branch(statement: Node, block: Node) -> bool:
    """Is it the only statement of its name in a branch of those, of a block, one of which is taken?"""
    node, chosen = statement, False
    while node.parent is not None and node != block:
        if node.type == "if_statement" and node.child_by_field_name("alternative") is None:
            return False
        chosen = chosen or node.type == "if_statement" or node.type.startswith("preproc")
        if node.type in LOOPS:
            return False
        node = node.parent
    return node == block and chosen


# -- changing ----------------------------------------------------------------------------------------------------------


def _edits(kernel: KernelProgram, rows: _Rows) -> Iterator[Edit]:
    yield from as_own(kernel, rows.line, rows.name, AHEAD, _CLASS)
    for call in rows.made:
        if call.name == "InitBuffer":
            yield kernel.replace(call.path, call.node, f"{rows.name}.Begin({', '.join(call.args[1:])})")
    for turn in rows.turns:
        yield kernel.before(turn.function.path, turn.statement, f"this->{rows.name}.Ahead({turn.left}, {turn.step});")
    for load in rows.loads:
        call = load.call
        tensor, index = indexed(call.args[1])
        yield kernel.replace(call.path, load.taken.node, f"{rows.name}.template Row{load.taken.template}()")
        skipped = f", {load.skipped}" if load.skipped else ""
        wants = f"if ({rows.name}.Wants({load.name}, {tensor}, {index}, {load.size}{skipped})) {{ "
        yield Edit(call.path, load.statement.start_byte, load.statement.start_byte, wants)
        yield Edit(call.path, load.statement.end_byte, load.statement.end_byte, " }")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for rows in _Finder(kernel).found():
        names = ", ".join(dict.fromkeys(root(load.call.args[1].removeprefix("this->")) for load in rows.loads))
        change = f"rows of {names} loaded several at a time"
        yield Change(f"{title_of(kernel, rows.line)}::{rows.name}", change, merged(_edits(kernel, rows)))


def _plain(kernel: KernelProgram, call: ApiCall) -> Iterator[Edit]:
    """A call of the class, as a queue has it."""
    if call.name == "Row":
        yield kernel.replace(call.path, call.node, f"{call.receiver}.AllocTensor{call.template}()")
    elif call.name == "Ahead" and call.statement is not None:
        yield kernel.delete(call.path, call.statement)
    elif call.name == "Wants":
        yield from unguarded(call)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Each row loaded by itself."""
    return queues_again(kernel, _OURS, lambda c: _plain(kernel, c), "is filled a row at a time")


LOADED_AHEAD = Motif(
    name="loaded-ahead",
    title="Several rows in one load",
    description="Rows that are scattered, added up or stored several times each take a load of their own, whose issue "
    "and latency cost more than a short row. They lie evenly in global memory: one load brings as many as the queue's "
    "tensor has room for, 16 KB at least, and each turn takes its row from there.",
    bottlenecks=("small copies", "copies", "no overlap", "scalar"),
    preconditions="Nobody writes what is loaded; rows are used one after the other; the Unified Buffer has room.",
    faster=_faster,
    slower=_slower,
    together="no",
)
