"""A loop over tiles whose buffers by hand become two halves: what must hold for it, and the edits (ping_pong.py)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.classes import families, in_front, merged
from ...reading.kernel_program import ApiCall, KernelProgram, where
from ...reading.traced import MadeTensor, Trace, TracedStep, UnclearTrace, buffer_of

PING_PONG = "PingPong"  # the class of the object that a turn asks for its halves
#: A flag between turns, as written, or a barrier of all pipes.
FLAG = re.compile(r"HardEvent::(?:V_MTE2|MTE3_V|MTE3_MTE2)\b|PIPE_ALL|PIPE_V,\s*PIPE_MTE2|PIPE_MTE3,\s*PIPE_(?:V|MTE2)")
_NAME = "pingPong"
_EVENTS = ("V_MTE2", "MTE3_V", "MTE3_MTE2")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PATH = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*")
_LONE = re.compile(r"EVENT_ID[1-9]|^\s*[1-9]")
_LEAVES = ("return_statement", "goto_statement")
_CLASS = f"""\
#ifndef PING_PONG
#define PING_PONG
// Halves of buffers that turns take in turn. A number says how far an event is waited for: 0 not at all, 1 but for the
// last turn, 2 for all turns before. From vector unit to copies in, from copies out to vector unit, and to copies in.
template <int loaded, int stored, int both>
class {PING_PONG} {{
 public:
  __aicore__ inline void Begin() {{
    turn = 0;
    Take<AscendC::HardEvent::V_MTE2, loaded>(toLoad);
    Take<AscendC::HardEvent::MTE3_V, stored>(toCompute);
    Take<AscendC::HardEvent::MTE3_MTE2, both>(toLoadStored);
  }}
  __aicore__ inline void Turn() {{
    Next<AscendC::HardEvent::V_MTE2, loaded>(toLoad);
    Next<AscendC::HardEvent::MTE3_V, stored>(toCompute);
    Next<AscendC::HardEvent::MTE3_MTE2, both>(toLoadStored);
    turn++;
  }}
  __aicore__ inline void End() {{
    GiveBack<AscendC::HardEvent::V_MTE2, loaded>(toLoad);
    GiveBack<AscendC::HardEvent::MTE3_V, stored>(toCompute);
    GiveBack<AscendC::HardEvent::MTE3_MTE2, both>(toLoadStored);
  }}
  // The turn's half of a buffer.
  template <typename T, typename BUFFER>
  __aicore__ inline AscendC::LocalTensor<T> Half(BUFFER& buffer) {{
    AscendC::LocalTensor<T> halves = buffer.template Get<T>();
    return halves[turn % 2 * (halves.GetSize() / 2)];
  }}

 private:
  template <AscendC::HardEvent event, int far>
  __aicore__ inline void Take(event_t (&ids)[2]) {{
    if constexpr (far > 0) {{
      // The first one that is free may be known to others, by FetchEventID.
      const auto first = AscendC::GetTPipePtr()->AllocEventID<event>();
      ids[0] = static_cast<event_t>(AscendC::GetTPipePtr()->AllocEventID<event>());
      ids[1] = static_cast<event_t>(AscendC::GetTPipePtr()->AllocEventID<event>());
      AscendC::GetTPipePtr()->ReleaseEventID<event>(first);
      if constexpr (far == 1) AscendC::SetFlag<event>(ids[1]);
    }}
  }}
  template <AscendC::HardEvent event, int far>
  __aicore__ inline void Next(event_t (&ids)[2]) {{
    if constexpr (far > 0) {{
      AscendC::SetFlag<event>(ids[turn % 2]);
      AscendC::WaitFlag<event>(ids[(turn + 2 - far) % 2]);
    }}
  }}
  template <AscendC::HardEvent event, int far>
  __aicore__ inline void GiveBack(event_t (&ids)[2]) {{
    if constexpr (far > 0) {{
      if constexpr (far == 1) AscendC::WaitFlag<event>(ids[(turn + 1) % 2]);
      AscendC::SetFlag<event>(ids[0]);
      AscendC::WaitFlag<event>(ids[0]);
      AscendC::GetTPipePtr()->ReleaseEventID<event>(ids[0]);
      AscendC::GetTPipePtr()->ReleaseEventID<event>(ids[1]);
    }}
  }}

