"""Loops that set one element a turn: how many turns they have, and which elements they set to what.

``for`` and ``while`` alike: variables that go on by the same step each turn, a condition that ends it, and
``x.SetValue(i, value)`` with an index that goes on with them. A condition around such a statement splits the turns in
those before it turns and those behind it; one that leaves the loop ends it earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from ....sources.cpp import Function, walk
from .affine import growth, indexed, resolved
from .kernel_program import ApiCall, KernelProgram, flat, loops_around

_STEP = re.compile(r"(\w+)\s*(?:\+\+|\+=\s*(.+))|\+\+\s*(\w+)", re.DOTALL)
_SET = re.compile(r"(?:(?:const\s+)?([A-Za-z_][\w:]*)\s+)?([A-Za-z_]\w*)\s*=\s*([^;{}=]+);", re.DOTALL)
_CAST = re.compile(r"static_cast<\s*([\w:]+)\s*>\s*(?=\()|\(\s*([A-Za-z_][\w:]*)\s*\)\s*(?=[\w(.])")
_TENSOR = re.compile(r"(?:this->)?[A-Za-z_]\w*(?:\[[^\[\]]*\])?")
_READ = re.compile(rf"({_TENSOR.pattern})\s*\.\s*GetValue\(")
_UNTIL = {"<": ("<", False), "<=": ("<=", False), ">": ("<", True), ">=": ("<=", True)}  # swapped: a > b is b < a
_OTHERWISE = {"<": "<=", "<=": "<"}  # not a < b is b <= a
BACK = "-(1)"  # what an index grows by that goes back
_CLEAN = "DataCacheCleanAndInvalid"


@dataclass(frozen=True)
class Element:
    """``target.SetValue(index, value)`` in turns ``first`` to ``last`` (expressions; empty: all from or up to there).

    ``source``, ``read``: the tensor and the index that the value is read from; ``kinds``: types that it is cast to.
    ``when``: the condition around it, ``if (...)``, which is the same in each turn; ``rises``: what the value grows by
    where it is read nowhere.
    """

    call: ApiCall
    target: str
    index: str
    grows: str
    value: str
    source: str = ""
    read: str = ""
    kinds: frozenset[str] = frozenset()
    first: str = ""
    last: str = ""
    when: str = ""
    rises: str = "0"


@dataclass
class ElementLoop:
    """``turns``: the least of these is how many there are; ``steps``: variables that live longer, and their steps.

    ``head``: the variable that a ``for`` declares; ``left``: turns after which it is left, and how.
    """

    function: Function
    node: Node
    head: str
    steps: dict[str, str]
    turns: tuple[str, ...] = ()
    left: tuple[str, str] | None = None
    elements: list[Element] = field(default_factory=list)


def element_loops(kernel: KernelProgram) -> Iterator[ElementLoop]:
    """The innermost loops of live functions that do nothing else."""
    for f in kernel.functions:
        for node in walk(f.body):
            if node.type in ("for_statement", "while_statement"):
                loop = _loop(kernel, f, node)
                if loop is not None:
                    yield loop


def _loop(kernel: KernelProgram, f: Function, node: Node) -> ElementLoop | None:
    body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
    if body is None or condition is None or body.type != "compound_statement":
        return None
    start, update = (node.child_by_field_name(name) for name in ("initializer", "update"))
    own: dict[str, str] = {}
    if update is not None and not _counts(kernel.text(f.path, update), own):
        return None
    head = kernel.text(f.path, start).strip() if start is not None else ""
    statements = [n for n in body.named_children if n.type != "comment"]
    loop = ElementLoop(f, node, head, own)
    while statements and _counts(_plain_text(kernel, f, statements[-1]), loop.steps):
        statements.pop()
    if not loop.steps or not all(_same(s, loop.steps) for s in loop.steps.values()):
        return None
    turns = _turns(kernel.text(f.path, condition).strip(), loop.steps)
    if not turns or not _parse(kernel, loop, statements):
        return None
    if head:  # what the loop declares nobody sees behind it
        declared = re.match(r"(?:const\s+)?[\w:]+\s+(\w+)\s*=", head)
        loop.steps = {n: s for n, s in loop.steps.items() if declared is None or n != declared[1]}
    loop.turns = turns
    return loop


def _plain_text(kernel: KernelProgram, f: Function, node: Node) -> str:
    return kernel.text(f.path, node).rstrip("; \n") if node.type == "expression_statement" else ""


def _counts(text: str, steps: dict[str, str]) -> bool:
    """Is it ``i++`` or ``i += n``, or several with commas? The steps are noted."""
    for part in text.split(","):
        found = _STEP.fullmatch(part.strip())
        name = (found[1] or found[3]) if found is not None else ""
        if found is None or name in steps or "(" in (found[2] or ""):
            return False
        steps[name] = found[2].strip() if found[2] else "1"
    return True


def _same(text: str, steps: Mapping[str, str]) -> bool:
    return growth(text, steps) == "0"


# -- conditions --------------------------------------------------------------------------------------------------------


def _bare(text: str) -> str:
    while text.startswith("(") and _closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at ``start`` is closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0:
            return i
    return -1


def _comparison(text: str) -> tuple[str, str, str] | None:
    """(low, ``<`` or ``<=``, high) of a comparison; None for anything else."""
    text, depth, found = _bare(text), 0, list[tuple[int, str]]()
    for m in re.finditer(r"[(\[]|[)\]]|<=|>=|<<|>>|->|==|!=|&&|\|\||[<>?!]|static_cast<[^<>]*>", text):
        if len(m[0]) == 1 and m[0] in "([)]":
            depth += 1 if m[0] in "([" else -1
        elif depth == 0 and not m[0].startswith("static_cast") and m[0] != "->":
            found.append((m.start(), m[0]))
    if len(found) != 1 or found[0][1] not in _UNTIL:
        return None
    at, operator = found[0]
    one, two = text[:at].strip(), text[at + len(operator) :].strip()
    sign, swapped = _UNTIL[operator]
    return (two, sign, one) if swapped else (one, sign, two)


def _until(low: str, sign: str, high: str, steps: Mapping[str, str]) -> str | None:
    """For how many turns a comparison holds whose left side grows; None where it doesn't, or the right one does."""
    grows = growth(low, steps)
    if grows is None or grows.startswith("-") or grows == "0" or growth(high, steps) != "0":
        return None
    apart = f"static_cast<int64_t>({high}) - static_cast<int64_t>({low})"
    if grows == "1":
        return apart + (" + 1" if sign == "<=" else "")
    step = f"static_cast<int64_t>({grows})"
    return f"({apart} + {step}{' - 1' if sign == '<' else ''}) / {step}"


