"""What the scalar unit reads of a tensor, computed by it: vector instructions of one element in front of the read go.

``Adds(t, t, e, 1); Sqrt(t, t, 1); Duplicate(u, 1.0f, 1); Div(t, u, t, 1)`` and then ``t.GetValue(0)`` are a sum, a root
and a quotient of one float. Each instruction costs its head and a barrier for it; the scalar unit waits for the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import indexed
from ...reading.api import ACCUMULATING, BINARY, SCALAR, VECTOR, is_barrier, root, writes
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram, flat
from ..motif import Change, Motif

_FORMULA = {
    "Muls": "{1} * {2}",
    "Adds": "{1} + {2}",
    "Mul": "{1} * {2}",
    "Add": "{1} + {2}",
    "Sub": "{1} - {2}",
    "Div": "{1} / {2}",
    "Sqrt": "sqrt({1})",
    "Rsqrt": "1.0f / sqrt({1})",
    "Reciprocal": "1.0f / {1}",
    "Duplicate": "{1}",
}
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN = ("expression_statement", "declaration")
_ASIDE = ("SetFlag", "WaitFlag", "set_flag", "wait_flag")  # calls that leave the vector pipe's results alone
_VALUE = re.compile(r"\w+(?:\[[^\]]*\])?\.GetValue\b")  # calls of their own
_NAME = "oneElement"


@dataclass(frozen=True)
class _Chain:
    """Steps of a block that compute an element which step ``read`` reads, at ``places``; ``value`` says what of."""

    block: Block
    steps: tuple[int, ...]
    read: int
    places: tuple[Node, ...]
    value: str


def read_by(call: ApiCall) -> str:
    """The operand that a GetValue reads one element of, as an instruction spells it."""
    tensor, at = call.receiver, flat(call.args[0])
    return flat(tensor) if at in ("0", "0u") else f"{flat(tensor)}[{at}]"


def _read(element: str) -> str:
    tensor, at = indexed(element)
    return f"{tensor}.GetValue({at or '0'})"


def _values(kernel: KernelProgram, block: Block, node: Node) -> list[tuple[str, Node]]:
    """(element, place) of what is read by GetValue below a node."""
    calls = (kernel.call_at(block.function, n) for n in walk(node) if n.type == "call_expression")
    return [(read_by(c), c.node) for c in calls if c.name == "GetValue" and c.receiver and len(c.args) == 1]


def _operands(call: ApiCall) -> tuple[str, ...]:
    """Tensors that an instruction reads, as written."""
    if call.name == "Duplicate":
        return ()
    return tuple(map(flat, call.args[1:3] if call.name in BINARY else call.args[1:2]))


def _is_one(call: ApiCall | None, ones: frozenset[str]) -> bool:
    """Is it an instruction of one element in its count form that the scalar unit can do as well?"""
    if call is None or call.name not in _FORMULA or call.receiver:
        return False
    length = 4 if call.name in BINARY | SCALAR else 3
    return len(call.args) == length and flat(call.args[-1]) in ones


def _words(kernel: KernelProgram, block: Block, step: BlockStep) -> set[str]:
    return set(_WORD.findall(kernel.text(block.function.path, step.node)))


def _chain(
    kernel: KernelProgram, block: Block, read: int, element: str, ones: frozenset[str]
) -> tuple[list[int], set[str]]:
    """(instructions of one element in front of a read that it is made by, the last first; what they are made of)."""
    needed, chain = {element}, list[int]()
    for j in range(read - 1, -1, -1):
        call = block.steps[j].call
        if call is not None and _is_one(call, ones) and flat(call.args[0]) in needed:
            chain.append(j)
            needed = needed - {flat(call.args[0])} | set(_operands(call))
        elif {root(n) for n in needed} & _words(kernel, block, block.steps[j]):
            break
        if not needed:
            break
    return chain, needed


def _value(block: Block, chain: list[int], element: str) -> str:
    """What the chain makes of the elements it begins with, as an expression of the scalar unit."""
    known: dict[str, str] = {}
    for j in reversed(chain):
        call = block.steps[j].call
        assert call is not None
        inputs = [known.get(o, _read(o)) for o in _operands(call)]
        if call.name in SCALAR or call.name == "Duplicate":
            inputs.append(flat(call.args[-2]))
        if call.name != "Sqrt":
            inputs = [_factor(text) for text in inputs]
        known[flat(call.args[0])] = _FORMULA[call.name].format("", *inputs)
    return known[element]


def _factor(text: str) -> str:
    """An expression that stays together as part of another one."""
    return text if re.fullmatch(r"[\w.>:-]+|[\w.]+\((?:[^()]|\([^()]*\))*\)", text) else f"({text})"


def unread(
    kernel: KernelProgram, f: Function, name: str, after: int, taken: frozenset[int] = frozenset(), depth: int = 0
) -> bool:
    """Behind a byte of a function, is the tensor written anew before anybody reads it, but for the calls ``taken``?"""
    for call in kernel.calls_of(f):
        if call.node.start_byte <= after or call.node.start_byte in taken or call.name == "FreeTensor":
            continue
        if root(call.receiver) == name:
            return False
        places = [i for i, a in enumerate(call.args) if name in _WORD.findall(_VALUE.sub("", a))]
        if not places:
            continue
        own = [g for g in kernel.functions if g.name == call.name and not call.receiver]
        if places == [0] and (call.name in VECTOR - ACCUMULATING or "Reduce" in call.name):
            return True
        named = [(g, g.parameters[i]) for g in own for i in places if i < len(g.parameters) and call.args[i] == name]
        if depth > 1 or not own or len(named) < len(own) * len(places):
            return False
        if not all(unread(kernel, g, p, g.body.start_byte, frozenset(), depth + 1) for g, p in named):
            return False
    return True


def _sound(kernel: KernelProgram, chain: _Chain, leaves: set[str], kinds: Mapping[str, set[str]]) -> bool:
    """Are the elements floats that stay as they are up to the read, and is no result of the chain read elsewhere?"""
    block, steps = chain.block, chain.steps
    calls = [c for j in steps if (c := block.steps[j].call) is not None]
    written = {root(c.args[0]) for c in calls}
    if any(kinds.get(root(n)) != {"float"} for n in leaves | {flat(c.args[0]) for c in calls}):
        return False
    between = [j for j in range(min(steps) + 1, chain.read) if j not in steps]
    if any({root(n) for n in leaves} & _words(kernel, block, block.steps[j]) for j in between):
        return False
    changed = {n for c in calls for n in _WORD.findall(" ".join(c.args[1:]))}
    assigned = (kernel.text(block.function.path, block.steps[j].node) for j in between)
    if any(m[1] in changed for text in assigned for m in re.finditer(r"\b(\w+)\s*(?:[-+*/]?=(?!=)|\+\+|--)", text)):
        return False
    taken = frozenset(n.start_byte for n in (*chain.places, *(c.node for c in calls)))
    first = block.steps[min(steps)].node.start_byte
    return all(unread(kernel, block.function, name, first, taken) for name in written)


def _chains(kernel: KernelProgram) -> Iterator[_Chain]:
    ones = frozenset({"1", *(c.name for c in kernel.constants if c.value == 1)})
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for block in kernel.blocks:
        if not any(_is_one(s.call, ones) for s in block.steps):
            continue
        kinds = {**everywhere, **local_kinds([kernel.text(block.function.path, block.function.node)])}
        done: set[int] = set()
        for i, step in enumerate(block.steps):
            for element in dict(_values(kernel, block, step.node) if step.node.type in _PLAIN else ()):
                steps, leaves = _chain(kernel, block, i, element, ones)
                if not steps or done & set(steps):
                    continue
                later = [v for s in block.steps[i:] for v in _values(kernel, block, s.node)]
                places = tuple(node for of, node in later if of == element)
                found = _Chain(block, tuple(steps), i, places, _value(block, steps, element))
                if _sound(kernel, found, leaves, kinds):
                    done |= set(steps)
                    yield found


def _edits(kernel: KernelProgram, chain: _Chain) -> Iterator[Edit]:
    block, path = chain.block, chain.block.function.path
    first = min(chain.steps)
    before = block.steps[first - 1].call if first else None
    since = before is None or not is_barrier(before, "PIPE_V")  # is there something that a barrier would order?
    for j in range(first, chain.read):
        step = block.steps[j]
        if j in chain.steps or (step.call is not None and is_barrier(step.call, "PIPE_V") and not since):
            yield kernel.delete(path, step.node)
        elif step.call is not None and is_barrier(step.call, "PIPE_V"):
            since = False
        else:
            since |= step.node.type not in ("declaration", "comment") and (
                step.call is None or step.call.name not in _ASIDE
            )
    if len(chain.places) == 1:
        yield kernel.replace(path, chain.places[0], _in_place(kernel, path, chain))
        return
    taken = set(_WORD.findall(kernel.text(path, block.function.node)))
    name = next(n for n in (f"{_NAME}{k}" for k in range(len(taken) + 1)) if n not in taken)
    yield kernel.before(path, block.steps[chain.read].node, f"const float {name} = {chain.value};")
    yield from (kernel.replace(path, place, name) for place in chain.places)


def _in_place(kernel: KernelProgram, path: str, chain: _Chain) -> str:
    """The value where it was read; of the type it had there, as a root may be a double."""
    held = chain.places[0].parent
    declaration = held.parent if held is not None and held.type == "init_declarator" else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    if kind is not None and kernel.text(path, kind) == "float":
        return chain.value
    return f"static_cast<float>({chain.value})" if "sqrt(" in chain.value else _factor(chain.value)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for chain in _chains(kernel):
        f = chain.block.function
        names = ", ".join(c.name for j in sorted(chain.steps) if (c := chain.block.steps[j].call) is not None)
        change = f"{names} of one element of {f.name} done by the scalar unit"
        yield Change(kernel.site(f, chain.block.steps[min(chain.steps)].node), change, tuple(_edits(kernel, chain)))


# -- back --------------------------------------------------------------------------------------------------------------


def _computed(kernel: KernelProgram, block: Block, place: Node) -> tuple[Node, str, str] | None:
    """(expression, instruction, operand) of a sum, product or root that the scalar unit makes of a value it reads."""
    outer = place.parent
    while outer is not None and outer.type == "parenthesized_expression":
        outer = outer.parent
    if outer is None:
        return None
    if outer.type == "argument_list" and outer.parent is not None and outer.named_child_count == 1:
        called = outer.parent.child_by_field_name("function")
        root_of = called is not None and kernel.text(block.function.path, called).endswith("sqrt")
        return (outer.parent, "Sqrt", "") if root_of else None
    operator, right = outer.child_by_field_name("operator"), outer.child_by_field_name("right")
    if outer.type != "binary_expression" or operator is None or right is None or operator.type not in "+*":
        return None
    other = kernel.text(block.function.path, right)
    if right.start_byte <= place.start_byte or "(" in other:
        return None
    return outer, "Adds" if operator.type == "+" else "Muls", other


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for block in kernel.blocks:
        path = block.function.path
        for i, step in enumerate(block.steps):
            values = _values(kernel, block, step.node) if step.node.type in _PLAIN else []
            if len(values) != 1 or not kernel.repeated(block.function, block.node):
                continue
            element, place = values[0]
            found = _computed(kernel, block, place)
            made = [j for j in range(i) if root(element) in _words(kernel, block, block.steps[j])]
            source = block.steps[made[-1]].call if made else None
            if found is None or source is None or source.name not in VECTOR or root(element) not in writes(source):
                continue
            behind, taken = block.steps[made[-1]].node.start_byte, frozenset([source.node.start_byte, place.start_byte])
            if everywhere.get(root(element)) != {"float"} or not unread(
                kernel, block.function, root(element), behind, taken
            ):
                continue
            expression, name, operand = found
            given = [a for a in (element, element, operand, "1") if a]
            barrier = "" if kernel.auto_sync else "PipeBarrier<PIPE_V>(); "
            edits = (
                kernel.after(path, block.steps[made[-1]].node, f"{barrier}{source.spelled(name, *given)};"),
                kernel.replace(path, expression, kernel.text(path, place)),
            )
            yield Change(
                kernel.site(block.function, step.node), f"{name} of one element in {block.function.name}", edits
            )


ONE_ELEMENT = Motif(
    name="one-element",
    title="One element is the scalar unit's",
    description="A mean, a root, a reciprocal of one element by vector instructions, which the scalar unit then reads: "
    "each instruction costs its head and a barrier. The scalar unit reads the element and computes.",
    bottlenecks=("scalar round trips", "vector barriers", "short vector instructions", "vector"),
    preconditions="Floats that nobody but the scalar unit reads; the last bits may differ.",
    faster=_faster,
    slower=_slower,
)
