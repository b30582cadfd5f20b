"""What the cube core answers is taken a turn later, beside its next product.

A vector core's turn is often: wait for scores, make weights of them, tell the cube core, wait for what it makes of
these, go on with that. Between telling and waiting it does nothing. With the second half of a turn behind the first
half of the next one, the product of one turn and the vector core's work of the next overlap.

1. A loop's turn ends with a flag to the cube core, the wait for its answer and the rest. The rest knows nothing that
   the turn sets; it moves behind the flag of the next turn, that of the last turn behind the loop.
2. The cube core may not write its next answer over one that nobody has read: a flag that isn't used yet tells it, and
   a member counts what it has answered.
3. A TBuf that the first half fills and the rest reads holds two turns, odd ones and even ones. Where the halves of a
   turn share more than that, nothing is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, declared_name, walk
from ...reading.api import COPY, VECTOR, reads, root, writes
from ...reading.kernel_program import LOOPS, ApiCall, Block, KernelProgram, neighbour
from ..motif import Change, Motif

_SET, _WAIT = "CrossCoreSetFlag", "CrossCoreWaitFlag"
_TURN, _BEHIND, _ANSWERS = "turnAhead", "turnsBehind", "answersOut"
_IDS = range(11)  # flags that CANN leaves to kernels
_ROOM = 512  # bytes beside the halves of a buffer, so that both start at a multiple of 32
_DEPTH = 8  # calls of own functions that are looked into
_GOT = re.compile(r"(\w+)\s*=\s*(?:this->)?(\w+)\s*\.\s*(?:template\s+)?Get\s*<")
_BUFFERS = re.compile(r"\bTBuf\s*<[^;{}()]*?>\s*([\w\s,]+);")
_FROM_CUBE = re.compile(r"<\s*(?:2|0[xX]0?2)\s*,\s*(?:AscendC::)?PIPE_FIX\s*>")
_WORD = re.compile(r"[A-Za-z_]\w*")

_Part = Sequence[tuple[Function, Node]]  # code, and the function it stands in


@dataclass(frozen=True)
class _Turn:
    """A turn of a vector core: ``first``, ``tell`` the cube core, ``wait`` for its answer, ``rest``."""

    block: Block
    loop: Node
    first: tuple[Node, ...]
    tell: ApiCall
    wait: ApiCall
    rest: tuple[Node, ...]


def _turns(kernel: KernelProgram) -> Iterator[_Turn]:
    for block in kernel.blocks:
        loop = block.node.parent
        if loop is None or loop.type not in LOOPS or loop.parent is None or loop.parent.type != "compound_statement":
            continue
        steps = [s for s in block.steps if s.node.type != "comment"]
        flags = [(i, s.call) for i, s in enumerate(steps) if s.call is not None and s.call.name in (_SET, _WAIT)]
        if [call.name for _, call in flags] != [_WAIT, _SET, _WAIT]:
            continue
        (_, _), (at, tell), (then, wait) = flags
        inside = [n for n in walk(block.node) if n.type == "call_expression"]
        others = sum(kernel.call_at(block.function, n).name in (_SET, _WAIT) for n in inside) > len(flags)
        leaves = any(n.type in ("break_statement", "continue_statement", "return_statement") for n in walk(loop))
        if then == at + 1 < len(steps) - 1 and not others and not leaves:
            first, rest = (tuple(s.node for s in part) for part in (steps[:at], steps[then + 1 :]))
            yield _Turn(block, loop, first, tell, wait, rest)


# -- what the halves of a turn share -----------------------------------------------------------------------------------


def _own(kernel: KernelProgram, call: ApiCall) -> list[Function]:
    """The kernel's own functions that a call may be of."""
    return [f for f in kernel.functions if f.name == call.name] if call.receiver in ("", "this") else []


def _reached(kernel: KernelProgram, f: Function, nodes: Iterable[Node]) -> list[tuple[Function, Node]]:
    """The nodes, and the bodies of the kernel's own functions that they call, directly or not."""
    out = [(f, n) for n in nodes]
    seen = set()
    for here, node in out:  # grows
        for n in walk(node):
            for g in _own(kernel, kernel.call_at(here, n)) if n.type == "call_expression" else ():
                if (g.path, g.node.start_byte) not in seen:
                    seen.add((g.path, g.node.start_byte))
                    out.append((g, g.body))
    return out


def _names(kernel: KernelProgram, path: str, node: Node) -> tuple[set[str], set[str]]:
    """(names declared in the code, names that it assigns or counts)."""
    declared, changed = set(), set()
    for n in walk(node):
        if n.type in ("init_declarator", "parameter_declaration", "declaration"):
            name = declared_name(n.child_by_field_name("declarator"))
            declared |= {kernel.text(path, name)} if name is not None else set()
        side = n.child_by_field_name("left") if n.type == "assignment_expression" else None
        side = n.child_by_field_name("argument") if n.type == "update_expression" else side
        if side is not None:
            changed.add(root(kernel.text(path, side).removeprefix("this->")))
    return declared, changed


