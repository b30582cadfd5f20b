"""Rows that are made and stored one a turn, evenly apart: as many in one store as the queue's tensor has room for.

The other side of ``loaded-ahead``. A row's few results (a mean, a scale), or a short row itself, take a store of their
own each turn, and four calls of a queue; what makes them may be anything.

1. Whoever takes a tensor out of the queue stores it by one copy of one block and gives it back, and nothing else.
2. The place of that store is affine in the counter of the innermost loop around it, or around the call of its
   function; a row is as long in each turn. The loop says how many turns are left and how far rows are apart
   (``Ahead``).
3. A turn stores one row of the queue's. Tensors are parts of one, one behind the other (``StoredTogether``). Whoever
   stores a row asks whether it is alone (``Alone``); else it is kept until the tensor is full, the next row lies
   elsewhere, or the loop ends (``Flush``).
4. Nobody loads or stores the global tensor otherwise, nobody adds to it, and no cores meet in the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import at, indexed, resolved
from ...reading.api import COPY, root
from ...reading.classes import Members, family_members, may_use, merged, title_of
from ...reading.copied import bytes_of, is_copy
from ...reading.declared import element_type
from ...reading.going_on import EvenTurn, GoingOn
from ...reading.kernel_program import ApiCall, KernelProgram, loops_around
from ...reading.steady import Steady
from ..motif import Change, Motif
from .queues import MAKE, RING, as_own, queues_again, unguarded

TOGETHER = "StoredTogether"  # their class
_ASKED = {"AllocTensor": 0, "EnQue": 1, "DeQue": 0, "FreeTensor": 1}  # call -> arguments
_QUEUES = re.compile(rf"(?:(?:AscendC::)?TQue|{RING})\s*<\s*(?:\w+::)*VECOUT\s*,[^;<>]*>")
_OURS = re.compile(rf"{TOGETHER}\s*<(.*)>", re.DOTALL)
_MEETINGS = re.compile(r"\b(?:SyncAll|CrossCore\w+|IBSet|IBWait|GroupBarrier|ffts_\w+|set_ffts\w*)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CLASS = f"""\
#ifndef STORED_TOGETHER
#define STORED_TOGETHER
// A queue whose tensors hold several rows: given to be filled one by one, and stored at once.
template <typename QUEUED>
class {TOGETHER} {{
 public:
  __aicore__ inline void Begin(uint32_t buffers, uint32_t bytes) {{
    bytesAsked = (bytes + 31) / 32 * 32;
    bytesOfTensor = bytesAsked > PIECE ? bytesAsked : bytesAsked + PIECE;
    Make(queue, buffers, bytesOfTensor, 0);
  }}
  // So many rows are left, with the next one that is stored; so many elements from one to the next.
  __aicore__ inline void Ahead(int64_t rows, int64_t elements) {{
    rowsLeft = rows;
    rowsApart = elements;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    if (!tensorHeld) wholeTensor = queue.template AllocTensor<uint8_t>();
    tensorHeld = true;
    return Part<T>();
  }}
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>&) {{}}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{ return Part<T>(); }}
  // Is the row, which belongs at `offset`, to be stored by itself? Else that is, or will be, done.
  template <typename T>
  __aicore__ inline bool Alone(const AscendC::GlobalTensor<T>& to, int64_t offset, int64_t bytes) {{
    const int64_t rows = rowsLeft;
    rowsLeft = 1;
    GM_ADDR place = (GM_ADDR)to[offset].GetPhyAddr();
    if (rowsKept > 0 && (bytes != bytesOfRow || place != firstPlace + rowsKept * bytesApart)) {{
      Given();
      Out(firstPlace, 0, rowsKept);
      bytesOfRow = bytes;
      Out(place, rowsKept, 1);
      Free();
      return false;
    }}
    if (rowsKept == 0) {{
      firstPlace = place;
      bytesOfRow = bytes;
      bytesApart = rowsApart * static_cast<int64_t>(sizeof(T));
      bytesOfPart = (bytes + 31) / 32 * 32;
    }}
    rowsKept++;
    const bool evenly = bytesApart >= bytes && bytesApart - bytes <= FAR;
    if (rows > 1 && bytes > 0 && evenly && rowsKept < 4095 && rowsKept * bytesOfPart + bytesAsked <= bytesOfTensor) {{
      return false;
    }}
    if (rowsKept > 1) {{
      Flush();
      return false;
    }}
    Given();
    rowAlone = true;
    return true;
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {{
    if (rowAlone) Free();
  }}
  // Stores what is kept.
  __aicore__ inline void Flush() {{
    if (rowsKept > 0) {{
      Given();
      Out(firstPlace, 0, rowsKept);
      Free();
    }}
  }}

 private:
  static constexpr uint32_t PIECE = 8192;  // bytes
  static constexpr int64_t FAR = 0x7fffffff;  // what is further apart goes backwards, in unsigned numbers
{MAKE}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Part() {{
    return wholeTensor[static_cast<uint32_t>(rowsKept * bytesOfPart)].template ReinterpretCast<T>();
  }}
  __aicore__ inline void Given() {{
    queue.EnQue(wholeTensor);
    wholeTensor = queue.template DeQue<uint8_t>();
  }}
  __aicore__ inline void Out(GM_ADDR place, int64_t row, int64_t rows) {{
    AscendC::GlobalTensor<uint8_t> to;
    to.SetGlobalBuffer(place);
    const AscendC::DataCopyExtParams several{{static_cast<uint16_t>(rows), static_cast<uint32_t>(bytesOfRow), 0,
                                             static_cast<uint32_t>(rows > 1 ? bytesApart - bytesOfRow : 0), 0}};
    AscendC::DataCopyPad(to, wholeTensor[static_cast<uint32_t>(row * bytesOfPart)], several);
  }}
  __aicore__ inline void Free() {{
    queue.FreeTensor(wholeTensor);
    tensorHeld = false;
    rowAlone = false;
    rowsKept = 0;
  }}

  QUEUED queue;
  AscendC::LocalTensor<uint8_t> wholeTensor;
  GM_ADDR firstPlace = nullptr;
  uint32_t bytesOfTensor = 0, bytesAsked = 0;
  bool tensorHeld = false, rowAlone = false;
  int64_t rowsLeft = 1, rowsApart = 0, rowsKept = 0, bytesApart = 0, bytesOfPart = 0, bytesOfRow = 0;
}};
#endif