  event_t toLoad[2], toCompute[2], toLoadStored[2];
  uint32_t turn = 0;
}};
#endif

"""

Loop = tuple[str, int]  # path, first byte


@dataclass(frozen=True)
class Flags:
    """By place: flags that are set and waited for at once; ``waits``: the waits of those; ``calls``: those that are
    one call."""

    pairs: Mapping[Loop, tuple[Function, Node, Node, str]]
    waits: Collection[Loop]
    calls: frozenset[Loop]


@dataclass(frozen=True)
class Turn:
    """A nest of loops from ``outer`` of function ``f`` in, and the loop of ``g`` whose body has all accesses."""

    f: Function
    outer: Node
    g: Function
    inner: Node
    body: Node
    trace: Trace
    chain: tuple[Loop, ...]

    def steps(self, *kinds: str) -> list[TracedStep]:
        return [s for s in self.trace.steps if s.kind in kinds]


class Halves:
    """One turn, its buffers as halves."""

    def __init__(self, kernel: KernelProgram, flags: Flags, turn: Turn, only_loaded: bool) -> None:
        self.kernel, self.flags, self.turn = kernel, flags, turn
        self.all = turn.trace.buffers
        self.loaded = _of(turn.steps("load"))
        self.stored = _of(turn.steps("store"))
        self.halved = self.loaded if only_loaded else self.loaded | self.stored
        self.only_loaded = only_loaded

    def change(self) -> tuple[tuple[Edit, ...], int] | None:
        """(edits, how many buffers are halved), or None where something isn't known."""
        if not self._sound() or (self.only_loaded and not self.stored - self.loaded):
            return None
        apart = self._left_out()
        if not self._only_here(apart):
            return None
        made = self._made()
        again = self._again()
        holder = self._holder()
        if not apart or made is None or again is None or holder is None:
            return None
        path, turn = self.turn.g.path, self.turn
        head = turn.body.start_byte + 1
        indent = self.kernel.indent(path, turn.body.named_children[0]) if turn.body.named_children else ""
        lines = "".join(f"\n{indent}{line}" for line in (f"this->{_NAME}.Turn();", *again))
        edits = [*apart, *made, *self._gets(), *holder, Edit(path, head, head, lines)]
        edits.append(self.kernel.before(turn.f.path, turn.outer, f"this->{_NAME}.Begin();"))
        edits.append(self.kernel.after(turn.f.path, turn.outer, f"this->{_NAME}.End();"))
        return merged(edits), len(self.halved)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def _sound(self) -> bool:
        turn = self.turn
        if not self.halved or not self.halved <= self.all.names or not self.loaded:
            return False
        if {buffer_of(u) for u in turn.trace.from_before} & self.halved:
            return False
        if turn.steps("set") or self._met_in_memory() or _NAME in self._texts():
            return False
        if any(n.type in _LEAVES for loop in (turn.outer, turn.inner) for n in walk(loop)):
            return False
        return self._loads_are_ordered() and self._free_flags() and self._read_elsewhere() == set()

    def _loads_are_ordered(self) -> bool:
        """Is what a turn loads besides put into its queue? Else the flags that go may be what keeps its turns apart."""
        loaded = {u.removeprefix("queue:") for s in self.turn.steps("load") for u in s.units if u.startswith("queue:")}
        calls = (c for f in self.all.functions for c in self.kernel.calls_of(f) if c.name == "EnQue")
        queued = {_last(a) for c in calls for a in c.args}
        return loaded <= queued

    def _texts(self) -> str:
        """The functions that a turn runs, and the classes that may have the object."""
        functions = {where(s.function): s.function for s in self.turn.trace.steps}
        return "".join(self.kernel.text(f.path, f.node) for f in functions.values())

    def _met_in_memory(self) -> bool:
        """Is global memory that a turn stores to loaded from in another one, by names or by where they are set?"""
        into, of = (frozenset(u for s in self.turn.steps(k) for u in s.outside) for k in ("store", "load"))
        return bool({self._base(u) for u in into} & {self._base(u) for u in of})

    def _base(self, unit: str) -> str:
        name = unit.removeprefix("gm:")
        for c in self.kernel.named("SetGlobalBuffer"):
            if _last(c.receiver) == name and c.args:
                given = re.sub(r"\(?\s*__gm__[^)>]*[)>]|reinterpret_cast\s*<|static_cast\s*<", " ", c.args[0])
                found = _PATH.search(given)
                if found:
                    return f"{where(c.function)}{found[0]}"
        return unit

    def _free_flags(self) -> bool:
        """Is no flag of our events set with an event of a number that ours may be?"""
        for c in self.kernel.calls:
            if c.name in ("SetFlag", "set_flag") and c.args and FLAG.search(f"{c.template}{', '.join(c.args)}"):
                event = c.args[-1].removeprefix("this->")
                given = self.kernel.words_assigned.get(event, set()) | {event}
                if any(_LONE.search(g) for g in given):
                    return False
        return True

    def _only_here(self, apart: Sequence[Edit]) -> bool:
        """Are functions that change called by nobody but the turn?"""
        turn = self.turn
        gets = [(f.path, c.node.start_byte) for f, c, b, _ in turn.trace.got if b in self.halved]
        places = [(e.path, e.start) for e in apart] + gets
        changed = {
            where(f): f
            for f in self.all.functions
            if where(f) != where(turn.g)
            and any(f.path == path and f.node.start_byte <= at < f.node.end_byte for path, at in places)
        }
        pending, known = list(changed.values()), set(changed)
        while pending:
            g = pending.pop()
            for c in self.kernel.named(g.name):
                if len(c.args) > len(g.parameters) or self.kernel.class_of(c.function) not in self.all.kin:
                    continue
                inside = turn.inner.start_byte <= c.node.start_byte < turn.inner.end_byte
                if where(c.function) == where(turn.g) and inside:
                    continue
                if where(c.function) in {where(turn.g), where(turn.f)}:
                    return False
                if where(c.function) not in known:
                    known.add(where(c.function))
                    pending.append(c.function)
            if not any(True for _ in self.kernel.named(g.name)):
                return False
        return True

    def _read_elsewhere(self) -> set[str]:
        """Halved buffers that other code of the class reads before it has written them."""
        out = set[str]()
        turn, inside = self.turn, {where(s.function) for s in self.turn.trace.steps} | {where(self.turn.g)}
        inside |= {where(f) for f, *_ in turn.trace.got}
        behind = list(_behind(turn.outer))
        for g, nodes in [(turn.f, behind), *((g, [g.body]) for g in self.all.functions if where(g) not in inside)]:
            if where(g) == where(turn.f) and nodes != behind:
                continue
            text = "".join(self.kernel.text(g.path, n) for n in nodes)
            if not self._mentions(text):
                continue
            try:
                env, _ = self.all.before(g, nodes[0].start_byte) if nodes else ({}, [])
                trace = Trace(self.all, self.flags.calls).run(g, nodes, env)
            except UnclearTrace:
                return set(self.halved)
            touched = [s for s in trace.steps if s.buffers & self.halved]
            before = {buffer_of(u) for u in trace.from_before} & self.halved
            out |= before if not all(self._in_turn(s) for s in touched) else set()
        return out

    def _in_turn(self, step: TracedStep) -> bool:
        return self.turn.chain[-1] in step.loops

    def _mentions(self, text: str) -> bool:
        names = set(_WORD.findall(text))
        tensors = {n for n, units in self.all.members.items() if {buffer_of(u) for u in units} & self.halved}
        return bool(names & (self.halved | tensors))

    # -- edits ---------------------------------------------------------------------------------------------------------

    def _left_out(self) -> list[Edit]:
        """Flags and barriers between turns, taken out."""
        edits, steps = list[Edit](), self.turn.trace.steps
        work = [(i, s) for i, s in enumerate(steps) if s.kind not in ("flag", "barrier")]
        seen = set[tuple[str, int]]()
        alone = list[tuple[int, TracedStep, str]]()
        for i, s in enumerate(steps):
            key = (s.function.path, s.statement.start_byte)
            if s.kind not in ("flag", "barrier") or key in seen or key in self.flags.waits:
                continue
            seen.add(key)
            places = [k for k, t in enumerate(steps) if t.function.path == key[0] and t.statement == s.statement]
            found = self.flags.pairs.get(key)
            if s.kind == "barrier":
                done = not self.turn.steps("get") and s.loops == self.turn.chain
                if done and (all(k > i for k, _ in work) or all(k < i for k, _ in work)):
                    edits.append(self.kernel.delete(s.function.path, s.statement))
            elif found is None:
                alone.append((i, s, _event(s.call)))
            elif found[3] in _EVENTS and s.loops == self.turn.chain and self._between(places, found[3], work):
                _, one, two, _ = found
                edits += [self.kernel.delete(s.function.path, n) for n in dict.fromkeys((one, two))]
        return [*edits, *self._across(alone)]

    def _between(self, places: Sequence[int], event: str, work: Sequence[tuple[int, TracedStep]]) -> bool:
        """Does a flag, where it is set, order nothing that the turn itself does?"""
        one, _, other = event.partition("_")
        for at in places:
            before = {b for k, s in work if k < at and _pipe(s) == one for b in s.buffers}
            behind = [(s, s.buffers) for k, s in work if k > at and _pipe(s) != one]
            waits = any(_pipe(s) == other for s, _ in behind)
            if before and waits and any(buffers & before for _, buffers in behind):
                return False
        return True

    def _across(self, alone: Sequence[tuple[int, TracedStep, str]]) -> Iterator[Edit]:
        """Flags that a turn sets and the next one waits for, each of them in one place; and the first one, set in
        front of the turns, with the last one, waited for behind them."""
        for i, s, event in alone:
            if event not in _EVENTS or s.call.name not in ("WaitFlag", "wait_flag"):
                continue
            mine = [(k, t) for k, t, e in alone if e == event and t.call.args[-1:] == s.call.args[-1:]]
            others = [
                c
                for c in self.kernel.calls
                if c.args and c.name in ("SetFlag", "WaitFlag", "set_flag", "wait_flag")
                and _event(c) == event and c.args[-1] == s.call.args[-1]
                and self.kernel.class_of(c.function) in self.all.kin | {""}
            ]  # fmt: skip
            if len(mine) != 2 or mine[1][0] <= i or mine[1][1].call.name not in ("SetFlag", "set_flag"):
                continue
            inside = {(t.call.path, t.call.node.start_byte) for _, t in mine}
            around = [c for c in others if (c.path, c.node.start_byte) not in inside]
            if not around or self._first_and_last(around, event):
                for _, t in mine:
                    yield self.kernel.delete(t.function.path, _whole(t.statement))
                yield from (self.kernel.delete(c.path, c.statement) for c in around if c.statement is not None)

    def _first_and_last(self, around: Sequence[ApiCall], event: str) -> bool:
        """Are flags set once in front of the turns and waited for once behind them, and is that done by ours?"""
        if len(around) != 2 or not self._numbers()[_EVENTS.index(event)]:
            return False
        one, two = sorted(around, key=lambda c: c.node.start_byte)
        outer = self.turn.outer
        beside = all(
            c.path == self.turn.f.path and c.statement is not None and c.statement.parent == outer.parent
            for c in (one, two)
        )
        named = one.name.lower().startswith("set") and two.name.lower().startswith("wait")
        return beside and named and one.node.end_byte <= outer.start_byte and two.node.start_byte >= outer.end_byte

    def _made(self) -> list[Edit] | None:
        """Each halved buffer twice as long; None where one is made otherwise."""
        edits, done = list[Edit](), set[str]()
        for c in self.kernel.named("InitBuffer"):
            name = _last(c.args[0]) if c.args else ""
            if name in self.halved and self.kernel.class_of(c.function) in self.all.kin:
                if len(c.args) != 2:
                    return None
                done.add(name)
                edits.append(self.kernel.replace(c.path, c.arguments[1], f"2 * (({c.args[1]} + 31) / 32 * 32)"))
        return edits if done == self.halved else None

    def _gets(self) -> Iterator[Edit]:
        """What a turn takes of its buffers, as halves."""
        for f, call, buffer, loops in self.turn.trace.got:
            if buffer in self.halved and self.turn.chain[-1] in loops:
                yield self.kernel.replace(f.path, call.node, self._half(call))

    def _half(self, call: ApiCall) -> str:
        kind = call.template.strip().removeprefix("<").removesuffix(">")
        if call.name == "GetWithOffset":
            inner = f"this->{_NAME}.template Half<uint8_t>({call.receiver})[{call.args[1]}]"
            return f"{inner}.template ReinterpretCast<{kind}>()"
        return f"this->{_NAME}.template Half<{kind}>({call.receiver})"

    def _again(self) -> list[str] | None:
        """Tensors that were made in front of the turns, made again in each; None where that can't be said."""
        turn, out = self.turn, list[str]()
        used = {buffer_of(u) for s in turn.trace.steps for u in s.units} & self.halved
        inside = {m.name for m in turn.trace.made}
        _, before = self.all.before(turn.g, turn.inner.start_byte)
        for m in [*self.all.made, *before]:
            if m.name not in inside and {buffer_of(u) for u in m.units} & used:
                line = self._made_again(m)
                if line is None:
                    return None
                out += [line] if line not in out else []
        names = [line.partition(" = ")[0] for line in out]
        return out if len(set(names)) == len(names) and not self._handed_in() else None

    def _made_again(self, m: MadeTensor) -> str | None:
        """The assignment of a tensor, of its turn's half; None where its names may be of one function alone."""
        text, path = self.kernel.text(m.function.path, m.value), m.function.path
        local = m.name not in self.all.tensors
        if local and re.match(r"const\b|[^=]*&", self.kernel.text(path, m.statement)):
            return None
        if not local and self._local_words(m) & set(_WORD.findall(text)):
            return None
        for n in walk(m.value):
            c = self.kernel.call_at(m.function, n) if n.type == "call_expression" else None
            if c is not None and c.name in ("Get", "GetWithOffset") and _last(c.receiver) in self.halved:
                text = text.replace(self.kernel.text(path, c.node), self._half(c))
        line = f"{'' if local else 'this->'}{m.name} = {text};"
        condition = self._compiled_for(m)
        return f"if constexpr {condition} {{ {line} }}" if condition else line

    def _compiled_for(self, m: MadeTensor) -> str:
        """The condition of the template under which a tensor is made; empty where it always is."""
        block = m.statement.parent
        choice = block.parent if block is not None and block.type == "compound_statement" else block
        if choice is None or choice.type != "if_statement" or block != choice.child_by_field_name("consequence"):
            return ""
        condition = choice.child_by_field_name("condition")
        text = self.kernel.text(m.function.path, choice)
        fits = condition is not None and re.match(r"if\s+constexpr\b", text) is not None
        return self.kernel.text(m.function.path, condition) if fits and condition is not None else ""

    def _local_words(self, m: MadeTensor) -> set[str]:
        """What the function that makes a tensor has of its own: no other function knows it."""
        out = set(m.function.parameters)
        for n in walk(m.function.body):
            if n.type == "declaration":
                out |= {self.kernel.text(m.function.path, d).partition("=")[0].strip() for d in n.named_children}
        return out

    def _handed_in(self) -> bool:
        """Does the function of the turn get a halved buffer's tensor from its caller?"""
        g = self.turn.g
        given = any("LocalTensor" in self.kernel.text(g.path, n) for n in _parameters(g))
        return given and (where(g) == where(self.turn.f) or bool(self.turn.trace.handed & self.halved))

    def _numbers(self) -> tuple[int, int, int]:
        """How far each of the events is waited for, in the order of ``_EVENTS``."""
        vector = _of(self.turn.steps("vector", "get"))
        return (
            1 if self.loaded & vector else 0,
            (2 if self.only_loaded else 1) if self.stored & vector else 0,
            1 if self.halved & self.stored & self.loaded else 0,
        )

    def _holder(self) -> list[Edit] | None:
        """The object as a member of the class that all functions which ask for it are of, or derive from."""
        functions = [self.turn.f, self.turn.g, *(f for f, _, b, _ in self.turn.trace.got if b in self.halved)]
        asked = {self.kernel.class_of(f) for f in functions}
        family_of = families(self.kernel)
        base = next((c for c in sorted(asked) if asked <= family_of.get(c, frozenset())), None)
        found = self.kernel.class_node(next(f for f in functions if self.kernel.class_of(f) == base)) if base else None
        if found is None:
            return None
        path, node = found
        body = node.child_by_field_name("body")
        if body is None or _NAME in self.kernel.text(path, node):
            return None
        numbers, vector = self._numbers(), _of(self.turn.steps("vector", "get"))
        if self.only_loaded and self.stored & self.loaded & vector and not self.stored - self.loaded:
            return None
        kind = f"{PING_PONG}<{', '.join(map(str, numbers))}>"
        end = body.end_byte - 1
        written = in_front(self.kernel, path, node, PING_PONG, _CLASS)
        return [
            *([written] if written is not None else []),
            Edit(path, end, end, f"\n public:\n  {kind} {_NAME};\n"),
        ]