def _turns(condition: str, steps: Mapping[str, str]) -> tuple[str, ...]:
    """For how many turns each of the condition's comparisons holds; nothing where it isn't made of them."""
    bounds = []
    for part in _bare(condition).split("&&"):
        compared = _comparison(part)
        bound = _until(*compared, steps) if compared is not None else None
        if bound is None:
            return ()
        bounds.append(bound)
    return tuple(bounds)


# -- statements of a turn ----------------------------------------------------------------------------------------------


def _parse(kernel: KernelProgram, loop: ElementLoop, statements: list[Node]) -> bool:
    names: dict[str, str] = {}
    for n, node in enumerate(statements):
        if n == 0 and node.type == "if_statement" and _leaves(kernel, loop, node, names):
            continue
        if not (_chosen if node.type == "if_statement" else _does)(kernel, loop, node, names):
            return False
    return bool(loop.elements)


def _does(
    kernel: KernelProgram, loop: ElementLoop, node: Node, names: dict[str, str], first: str = "", last: str = ""
) -> bool:
    """Is it a statement that sets an element, or a variable that nobody needs behind the turn?"""
    found = _SET.fullmatch(kernel.text(loop.function.path, node))
    if found is None:
        return _sets(kernel, loop, node, names, first, last)
    kind, name, value = found[1], found[2], resolved(found[3].strip(), names)
    if name in loop.steps or (node.type == "declaration" and name in names):
        return False
    if node.type != "declaration" and not _of_turn(kernel, loop, name):
        return False
    names[name] = f"({kind})({value})" if kind and kind != "auto" else value
    return True


def _of_turn(kernel: KernelProgram, loop: ElementLoop, name: str) -> bool:
    """Is a variable of the function set anew before it is read again, behind the loop and in loops around it?"""
    f = loop.function
    named = [n for n in walk(f.body) if n.type == "identifier" and kernel.text(f.path, n) == name]
    if not named or not _is_part(named[0], ("init_declarator", "declaration"), "declarator"):
        return False
    later = [n for n in named if n.start_byte > loop.node.end_byte]
    firsts = [later[0]] if later else []
    for around in loops_around(loop.node, f):
        firsts.append(next(n for n in named if n.start_byte > around.start_byte))
    return all(_is_part(n, ("assignment_expression",), "left") for n in firsts)


def _is_part(node: Node, kinds: tuple[str, ...], part: str) -> bool:
    parent = node.parent
    return parent is not None and parent.type in kinds and node in parent.children_by_field_name(part)


def _branch(node: Node | None) -> list[Node]:
    if node is None:
        return []
    if node.type == "else_clause":
        return _branch(node.named_children[-1])
    inside = node.named_children if node.type == "compound_statement" else [node]
    return [n for n in inside if n.type != "comment"]