def _outer(kernel: KernelProgram, part: _Part) -> set[str]:
    """Names that the code sets and its functions don't declare: members."""
    out: set[str] = set()
    for f, node in part:
        out |= _names(kernel, f.path, node)[1] - _names(kernel, f.path, f.node)[0]
    return out


def _words(kernel: KernelProgram, part: _Part) -> set[str]:
    return {w for f, node in part for w in _WORD.findall(kernel.text(f.path, node))}


def _independent(kernel: KernelProgram, turn: _Turn) -> bool:
    """Does the rest know nothing that a turn sets, and neither half a member that the other one sets?"""
    f = turn.block.function
    head = [n for key in ("initializer", "update") if (n := turn.loop.child_by_field_name(key)) is not None]
    set_here = {name for n in (*head, *turn.first) for names in _names(kernel, f.path, n) for name in names}
    if set_here & _words(kernel, [(f, n) for n in turn.rest]):
        return False
    first, rest = (_reached(kernel, f, part) for part in (turn.first, turn.rest))
    return not (_outer(kernel, first) & _words(kernel, rest) or _outer(kernel, rest) & _words(kernel, first))


@dataclass
class _Use:
    """What a half of a turn does with a buffer: is the first thing a read, is it read, is it written at all?"""

    reads_first: bool
    read: bool = False
    written: bool = False


def _uses(kernel: KernelProgram, f: Function, nodes: Iterable[Node], buffers: set[str]) -> dict[str, _Use]:
    """By buffer, code of own functions in its place."""
    out: dict[str, _Use] = {}

    def run(here: Function, node: Node, depth: int) -> None:
        alias = dict(_GOT.findall(kernel.text(here.path, here.node)))
        for n in walk(node):
            if n.type != "call_expression":
                continue
            call = kernel.call_at(here, n)
            known = call.name in VECTOR | COPY
            for word in dict.fromkeys(w for a in call.args for w in _WORD.findall(a)):
                name = alias.get(word, word)
                if name in buffers and call.name != "InitBuffer":
                    reading, writing = not known or word in reads(call), not known or word in writes(call)
                    use = out.setdefault(name, _Use(reading))
                    use.read, use.written = use.read or reading, use.written or writing
            for g in _own(kernel, call) if depth < _DEPTH else ():
                run(g, g.body, depth + 1)

    for node in nodes:
        run(f, node, 0)
    return out


def _carried(kernel: KernelProgram, turn: _Turn) -> list[str] | None:
    """Buffers that have to hold two turns; None where the halves of a turn share what can't be held twice."""
    texts = (source.data.decode("utf-8", "replace") for source in kernel.program.files.values())
    buffers = {name for text in texts for names in _BUFFERS.findall(text) for name in _WORD.findall(names)}
    f = turn.block.function
    before, behind = (_uses(kernel, f, part, buffers) for part in (turn.first, turn.rest))
    out = []
    for name in sorted(before.keys() & behind.keys()):
        one, two = before[name], behind[name]
        if one.written and two.reads_first and not one.reads_first and not two.written:
            out.append(name)
        elif (one.written or two.written) and (one.reads_first or two.reads_first):
            return None
    return out


# -- the rewrite -------------------------------------------------------------------------------------------------------


def flag_number(kernel: KernelProgram, flag: str) -> int | None:
    """The number of a flag: written so, or a constant's."""
    text = flag
    if not text[:1].isdigit():
        found = kernel.words_assigned.get(text.rpartition(":")[2].removeprefix("this->"), set())
        text = next(iter(found)) if len(found) == 1 else ""
    try:
        return int(text.rstrip("uUlL"), 0)
    except ValueError:
        return None


def _unused(kernel: KernelProgram) -> int | None:
    """A flag that the kernel doesn't use; None where that can't be told."""
    if any(kernel.named("REGIST_MATMUL_OBJ", "SyncAll")) or any(not c.args for c in kernel.named(_SET, _WAIT)):
        return None
    values = {flag_number(kernel, c.args[0]) for c in kernel.named(_SET, _WAIT)}
    return None if None in values else next((i for i in _IDS if i not in values), None)


def _answer(kernel: KernelProgram, turn: _Turn) -> ApiCall | None:
    """Where the cube core says that its answer is there, if it does so in one place, behind one statement."""
    (flag,) = turn.wait.args[:1] or ("",)
    found = [c for c in kernel.named(_SET) if c.args[:1] == (flag,)]
    if len(found) != 1 or _FROM_CUBE.fullmatch(found[0].template) is None or found[0].statement is None:
        return None
    return found[0]


def _members(kernel: KernelProgram, f: Function, lines: str, ending: str) -> Edit | None:
    """Members of the class of a method, and what its objects do at their end; None where that has no place."""
    found = kernel.class_node(f)
    if found is None or (ending and "~" in kernel.text(*found)):
        return None
    path, node = found
    body, title = node.child_by_field_name("body"), node.child_by_field_name("name")
    if body is None or title is None:
        return None
    name = kernel.text(path, title).partition("<")[0].strip()
    text = f"\n private:\n  {lines}"
    text += f"\n public:\n  __aicore__ inline ~{name}() {{ {ending} }}" if ending else ""
    kept = "\n private:" if node.type == "class_specifier" else "\n public:"
    return Edit(path, body.start_byte + 1, body.start_byte + 1, text + kept)


