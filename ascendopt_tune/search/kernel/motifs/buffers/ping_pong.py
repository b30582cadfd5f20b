"""Buffers by hand that every turn fills again: two halves in turn, so that a turn's copies don't wait for the last one.

``load; SetFlag<MTE2_V>; compute; SetFlag<V_MTE3>; store; SetFlag<MTE3_MTE2>; WaitFlag`` on TBufs has every copy in wait
for the copy out before it. With two halves of each buffer a turn waits for the last but one.

1. A turn is the body of the loop that holds every access of a nest of loops (reading/traced.py), through calls.
2. Buffers that are loaded, and those that are stored, become halves (``halves``); or those that are loaded alone, and
   what is stored is waited for as before (``loaded``). A turn must have written what it reads of them.
3. ``PingPong`` says which half, sets a flag where a turn begins and waits for that of the turn before: all but the
   last turn's work is done then. Behind the loop everything is waited for.
4. Flags between turns are left out: those in front of or behind all that their pipes do in a turn, and those that a
   turn sets for the next one, with the first in front of the turns and the last behind them. The flags that order a
   turn's own steps stay.
5. A tensor that is taken from a queue once and kept is a TBuf's (unqueued.py); such a kernel is asked as that.
6. Twice the bytes often have no room: each is also offered with less of the Unified Buffer told to the tiling program
   (``room``), and with a constant that is the kernel's own share of it halved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from .....sources.cpp import Edit, Function, apply_edits, walk
from ...reading.classes import numbered
from ...reading.kernel_program import LOOPS, KernelProgram, flat
from ...reading.traced import Buffers, Trace, UnclearTrace
from ..motif import Change, Motif, whole_lines
from ..waiting.flags import pairs
from .halves import FLAG, PING_PONG, Flags, Halves, Loop, Turn
from .unqueued import kept_as_buffers

_HINT = re.compile(r"\bTBuf\b")
_GIVEN_UB = re.compile(r"CoreMemType::UB\s*,\s*([\w.>-]+)\s*\)\s*;")
_LARGE = 1 << 15  # bytes of a buffer that are a share of UB rather than of a row
_OURS = re.compile(rf"{PING_PONG}<([0-2]), ([0-2]), ([0-2])>")


class _Finder:
    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel = kernel
        found = {
            (block.function.path, one.start_byte): (block.function, one, two, event.removeprefix("HardEvent::"))
            for block, one, two, event in pairs(kernel)
        }
        calls = frozenset(key for key, (_, one, two, _) in found.items() if one == two)
        waits = {(f.path, two.start_byte) for f, one, two, _ in found.values() if one != two}
        self.flags = Flags(found, waits, calls)
        self.loops = {(f.path, n.start_byte): (f, n) for f in kernel.functions for n in walk(f.body) if n.type in LOOPS}
        self.kin: dict[str, Buffers] = {}
        self.sites: dict[str, int] = {}

    def found(self) -> Iterator[Change]:
        for turn in self._turns():
            for only_loaded in (True, False):
                change = Halves(self.kernel, self.flags, turn, only_loaded).change()
                if change is not None:
                    yield from self._offered(turn, only_loaded, *change)

    def _offered(self, turn: Turn, only_loaded: bool, edits: tuple[Edit, ...], count: int) -> Iterator[Change]:
        what = "loaded" if only_loaded else "halves"
        site = numbered(self.sites, f"{turn.g.name}/{what}")
        title = f"{count} buffers of {turn.g.name} take turns between two halves"
        yield Change(site, title, edits)
        less, shares = self._less_room(edits, count), self._shares(edits)
        if less or shares:
            yield Change(f"{site}/room", f"{title}, of smaller tiles", (*edits, *shares), less)

    def _shares(self, made: Sequence[Edit]) -> tuple[Edit, ...]:
        """The kernel's own shares of the Unified Buffer in the lengths of what is made longer, halved."""
        longer = {(e.path, e.start) for e in made}
        words = {
            w
            for c in self.kernel.named("InitBuffer")
            if len(c.args) == 2 and (c.path, c.arguments[1].start_byte) in longer
            for w in re.findall(r"\w+", c.args[1])
        }
        shares = [c for c in self.kernel.constants if c.name in words and c.value >= _LARGE]
        return tuple(Edit(c.path, c.start, c.end, str(c.value // 2 // 32 * 32)) for c in shares)

    def _less_room(self, made: Sequence[Edit], halved: int) -> tuple[Edit, ...]:
        """Less of the Unified Buffer for the tiling program, where it asks how much there is.

        By the number of buffers of that length where all that are made twice as long have one, else half of it.
        """
        longer = {(e.path, e.start) for e in made}
        lengths = [
            (flat(c.args[1]), (c.path, c.arguments[1].start_byte) in longer)
            for c in self.kernel.named("InitBuffer")
            if len(c.args) == 2
        ]
        own = {length for length, is_longer in lengths if is_longer}
        alike = sum(length in own for length, _ in lengths)
        share = f"{alike} / {alike + halved}" if len(own) == 1 else "1 / 2"
        edits = list[Edit]()
        for path, text in self.kernel.tiling.items():
            for m in _GIVEN_UB.finditer(text):
                at = len(text[: m.end()].encode())
                edits.append(Edit(path, at, at, f" {m[1]} = {m[1]} * {share} / 32 * 32;"))
        return tuple(edits)

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _turns(self) -> Iterator[Turn]:
        found: dict[Loop, Turn] = {}
        for f, loop in self.loops.values():
            turn = self._turn(f, loop)
            if turn is not None:
                key = turn.chain[-1]
                if key not in found or len(turn.chain) > len(found[key].chain):
                    found[key] = turn
        yield from found.values()

    def buffers(self, f: Function) -> Buffers:
        name = self.kernel.class_of(f)
        if name not in self.kin:
            self.kin[name] = Buffers(self.kernel, f)
        return self.kin[name]

    def _turn(self, f: Function, loop: Node) -> Turn | None:
        if not self.kernel.class_of(f) or not self.buffers(f).names or _parent(loop) != "compound_statement":
            return None
        if not any(c.start_byte for c in loop.named_children if c.type == "compound_statement"):
            return None
        try:
            env, _ = self.buffers(f).before(f, loop.start_byte)
            trace = Trace(self.buffers(f), self.flags.calls).run(f, [loop], env)
        except UnclearTrace:
            return None
        busy = [s for s in trace.steps if s.kind != "flag"]
        if not any(s.kind == "load" for s in busy):
            return None
        chain = busy[0].loops
        while chain and any(s.loops[: len(chain)] != chain for s in busy):
            chain = chain[:-1]
        if not chain or any(s.loops[: len(chain)] != chain for s in trace.steps):
            return None
        g, inner = self.loops[chain[-1]]
        body = inner.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            return None
        return Turn(f, loop, g, inner, body, trace, chain)


def _parent(node: Node) -> str:
    return node.parent.type if node.parent is not None else ""


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    text = "".join(kernel.files.values())
    for path, source in kernel.files.items():
        for m in _OURS.finditer(source):
            if set(m.groups()) <= {"0", "2"} and "2" in m.groups():
                at = len(source[: m.start()].encode())
                kind = f"{PING_PONG}<{', '.join(n.replace('2', '1') for n in m.groups())}>"
                edit = Edit(path, at, at + len(m[0]), kind)
                yield Change(f"flags/{m[0]}", "a turn waits for the last but one", (edit,))
    if not FLAG.search(text):
        return
    known = set[str]()
    for change in _Finder(kernel).found() if _HINT.search(text) else ():
        known.add(change.site)
        yield change
    yield from _of_kept_tensors(kernel, known)


def _of_kept_tensors(kernel: KernelProgram, known: Collection[str]) -> Iterator[Change]:
    """What there is besides where a tensor of a queue is taken once and kept, as a buffer by hand would be."""
    plain = kept_as_buffers(kernel)
    for change in _Finder(plain).found() if plain is not None else ():
        if plain is not None and change.site not in known:
            whole = apply_edits(plain.files, change.edits)
            yield Change(f"{change.site}/kept", change.change, whole_lines(kernel, whole), change.tiling_edits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Each turn behind all of the last one, as if there were no halves."""
    for path, source in kernel.files.items():
        for m in _OURS.finditer(source):
            if "1" in m.groups():
                at = len(source[: m.start()].encode())
                kind = f"{PING_PONG}<{', '.join(n.replace('1', '2') for n in m.groups())}>"
                edit = Edit(path, at, at + len(m[0]), kind)
                yield Change(f"flags/{m[0]}", "a turn waits for all of the last one", (edit,))


PING_PONG_BUFFERS = Motif(
    name="ping-pong",
    title="Two halves of what is made by hand",
    description="Buffers of TBufs, or tensors that are taken from a queue once and kept, that every turn fills again "
    "make its copies in wait for the last turn's instructions and copies out, by flags between turns. With two halves "
    "of each, in turn, and flags by turns, a turn waits for the last but one.",
    bottlenecks=("no overlap", "copies", "memory bandwidth", "small copies", "vector"),
    preconditions="A turn writes what it reads of these buffers; no memory is stored in one turn and loaded in the "
    "next; twice the bytes have room, or the tiling program takes smaller tiles when it is told of less.",
    faster=_faster,
    slower=_slower,
    together="no",
)