def _of(steps: Sequence[TracedStep]) -> frozenset[str]:
    """Buffers that steps touch; none of those that a queue has."""
    return frozenset(b for s in steps for b in s.buffers if not b.startswith("queue:"))


def _pipe(step: TracedStep) -> str:
    return {"load": "MTE2", "store": "MTE3", "vector": "V"}.get(step.kind, "S")


def _event(call: ApiCall) -> str:
    if call.name in ("SetFlag", "WaitFlag"):
        return call.template.strip("<> ").rpartition("::")[2]
    return "_".join(re.findall(r"PIPE_(\w+)", ", ".join(call.args))[:2])


def _last(name: str) -> str:
    return name.rpartition(".")[2].rpartition(">")[2].strip()


def _whole(statement: Node) -> Node:
    """The branch that has nothing but the statement, or the statement."""
    block = statement.parent
    around = block.parent if block is not None and block.type == "compound_statement" else block
    alone = block is not None and (block.type != "compound_statement" or block.named_child_count == 1)
    if alone and around is not None and around.type == "if_statement" and not around.child_by_field_name("alternative"):
        return around
    return statement


def _behind(loop: Node) -> Iterator[Node]:
    """Statements behind a loop, in its block and in those around."""
    node = loop
    while node.parent is not None and node.type != "function_definition":
        if node.parent.type == "compound_statement":
            yield from (n for n in node.parent.named_children if n.start_byte >= node.end_byte)
        node = node.parent


def _parameters(f: Function) -> Iterator[Node]:
    declarator = f.node.child_by_field_name("declarator")
    for n in walk(declarator) if declarator is not None else ():
        if n.type == "parameter_declaration":
            yield n