def _twice(kernel: KernelProgram, names: Sequence[str]) -> list[Edit] | None:
    """The buffers made two turns long, and every place that takes one the half of its turn; None if it can't be."""
    edits = []
    for name in names:
        lengths = [c for c in kernel.named("InitBuffer") if c.args[0].removeprefix("this->") == name]
        taken = [c for c in kernel.named("Get") if c.receiver.removeprefix("this->") == name]
        if len(lengths) != 1 or len(lengths[0].args) != 2 or not taken or any(c.args for c in taken):
            return None
        edits.append(kernel.replace(lengths[0].path, lengths[0].arguments[1], f"2 * ({lengths[0].args[1]}) + {_ROOM}"))
        for call in taken:
            text = kernel.text(call.path, call.node)
            half = f"[{_TURN} % 2 * (({text}.GetSize() / 2 + 31) / 32 * 32)]"
            edits.append(kernel.replace(call.path, call.node, text + half))
    return edits


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    free = _unused(kernel)
    for turn in _turns(kernel):
        answer = _answer(kernel, turn)
        if free is None or answer is None or answer.statement is None or not _independent(kernel, turn):
            continue
        product = neighbour(answer.statement, -1)
        carried = _carried(kernel, turn)
        doubled = _twice(kernel, carried) if carried is not None else None
        if doubled is None or product is None:
            continue
        f, path = turn.block.function, turn.block.function.path
        there = f"{turn.wait.spelled(_WAIT, str(free))};"
        counted = _members(kernel, answer.function, f"uint32_t {_ANSWERS} = 0;", f"if ({_ANSWERS} > 0) {{ {there} }}")
        ahead = _members(kernel, f, f"uint32_t {_TURN} = 0;", "")
        if counted is None or ahead is None or (counted.path, counted.start) == (ahead.path, ahead.start):
            continue
        read = turn.tell.spelled(
            f"{_SET}<2, {'AscendC::' if '::PIPE' in turn.tell.template else ''}PIPE_MTE2>", str(free)
        )
        steps = [kernel.text(path, n) for n in (turn.wait.statement or turn.wait.node, *turn.rest)]
        rest = " ".join([*steps, f"{read};"])
        last, wait = turn.rest[-1], turn.wait.statement or turn.wait.node
        edits = [
            kernel.before(path, turn.loop, f"uint32_t {_BEHIND} = 0;"),
            Edit(path, wait.start_byte, last.end_byte, f"{_TURN}++; if ({_BEHIND}++ > 0) {{ {rest} }}"),
            kernel.after(path, turn.loop, f"if ({_BEHIND} > 0) {{ {_TURN}++; {rest} {_TURN}--; }}"),
            kernel.before(answer.path, product, f"if ({_ANSWERS}++ > 0) {{ {there} }}"),
            counted,
            ahead,
            *doubled,
        ]
        site = f"{kernel.site(f, turn.loop)}/behind"
        yield Change(site, f"{f.name} takes what the cube core answers a turn later", tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``if (there is one) { wait; ... }`` at the end of a turn and behind the loop: in its own turn again."""
    for block in kernel.blocks:
        loop = block.node.parent
        last = block.steps[-1].node if block.steps else None
        behind = neighbour(loop, 1) if loop is not None and loop.type in LOOPS else None
        if last is None or behind is None or loop is None or _TURN in kernel.text(block.function.path, block.node):
            continue
        kept, moved = (_waiting(kernel, block.function, n) for n in (last, behind))
        if kept is None or kept != moved:
            continue
        path = block.function.path
        edits = (kernel.replace(path, last, kept), kernel.delete(path, behind))
        change = f"{block.function.name} waits for the cube core's answer in its own turn"
        yield Change(f"{kernel.site(block.function, loop)}/own", change, edits)


def _waiting(kernel: KernelProgram, f: Function, node: Node) -> str | None:
    """The statements of an ``if`` that begin with a wait for the other kind of core."""
    body = node.child_by_field_name("consequence") if node.type == "if_statement" else None
    if body is None or node.child_by_field_name("alternative") is not None or body.type != "compound_statement":
        return None
    statements = [c for c in body.named_children if c.type != "comment"]
    call = kernel.call_of(f, statements[0]) if statements else None
    if call is None or call.name != _WAIT:
        return None
    return " ".join(kernel.text(f.path, n) for n in statements)


DEFERRED_ANSWER = Motif(
    name="deferred-answer",
    title="The cube core's answer is taken a turn later",
    description="A vector core that tells the cube core what to multiply and waits for the product in the same turn "
    "leaves one of the two idle. With the product taken behind the next turn's first half, both work at the same time.",
    bottlenecks=("waits between cores", "synchronization", "no overlap"),
    preconditions="What is done with the product needs nothing of the turn but what TBufs carry; the workspace has "
    "two slots of what the vector core writes; a flag is free.",
    faster=_faster,
    slower=_slower,
    together="no",
)