def _leaves(kernel: KernelProgram, loop: ElementLoop, node: Node, names: Mapping[str, str]) -> bool:
    """``if (...) { return; }`` or ``break;`` at the beginning of a turn."""
    inside = _branch(node.child_by_field_name("consequence"))
    if node.child_by_field_name("alternative") is not None or len(inside) != 1:
        return False
    how, compared = kernel.text(loop.function.path, inside[0]), _asked(kernel, loop, node, names)
    if how not in ("return;", "break;") or compared is None:
        return False
    low, sign, high = compared
    bound = _until(high, _OTHERWISE[sign], low, loop.steps)
    if bound is None:
        return False
    loop.left = bound, how
    return True


def _asked(
    kernel: KernelProgram, loop: ElementLoop, node: Node, names: Mapping[str, str]
) -> tuple[str, str, str] | None:
    condition = node.child_by_field_name("condition")
    return _comparison(resolved(kernel.text(loop.function.path, condition), names)) if condition is not None else None


def _chosen(kernel: KernelProgram, loop: ElementLoop, node: Node, names: dict[str, str]) -> bool:
    """Elements set one way before a condition turns, and another way, or not, behind that."""
    compared = _asked(kernel, loop, node, names)
    branches = [_branch(node.child_by_field_name(name)) for name in ("consequence", "alternative")]
    bound = None
    if compared is not None:
        low, sign, high = compared
        bound = _until(low, sign, high, loop.steps)
        if bound is None:
            bound, branches = _until(high, _OTHERWISE[sign], low, loop.steps), branches[::-1]
    if bound is None:
        return _by_case(kernel, loop, node, names)
    before, behind = branches
    inside = dict(names), dict(names)
    return all(_does(kernel, loop, n, inside[0], "", bound) for n in before) and all(
        _does(kernel, loop, n, inside[1], bound, "") for n in behind
    )


def _by_case(kernel: KernelProgram, loop: ElementLoop, node: Node, names: dict[str, str]) -> bool:
    """Elements set one way or another by a condition that is the same in each turn, as of a type."""
    condition = node.child_by_field_name("condition")
    text = kernel.text(loop.function.path, condition).strip() if condition is not None else ""
    head = kernel.text(loop.function.path, node).partition("(")[0].strip()
    if set(re.findall(r"\w+", text)) & {*loop.steps, *names} or not (head == "if constexpr" or "(" not in text[1:]):
        return False
    for branch, when in (("consequence", f"{head} {text}"), ("alternative", f"{head} (!{text})")):
        known = len(loop.elements)
        inside = dict(names)
        for n in _branch(node.child_by_field_name(branch)):
            if not (_chosen if n.type == "if_statement" else _does)(kernel, loop, n, inside):
                return False
        loop.elements[known:] = [replace(e, when=f"{when} {e.when}".strip()) for e in loop.elements[known:]]
    return True


def _sets(
    kernel: KernelProgram, loop: ElementLoop, node: Node, names: Mapping[str, str], first: str, last: str
) -> bool:
    """Is it a statement that sets an element, or cleans its line of the data cache?"""
    call = kernel.call_of(loop.function, node)
    if call is not None and call.name == _CLEAN:
        return True
    if call is None or call.name != "SetValue" or len(call.args) != 2 or not _stays(loop, names, call.receiver):
        return False
    index = flat(resolved(call.args[0], names))
    grows = growth(index, loop.steps)
    if grows is None or grows == "0" or (grows.startswith("-") and grows != BACK):
        return False
    value, kinds = _uncast(flat(resolved(call.args[1], names)))
    found = _READ.match(value)
    if found is not None and _closing(value, found.end() - 1) == len(value) - 1:
        read = value[found.end() : -1].strip()
        if growth(read, loop.steps) != grows or not _stays(loop, names, found[1]):
            return False
        element = Element(call, call.receiver, index, grows, value, found[1], read, kinds, first, last)
    else:
        value = flat(resolved(call.args[1], names))
        rises = growth(value, loop.steps)
        if "GetValue" in value or rises is None:
            return False
        element = Element(call, call.receiver, index, grows, value, first=first, last=last, rises=rises)
    loop.elements.append(element)
    return True


def _stays(loop: ElementLoop, names: Mapping[str, str], tensor: str) -> bool:
    """Is it the same tensor, or part of one, in each turn?"""
    _, start = indexed(tensor)
    return _TENSOR.fullmatch(tensor) is not None and growth(resolved(start or "0", names), loop.steps) == "0"


def _uncast(text: str) -> tuple[str, frozenset[str]]:
    """The expression without casts around all of it, and the types they are to."""
    kinds = set[str]()
    while True:
        text = _bare(text)
        found = _CAST.match(text)
        if found is None:
            return text, frozenset(kinds)
        rest = text[found.end() :]
        if rest.startswith("(") and _closing(rest, 0) != len(rest) - 1:
            return text, frozenset(kinds)
        if not rest.startswith("(") and _READ.match(rest) is None:
            return text, frozenset(kinds)
        kinds.add(found[1] or found[2])
        text = rest