"""


@dataclass(frozen=True)
class _Store:
    """A store of the tensor that ``taken`` takes out of the queue."""

    call: ApiCall
    statement: Node
    size: str  # bytes, an expression


@dataclass(frozen=True)
class _Rows:
    """A queue, where it is made, its stores, and the turns of those."""

    line: Members
    name: str
    made: tuple[ApiCall, ...]
    stores: tuple[_Store, ...]
    turns: tuple[EvenTurn, ...]


# -- finding -----------------------------------------------------------------------------------------------------------


class _Finder:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel, self.facts = kernel, kernel.once(Steady)
        self.going = GoingOn(kernel, self.facts, whatever_is_stored=True)

    def found(self) -> Iterator[_Rows]:
        for line, once, methods in family_members(self.kernel, _QUEUES):
            for name in (n for n in line.names if n in once):
                rows = self._rows(line, name, methods)
                if rows is not None:
                    yield rows

    def _rows(self, line: Members, name: str, methods: list[Function]) -> _Rows | None:
        users = [f for f in methods if name in self._words(f)]
        ours = [c for f in users for c in self.kernel.calls_in(f) if name in _names(c)]
        made = tuple(c for c in ours if c.name in ("InitBuffer", "Begin") and c.statement is not None)
        if not self._plain_queue(name, ours, made, users):
            return None
        stores, turns = list[_Store](), list[EvenTurn]()
        for taken in (c for c in ours if c.name == "DeQue"):
            found = self._stores(taken)
            if not found:
                return None
            stores += found
            turns += self._turns_of(line, found)
        loops = {(t.function.path, t.loop.start_byte) for t in turns}
        if len(loops) < len(set(turns)):  # rows of two kinds by turns
            return None
        where_kept = {s.call.function.name for s in stores} | {t.function.name for t in turns}
        if not turns or self._adding(methods) & where_kept or not self._left_alone(methods, stores):
            return None
        return _Rows(line, name, made, tuple(stores), tuple(dict.fromkeys(turns)))

    def _turns_of(self, line: Members, stores: list[_Store]) -> list[EvenTurn]:
        """The turns of stores, where the queue is known and what is kept leaves behind the loop."""
        turns = [t for store in stores for t in self._turns(store)]
        return [t for t in turns if may_use(self.kernel, line, t.function) and self._ends(t)]

    def _adding(self, methods: list[Function]) -> set[str]:
        """Methods that add to what is in global memory, or may be called while another one does."""
        out, pending = set[str](), [f for f in methods if any(w.startswith("SetAtomic") for w in self._words(f))]
        while pending:
            f = pending.pop()
            out.add(f.name)
            called = {c.name for c in self.kernel.calls_in(f)} - out
            pending += [g for g in methods if g.name in called]
        return out

    def _words(self, f: Function) -> list[str]:
        return _WORD.findall(self.kernel.text(f.path, f.node))

    def _plain_queue(self, name: str, ours: list[ApiCall], made: tuple[ApiCall, ...], users: list[Function]) -> bool:
        """Is the queue made with a number of buffers, and asked for its four things only?"""
        asked = [c for c in ours if _ASKED.get(c.name) == len(c.args) and _bare(c.receiver) == name]
        said = sum(self._words(f).count(name) for f in users)
        sizes = {len(c.args) - (c.name == "InitBuffer") for c in made}
        return sizes == {2} and said == len(asked) + len(made)

    def _ends(self, turn: EvenTurn) -> bool:
        """Does the loop end behind its last statement in any case, and no core wait for another one in it?"""
        inside = list(self.going.bodies(turn.function, turn.loop))
        leaves = any(n.type in ("return_statement", "goto_statement") for n in walk(inside[0][1])) if inside else True
        meets = any(_MEETINGS.search(self.kernel.text(f.path, body)) for f, body in inside)
        whole = all(n.parent is not None and n.parent.type == "compound_statement" for n in (turn.loop, turn.statement))
        return whole and not leaves and not meets

    def _left_alone(self, methods: list[Function], stores: list[_Store]) -> bool:
        """Is each of the global tensors of the class stored there only, and never read?"""
        tensors = {_tensor(s.call) for s in stores}
        places = {(s.call.path, s.call.node.start_byte) for s in stores}
        for c in (c for f in methods for c in self.kernel.calls_of(f)):
            if (c.path, c.node.start_byte) in places:
                continue
            copies = c.name in COPY or c.name in self.facts.own
            given = {root(_bare(a)) for a in c.args} if copies else set()
            if tensors & (given | ({root(_bare(c.receiver))} if c.name in ("GetValue", "SetValue") else set())):
                return False
        return True

    # -- stores --------------------------------------------------------------------------------------------------------

    def _stores(self, taken: ApiCall) -> list[_Store]:
        """The store of a tensor of the queue, or one of each branch; none where anything else is done with it."""
        f, holder = taken.function, taken.node.parent
        if holder is None or holder.type not in ("init_declarator", "assignment_expression") or holder.parent is None:
            return []
        name, block = self.kernel.text(f.path, holder.named_children[0]), holder.parent.parent
        if not name.isidentifier() or block is None or block.type != "compound_statement":
            return []
        copies = {c.node.start_byte: c for c in self.kernel.calls_of(f) if len(c.args) > 2 and is_copy(self.facts, c)}
        stores = list[_Store]()
        for n in walk(block):
            if n.type != "identifier" or n.start_byte < holder.end_byte or self.kernel.text(f.path, n) != name:
                continue
            call = n.parent.parent if n.parent is not None else None
            if call is None or call.type != "call_expression":
                return []
            if self.kernel.call_at(f, call).name == "FreeTensor":
                continue
            store = self._store(copies.get(call.start_byte), name)
            if store is None or len(loops_around(store.statement, f)) > len(loops_around(taken.node, f)):
                return []  # other things are done with it, or it is stored again and again
            stores.append(store)
        return stores if all(_either(a.statement, b.statement) for a, b in combinations(stores, 2)) else []

    def _store(self, call: ApiCall | None, name: str) -> _Store | None:
        if call is None or call.statement is None or call.args[1] != name:
            return None
        kind = element_type(self.kernel, call.function, _tensor(call))
        size = bytes_of(self.kernel, call, kind) if kind is not None else None
        return _Store(call, call.statement, size) if size is not None else None

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _turns(self, store: _Store) -> Iterator[EvenTurn]:
        f, (_, index) = store.call.function, indexed(store.call.args[0])
        turns = self.facts.turns_of(f, store.statement)
        if index is None or turns is None or not self.facts.number(turns, f, store.size):
            return
        if loops_around(store.statement, f):
            turn = self.going.turn(f, store.statement, index)
            if turn is not None:
                yield turn
            return
        local = self.going.values(f, f.body, store.statement)
        index = resolved(index, {k: v for k, v in local.items() if v is not None})
        if any(v is None and k in _WORD.findall(index) for k, v in local.items()):
            return
        for c in self.kernel.named(f.name):
            given = len(f.parameters) == len(c.args) and self.facts.akin(c.function, f)
            if c.statement is None or not loops_around(c.node, c.function) or not given:
                continue
            text = index
            for i, parameter in enumerate(f.parameters):
                text = at(text, parameter, f"given__{i}")
            for i, argument in enumerate(c.args):
                text = at(text, f"given__{i}", argument)
            turn = self.going.turn(c.function, c.statement, text)
            if turn is not None:
                yield turn


def _bare(text: str) -> str:
    return text.removeprefix("this->")


def _names(call: ApiCall) -> set[str]:
    return {_bare(call.receiver), *map(_bare, call.args)}


def _tensor(call: ApiCall) -> str:
    """The global tensor of a store."""
    return root(_bare(call.args[0]))


def _either(one: Node, two: Node) -> bool:
    """Are two statements of different branches of one choice?"""
    above = {n.start_byte: n for n in _above(one) if n.type == "if_statement"}
    shared = next((n for n in _above(two) if n.type == "if_statement" and n.start_byte in above), None)
    other = shared.child_by_field_name("alternative") if shared is not None else None
    if other is None:
        return False
    return (one.start_byte >= other.start_byte) != (two.start_byte >= other.start_byte)


def _above(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


# -- changing ----------------------------------------------------------------------------------------------------------


def _edits(kernel: KernelProgram, rows: _Rows) -> Iterator[Edit]:
    yield from as_own(kernel, rows.line, rows.name, TOGETHER, _CLASS)
    for call in rows.made:
        if call.name == "InitBuffer":
            yield kernel.replace(call.path, call.node, f"this->{rows.name}.Begin({', '.join(call.args[1:])})")
    ended: dict[tuple[str, int], EvenTurn] = {}
    for turn in rows.turns:
        ended.setdefault((turn.function.path, turn.loop.end_byte), turn)
        yield kernel.before(turn.function.path, turn.statement, f"this->{rows.name}.Ahead({turn.left}, {turn.step});")
    for turn in ended.values():
        yield kernel.after(turn.function.path, turn.loop, f"this->{rows.name}.Flush();")
    for store in rows.stores:
        call = store.call
        tensor, index = indexed(call.args[0])
        alone = f"if (this->{rows.name}.Alone({tensor}, {index or 0}, {store.size})) {{ "
        yield Edit(call.path, store.statement.start_byte, store.statement.start_byte, alone)
        yield Edit(call.path, store.statement.end_byte, store.statement.end_byte, " }")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for rows in _Finder(kernel).found():
        names = ", ".join(dict.fromkeys(_tensor(s.call) for s in rows.stores))
        change = f"rows of {names} stored several at a time"
        yield Change(f"{title_of(kernel, rows.line)}::{rows.name}", change, merged(_edits(kernel, rows)))


def _plain(kernel: KernelProgram, call: ApiCall) -> Iterator[Edit]:
    """A call of the class, as a queue has it."""
    if call.name in ("Ahead", "Flush") and call.statement is not None:
        yield kernel.delete(call.path, call.statement)
    elif call.name == "Alone":
        yield from unguarded(call)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Each row stored by itself."""
    return queues_again(kernel, _OURS, lambda c: _plain(kernel, c), "is stored a row at a time")


STORED_TOGETHER = Motif(
    name="stored-together",
    title="Several rows in one store",
    description="A row, or the one number of a row, that each turn stores by itself pays a store's issue and four "
    "calls of a queue. They lie evenly in global memory: the queue's tensors hold as many as 8 KB more have room for, "
    "and one store takes them all.",
    bottlenecks=("small copies", "scalar"),
    preconditions="Nobody reads what is stored, or adds to it; rows are of one length; the Unified Buffer has room.",
    faster=_faster,
    slower=_slower,
    together="no",
)
