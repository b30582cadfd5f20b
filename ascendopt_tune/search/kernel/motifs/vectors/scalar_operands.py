"""Constants as scalar operands: a tensor filled with one value isn't made for instructions that take the value itself.

It may be filled in the turn that reads it, by either side of a choice in front of it, in front of a loop, or in another
function of the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import ACCUMULATING, VECTOR, is_barrier, root
from ...reading.kernel_program import ApiCall, Block, KernelProgram
from ..motif import Change, Motif
from .fusion import statements, two

_SCALAR_FORM = {"Add": ("Adds", "{}"), "Mul": ("Muls", "{}"), "Max": ("Maxs", "{}"), "Min": ("Mins", "{}"),
                "Sub": ("Adds", "-({})"), "Div": ("Muls", "1 / ({})")}  # fmt: skip
_TENSOR_FORM = {"Adds": "Add", "Muls": "Mul", "Maxs": "Max", "Mins": "Min"}


_SWAPPED = {"GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE", "EQ": "EQ", "NE": "NE"}
_OPPOSITE = {"EQ": "NE", "NE": "EQ"}  # of the others a NaN makes neither true
_MODE = re.compile(r"\b(GT|LT|GE|LE|EQ|NE)$")
_SAME_BLOCK = re.compile(r"\{(.*)\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


# -- one instruction ---------------------------------------------------------------------------------------------------


def _with_scalar(user: ApiCall, tensor: str, value: str) -> str | None:
    """The instruction with the value in place of the tensor, which it reads once; None if it has no such form."""
    places = [i for i, a in enumerate(user.args) if a == tensor and i]
    if len(places) != 1 or user.statement is None or any(tensor in a for a in user.args[1:] if a != tensor):
        return None
    d, *rest = user.args
    if user.name in _SCALAR_FORM:
        return _arithmetic(user, places[0], value)
    if user.name == "Compare" and len(user.args) == 5 and places[0] in (1, 2):
        mode = rest[2]
        if places[0] == 1:
            mode = _MODE.sub(lambda m: _SWAPPED[m[1]], mode) if _MODE.search(mode) else ""
        return user.spelled("CompareScalar", d, rest[2 - places[0]], value, mode, rest[3]) if mode else None
    if user.name == "Select" and len(user.args) == 6 and places[0] == 3 and "TENSOR_TENSOR" in rest[3]:
        mode = rest[3].replace("TENSOR_TENSOR", "TENSOR_SCALAR")
        return user.spelled("Select", d, rest[0], rest[1], value, mode, rest[4])
    return None


def _arithmetic(user: ApiCall, place: int, value: str) -> str | None:
    name, form = _SCALAR_FORM[user.name]
    if place not in (1, 2) or (user.name in ("Sub", "Div") and place == 1):
        return None
    if user.name == "Div" and re.fullmatch(r"\(?\d+\)?", value):
        return None  # an integer's reciprocal is 0
    data = user.args[3 - place]
    if len(user.args) == 4:
        return user.spelled(name, user.args[0], data, form.format(value), user.args[3])
    strides = _SAME_BLOCK.fullmatch(user.args[5]) if len(user.args) == 6 else None
    parts = [p.strip() for p in strides[1].split(",")] if strides is not None else []
    if len(parts) != 6 or (parts[place], parts[place + 3]) != ("0", "0"):
        return None
    kept = ", ".join(p for i, p in enumerate(parts) if i not in (place, place + 3))
    return user.spelled(name, user.args[0], data, form.format(value), *user.args[3:5], f"{{{kept}}}")


def _selected(kernel: KernelProgram, block: Block, user: ApiCall, tensor: str, value: str) -> tuple[Edit, ...]:
    """``Select(d, m, tensor, x)`` as one of ``x`` and the value, the comparison that makes ``m`` turned around."""
    if user.name != "Select" or len(user.args) != 6 or user.args[2] != tensor or "TENSOR_TENSOR" not in user.args[4]:
        return ()
    mask, behind = user.args[1], False
    made: ApiCall | None = None
    for step in block.steps:
        if mask not in _WORD.findall(kernel.text(user.path, step.node)) or step.node.type == "declaration":
            continue
        call = step.call
        if behind or call is None:
            return ()
        if call.node.start_byte == user.node.start_byte:
            behind = True
        else:
            made = call
    mode = (
        _MODE.search(made.args[3])
        if made is not None and made.name.startswith("Compare") and len(made.args) == 5
        else None
    )
    if made is None or mode is None or made.args[0] != mask or mode[1] not in _OPPOSITE or user.statement is None:
        return ()
    scalar = user.args[4].replace("TENSOR_TENSOR", "TENSOR_SCALAR")
    text = user.spelled("Select", user.args[0], mask, user.args[3], value, scalar, user.args[5])
    turned = _MODE.sub(lambda m: _OPPOSITE[m[1]], made.args[3])
    return (kernel.replace(user.path, user.statement, f"{text};"), kernel.replace(made.path, made.arguments[3], turned))


# -- filled in the block that reads it ---------------------------------------------------------------------------------


def _constant_faster(kernel: KernelProgram) -> Iterator[Change]:
    done: set[int] = set()
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            fill = step.call
            if fill is None or fill.name != "Duplicate" or len(fill.args) != 3:
                continue
            adds = _added_to(kernel, block, i, fill)
            held = block.steps[adds].call if adds else None
            value = held.args[2] if held is not None else fill.args[1]
            users = _users(kernel, block, adds or i, fill)
            texts = [_changed(kernel, block, user, fill.args[0], value) for user in users]
            if not users or not all(texts) or _set_anew(kernel, block, adds or i, users[-1], value):
                continue
            done.add(fill.node.start_byte)
            gone = (kernel.delete(fill.path, block.steps[k].node) for k in ((i, adds) if adds else (i,)))
            names = ", ".join(dict.fromkeys(u.name for u in users))
            change = f"{names} with a constant tensor in {block.function.name} given the value"
            edits = (*gone, *(e for text in texts for e in text))
            yield Change(kernel.site(block.function, step.node), change, edits)
    yield from (c for fill, c in _filled_elsewhere(kernel) if fill.node.start_byte not in done)
    yield from _filled_by_choice(kernel)


def _set_anew(kernel: KernelProgram, block: Block, i: int, last: ApiCall, value: str) -> bool:
    """Is a variable of the value set again before the last instruction that takes it?"""
    words = "|".join(_WORD.findall(value)) or "$"
    anew = re.compile(rf"\b(?:{words})\s*(?:[-+*/]?=[^=]|\+\+|--)")
    between = (s.node for s in block.steps[i + 1 :] if s.node.start_byte < last.node.start_byte)
    return any(anew.search(kernel.text(block.function.path, n)) for n in between)


def _changed(kernel: KernelProgram, block: Block, user: ApiCall, tensor: str, value: str) -> tuple[Edit, ...]:
    text = _with_scalar(user, tensor, value)
    if text is not None and user.statement is not None:
        return (kernel.replace(user.path, user.statement, f"{text};"),)
    return _selected(kernel, block, user, tensor, value)


def _added_to(kernel: KernelProgram, block: Block, i: int, fill: ApiCall) -> int | None:
    """The step that adds a number to a tensor of zeros, or multiplies one of ones by it, right behind the fill."""
    neutral = re.fullmatch(r"(?:\(\w+\)|static_cast<\w+>)?\(?([01])(?:\.0*)?[fFuU]?\)?", fill.args[1].strip())
    for k in range(i + 1, len(block.steps)):
        call = block.steps[k].call
        if call is None:
            return None
        if not is_barrier(call, "PIPE_V"):
            wanted = {"0": "Adds", "1": "Muls"}.get(neutral[1], "") if neutral else ""
            same = call.args[:2] == (fill.args[0],) * 2 and call.args[3:] == fill.args[2:]
            return k if call.name == wanted and same else None
    return None


def _users(kernel: KernelProgram, block: Block, i: int, fill: ApiCall) -> list[ApiCall]:
    """The instructions of the block that read what ``fill`` wrote, before it is written again; nothing where anything
    else has to do with it."""
    name = re.compile(rf"\b{re.escape(root(fill.args[0]))}\b")
    users: list[ApiCall] = []
    for step in block.steps[i + 1 :]:
        if not name.search(kernel.text(block.function.path, step.node)):
            continue
        call = step.call
        if call is not None and call.name in VECTOR and fill.args[0] in call.args[1:]:
            users.append(call)
        if call is not None and call.name in VECTOR and call.args[0] == fill.args[0] and call.name not in ACCUMULATING:
            break
        if call is None or call.name not in VECTOR | {"FreeTensor"}:
            return []
    return users


# -- filled somewhere else ---------------------------------------------------------------------------------------------


def _filled_elsewhere(kernel: KernelProgram) -> Iterator[tuple[ApiCall, Change]]:
    """Tensors with one fill and nothing else that writes them, whose fill or a division costs more than a scalar."""
    for fill in kernel.named("Duplicate"):
        tensor = fill.args[0].removeprefix("this->") if fill.args else ""
        if len(fill.args) != 3 or fill.statement is None or not re.fullmatch(r"\w+", tensor):
            continue
        scope = _scope(kernel, fill.function, tensor)
        users = _reading(kernel, scope, fill, tensor) if scope else []
        if not users or not (any(u.name == "Div" for u in users) or kernel.repeated(fill.function, fill.node)):
            continue
        if not _seen_by_all(kernel, fill, users):
            continue
        texts = [_with_scalar(u, next(a for a in u.args[1:] if root(a) == tensor), fill.args[1]) for u in users]
        edits = [
            kernel.replace(u.path, u.statement, f"{t};") for u, t in zip(users, texts, strict=True) if t and u.statement
        ]
        if len(edits) < len(users):
            continue
        names = ", ".join(dict.fromkeys(u.name for u in users))
        change = f"{names} with a tensor that {fill.function.name} fills given the value"
        gone = kernel.delete(fill.path, fill.statement)
        yield fill, Change(kernel.site(fill.function, fill.statement), change, (gone, *edits))


def _scope(kernel: KernelProgram, f: Function, tensor: str) -> list[Function]:
    """The functions that can name the tensor: the one that declares it or is given it, else those of the class."""
    declared = re.compile(rf"\b(?:LocalTensor\s*<[^;{{}}]*>|auto)\s*&?\s*{tensor}\b")
    if tensor in f.parameters or declared.search(kernel.text(f.path, f.body)):
        return [f]
    of = kernel.class_of(f)
    return [g for g in kernel.functions if of and kernel.class_of(g) == of]


def _reading(kernel: KernelProgram, scope: list[Function], fill: ApiCall, tensor: str) -> list[ApiCall]:
    """The instructions that read the tensor; nothing where anything else but a declaration names it."""
    users: list[ApiCall] = []
    for f in scope:
        if f != fill.function and (tensor in f.parameters or f"> {tensor}" in kernel.text(f.path, f.body)):
            continue  # another one of that name
        calls = [c for c in kernel.calls_of(f) if any(root(a) == tensor for a in c.args)]
        own = [c for c in calls if c.node.start_byte != fill.node.start_byte or c.path != fill.path]
        users += [c for c in own if c.name != "FreeTensor"]
        got = re.findall(rf"(?:this->)?\b{tensor}\s*=[^=][^;]*\b(?:Get|AllocTensor)\s*<", kernel.text(f.path, f.body))
        named = sum(
            kernel.text(f.path, n) == tensor for n in walk(f.body) if n.type in ("identifier", "field_identifier")
        )
        if named != len(got) + len(own) + (f == fill.function):
            return []
    plain = all(u.name in VECTOR and root(u.args[0]) != tensor for u in users)
    return users if plain else []


def _seen_by_all(kernel: KernelProgram, fill: ApiCall, users: list[ApiCall]) -> bool:
    """Does the value say the same where the tensor is read, and is it read behind the fill?"""
    f = fill.function
    words = set(_WORD.findall(fill.args[1]))
    body = kernel.text(f.path, f.body)
    within = words & set(f.parameters) or any(re.search(rf"\b[\w:>]+\s*[&*]?\s+{w}\s*[=;({{]", body) for w in words)
    if within and any(u.function.node != f.node for u in users):
        return False
    behind = all(u.node.start_byte > fill.node.start_byte for u in users if u.function.node == f.node)
    changed = re.compile(rf"\b(?:{'|'.join(words) or '$'})\s*(?:[-+*/]?=[^=]|\+\+|--)")
    rest = body.encode()[fill.node.end_byte - f.body.start_byte :].decode("utf-8", "replace")
    return behind and (not within or changed.search(rest) is None)


# -- filled by either side of a choice ---------------------------------------------------------------------------------


def _filled_by_choice(kernel: KernelProgram) -> Iterator[Change]:
    """A tensor that each side of an ``if`` fills, as its last statement, with a value of its own, and that nothing but
    the instruction right behind reads: each side has the instruction with its value.
    """
    for block in kernel.blocks:
        f = block.function
        for i, step in enumerate(block.steps):
            fills = _last_fills(kernel, f, step.node) if step.node.type == "if_statement" else []
            behind = block.steps[i + 1 :]
            barriers = list(takewhile(lambda s: s.call is not None and is_barrier(s.call, "PIPE_V"), behind))
            user = behind[len(barriers)].call if len(behind) > len(barriers) else None
            if not fills or user is None or user.statement is None or len({c.args[::2] for c in fills}) > 1:
                continue
            tensor, length = fills[0].args[::2]
            overwritten = user.args[:1] == (tensor,) and user.args[-1] == length
            texts = [_with_scalar(user, tensor, c.args[1]) for c in fills]
            if not overwritten or user.name not in _SCALAR_FORM or None in texts:
                continue
            wait = "".join(f"{kernel.text(f.path, b.node)} " for b in barriers)
            given = [
                kernel.replace(f.path, c.statement, f"{wait}{t};")
                for c, t in zip(fills, texts, strict=True)
                if c.statement
            ]
            gone = [kernel.delete(f.path, s) for s in (*(b.node for b in barriers), user.statement)]
            change = f"{user.name} with a tensor that either side of a choice in {f.name} fills given the value"
            yield Change(kernel.site(f, step.node), change, (*given, *gone))


def _last_fills(kernel: KernelProgram, f: Function, choice: Node) -> list[ApiCall]:
    """The fills that the sides of a choice end with; nothing where a side has none, or there is no other side."""
    sides = [choice.child_by_field_name("consequence"), choice.child_by_field_name("alternative")]
    out: list[ApiCall] = []
    for side in sides:
        inner = side.named_children[-1] if side is not None and side.type == "else_clause" else side
        if inner is not None and inner.type == "if_statement":
            more = _last_fills(kernel, f, inner)
        else:
            statements = (
                [] if inner is None else inner.named_children if inner.type == "compound_statement" else [inner]
            )
            call = kernel.call_of(f, statements[-1]) if statements else None
            more = [call] if call is not None and call.name == "Duplicate" and len(call.args) == 3 else []
        if not more:
            return []
        out += more
    return out


# -- and back ----------------------------------------------------------------------------------------------------------


def _constant_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call in statements(kernel, *_TENSOR_FORM):
        if len(call.args) != 4 or root(call.args[0]) == root(call.args[1]):
            continue
        if not kernel.repeated(call.function, call.node):
            continue
        d, x, value, n = call.args
        first, second = call.spelled("Duplicate", d, value, n), call.spelled(_TENSOR_FORM[call.name], d, x, d, n)
        yield two(kernel, call, first, second, f"{call.name} made Duplicate and {_TENSOR_FORM[call.name]}")


SCALAR_OPERAND = Motif(
    name="scalar-operand",
    title="A constant as scalar operand",
    description="A tensor filled with one value (Duplicate) to be an operand costs a pass of its own; Adds, Muls, "
    "Maxs, Mins, CompareScalar and Select take the value itself, and Muls by the reciprocal is a quarter of a Div.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The filled tensor has no other reader. A quotient's last bit may differ.",
    faster=_constant_faster,
    slower=_constant_slower,
)
