"""A value a row, or a row, spread over a whole matrix to be an operand: taken with strides of 0 instead.

``BroadCast``, or a loop of copies, writes a matrix that instructions behind it read. A row for all rows is an operand
whose repeats are 0 blocks apart; a value a row is a block a row (Brcb) whose blocks are 0 apart. Where the shapes don't
allow that, which is asked when the kernel runs, the matrix is made as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.affine import affine, fixed
from ...reading.api import ACCUMULATING, BINARY, VECTOR, root, writes
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import listed, local_types
from ...reading.kernel_program import LOOPS, ApiCall, Block, BlockStep, KernelProgram
from ...reading.turn import turn_of
from ..motif import Change
from .choices import copies

_CALLS = ("BroadCast", "Broadcast")
_MOST = 255  # repeats of an instruction, and blocks from one to the next
_SWAPS = frozenset(["Add", "Max", "Min", "Mul"])  # a op b is b op a
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Spread:
    """What makes a matrix of ``rows`` of ``width`` elements of ``source``, a value a row or one row, and who reads it.

    ``made``: the statement; ``blocks``: where a block a row has room, empty for one row.
    """

    made: Node
    matrix: str
    source: str
    users: tuple[ApiCall, ...]
    rows: str
    width: str
    kind: str
    name: str  # of the variable that says whether the matrix isn't needed
    blocks: str = ""
    call: ApiCall | None = None


def rows_in_place(kernel: KernelProgram) -> Iterator[Change]:
    """Each matrix of one value a row, or of one row, not made."""
    loops = {(loop.block.function.path, loop.node.start_byte): loop for loop in counted_loops(kernel)}
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            call = step.call
            if call is not None and call.name in _CALLS and step.node.type == "expression_statement":
                found = _spread(kernel, block, i, call)
            elif call is not None and call.name == "Copy":
                found = _copied_rows(kernel, block, i, call)
            else:
                found = _repeated(kernel, block, i, loops)
            if found is None:
                continue
            path, site = block.function.path, kernel.site(block.function, step.node)
            edits = [kernel.replace(path, found.made, _first(kernel, block, found))]
            for used in found.users:
                assert used.statement is not None
                edits.append(kernel.replace(path, used.statement, _second(kernel, found, used)))
            what = "a value a row" if found.blocks else "one row"
            names = ", ".join(dict.fromkeys(used.name for used in found.users))
            change = f"{names} in {block.function.name} takes {what} with stride 0, not as a matrix"
            yield Change(f"{site}/in place", change, tuple(edits))


def _spread(kernel: KernelProgram, block: Block, i: int, call: ApiCall) -> _Spread | None:
    """A BroadCast of one of the two kinds."""
    if len(call.args) not in (4, 5) or call.statement is None:
        return None
    shapes = [_shape(kernel, call, a) for a in call.args[2:4]]
    matrix, source = call.args[:2]
    users = _users(kernel, block, i, matrix, source)
    if not users or shapes[0] is None or shapes[1] is None or shapes[0][0] == "1":
        return None
    (rows, width), of = shapes[0], shapes[1]
    by_value = of[1] == "1" and of[0] == rows
    kinds = local_types([kernel.text(call.path, call.function.node)])
    kind = kinds.get(root(users[0].args[0]), "") or kinds.get(root(matrix), "")
    if (not by_value and (of[0] != "1" or of[1] != width)) or not kind or "int" in kind or root(matrix) == root(source):
        return None
    blocks = matrix if by_value else ""
    if by_value and any(root(matrix) in writes(u) for u in users):
        # What is made stands where the blocks would: those go where BroadCast works.
        blocks = f"{call.args[4]}.template ReinterpretCast<{kind}>()" if len(call.args) == 5 else ""
        if not blocks:
            return None
    starts = sorted(c.node.start_byte for c in kernel.calls_of(call.function) if c.name in _CALLS)
    name = f"rowsInPlace{starts.index(call.node.start_byte) + 1}"
    return _Spread(call.statement, matrix, source, users, rows, width, kind, name, blocks, call)


def _copied_rows(kernel: KernelProgram, block: Block, i: int, call: ApiCall) -> _Spread | None:
    """``Copy(m, v, MASK_PLACEHOLDER, rows, {1, 1, apart, 0})`` of as many elements as a mask of counts says, or of the
    first element of a block a row, ``{1, 0, apart, 1}``."""
    strides = re.fullmatch(r"(?:\w+)?\{(.*)\}", call.args[4], re.DOTALL) if len(call.args) == 5 else None
    parts = listed(strides[1]) if strides is not None else []
    if len(parts) != 4 or "PLACEHOLDER" not in call.args[2] or call.statement is None:
        return None
    if (parts[0], parts[1], parts[3]) not in (("1", "1", "0"), ("1", "0", "1")):
        return None
    masks = (s.call for s in reversed(block.steps[:i]) if s.call is not None and s.call.name == "SetVectorMask")
    mask = next(masks, None)
    width = mask.args[-1] if mask is not None and "COUNTER" in mask.template and mask.args else ""
    users = _users(kernel, block, i, *call.args[:2]) if width else ()
    kind = call.template.strip("<> ").partition(",")[0]
    if not users or not kind or "int" in kind or _bare(width) not in _bare(parts[2]):
        return None
    starts = sorted(c.node.start_byte for c in kernel.calls_of(call.function) if c.name == "Copy")
    name = f"rowsCopied{starts.index(call.node.start_byte) + 1}"
    blocks = call.args[1] if parts[1] == "0" else ""
    return _Spread(call.statement, call.args[0], call.args[1], users, call.args[3], width, kind, name, blocks)


def _repeated(
    kernel: KernelProgram, block: Block, i: int, loops: Mapping[tuple[str, int], CountedLoop]
) -> _Spread | None:
    """A loop that copies one row behind the other, perhaps where there is more than one."""
    node = block.steps[i].node
    loop_node = _only_loop(node)
    loop = loops.get((block.function.path, loop_node.start_byte)) if loop_node is not None else None
    turn = turn_of(kernel, loop) if loop is not None and (loop.first, loop.step) == ("0", "1") else None
    if loop_node is None or loop is None or turn is None or turn[1] or len(turn[2]) != 1 or not copies(turn[2][0]):
        return None
    names, _, (copy,) = turn
    place, width, source = affine(copy.args[0], loop.name, "0", names), copy.args[-1], copy.args[1]
    if place is None or place.start != "0" or _bare(place.step) != _bare(width):
        return None
    users = _users(kernel, block, i, place.tensor, source)
    kind = local_types([kernel.text(copy.path, block.function.node)]).get(root(place.tensor), "")
    if not users or not kind or "int" in kind or not fixed(source, loop.name, names):
        return None
    starts = sorted(n.start_byte for n in walk(block.function.body) if n.type in LOOPS)
    name = f"rowsRepeated{starts.index(loop_node.start_byte) + 1}"
    return _Spread(node, place.tensor, source, users, loop.bound, width, kind, name)


def _only_loop(node: Node) -> Node | None:
    """A loop, or the one that is all a choice without another side has."""
    if node.type == "if_statement" and node.child_by_field_name("alternative") is None:
        inner = node.child_by_field_name("consequence")
        node = inner.named_children[0] if inner is not None and inner.named_child_count == 1 else node
    return node if node.type == "for_statement" else None


def _bare(text: str) -> str:
    return re.sub(r"[()\s]|this->", "", text)


def _shape(kernel: KernelProgram, call: ApiCall, name: str) -> tuple[str, str] | None:
    """The two numbers of a shape that is declared with them in the function, and not changed behind."""
    text = kernel.text(call.path, call.function.node)
    if not re.fullmatch(r"\w+", name):
        return None
    declared = re.findall(rf"\b{name}\s*\[\w+\]\s*=\s*\{{([^{{}}]*)\}}\s*;", text)
    if len(declared) != 1 or re.search(rf"\b{name}\s*\[\w+\]\s*=(?!\s*\{{)", text):
        return None
    numbers = [re.sub(r"^\(\s*uint32_t\s*\)\s*", "", part) for part in listed(declared[0])]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _users(kernel: KernelProgram, block: Block, i: int, matrix: str, source: str) -> tuple[ApiCall, ...]:
    """The instructions that read the matrix before it is written again; nothing where anything else has to do with it.

    They may stand in branches; one may write what it makes in the matrix's place.
    """
    users: list[ApiCall] = []
    changed = False
    for step in block.steps[i + 1 :]:
        names = _WORD.findall(kernel.text(block.function.path, step.node))
        call = step.call
        if root(matrix) not in names:
            changed = changed or _changes(kernel, block, step, root(source))
        elif users and _ends(kernel, block, i, step, matrix):
            return tuple(users)
        elif changed:
            return ()
        elif call is not None:
            if not _reads(call, matrix):
                return ()
            users.append(call)
            if call.args[0] == matrix:
                return tuple(users)
        else:
            inside = _in_branches(kernel, block, step.node, matrix)
            if users and _written_in(kernel, block, i, step, matrix):
                return tuple(users)
            if sum(_WORD.findall(" ".join(c.args)).count(root(matrix)) for c in inside) < names.count(root(matrix)):
                return ()
            users += inside
    return tuple(users)


def _ends(kernel: KernelProgram, block: Block, i: int, step: BlockStep, matrix: str) -> bool:
    """Does the matrix hold something else behind the statement?"""
    anew = step.call is not None and _taken_anew(kernel, step.call, matrix)
    return anew or _renamed(kernel, block, i, step, matrix)


def _renamed(kernel: KernelProgram, block: Block, i: int, view: BlockStep, matrix: str) -> bool:
    """Is it a view of the matrix that is written anew before anything reads it, and the matrix not named behind?"""
    path = block.function.path
    found = re.match(r"[\w:\s<>,&]*?\b(\w+)\s*=", kernel.text(path, view.node))
    if view.node.type != "declaration" or found is None:
        return False
    behind = [s for s in block.steps[i + 1 :] if s.node.start_byte > view.node.start_byte]
    named = [s.call for s in behind if found[1] in _WORD.findall(kernel.text(path, s.node))]
    again = any(root(matrix) in _WORD.findall(kernel.text(path, s.node)) for s in behind)
    return bool(named) and named[0] is not None and not again and _taken_anew(kernel, named[0], found[1])


def _changes(kernel: KernelProgram, block: Block, step: BlockStep, source: str) -> bool:
    """May the statement write what the matrix is made of?"""
    calls = [kernel.call_at(block.function, n) for n in walk(step.node) if n.type == "call_expression"]
    known = [c for c in calls if source in _WORD.findall(" ".join(c.args))]
    return any(source in writes(c) or c.name not in VECTOR | {"FreeTensor"} for c in known)


def _in_branches(kernel: KernelProgram, block: Block, node: Node, matrix: str) -> list[ApiCall]:
    """The instructions in a choice that read the matrix and leave it as it is."""
    if node.type != "if_statement" or any(n.type in LOOPS for n in walk(node)):
        return []
    calls = [kernel.call_at(block.function, n) for n in walk(node) if n.type == "call_expression"]
    return [c for c in calls if c.statement is not None and _reads(c, matrix) and root(c.args[0]) != root(matrix)]


def _written_in(kernel: KernelProgram, block: Block, i: int, choice: BlockStep, matrix: str) -> bool:
    """Is the matrix written anew in one branch of a choice, the first thing done to it there and then, and not named in
    another branch, nor behind?"""
    if choice.node.type != "if_statement":
        return False
    calls = [kernel.call_at(block.function, n) for n in walk(choice.node) if n.type == "call_expression"]
    named = [c for c in calls if root(matrix) in _WORD.findall(" ".join(c.args))]
    if not named or not _taken_anew(kernel, named[0], matrix) or named[0].name in _CALLS or named[0].statement is None:
        return False
    branch = named[0].statement.parent
    within = branch is not None and all(branch.start_byte < c.node.start_byte < branch.end_byte for c in named)
    later = (s.node for s in block.steps[i + 1 :] if s.node.start_byte > choice.node.start_byte)
    behind = (n for n in later if root(matrix) in _WORD.findall(kernel.text(block.function.path, n)))
    return within and all("FreeTensor" in kernel.text(block.function.path, n) for n in behind)


def _taken_anew(kernel: KernelProgram, call: ApiCall, matrix: str) -> bool:
    """Is the matrix's memory given back, written, or left to a function of the kernel's own?"""
    if call.name in VECTOR - ACCUMULATING and call.args[0] == matrix:
        return matrix not in call.args[1:]
    return call.name in {f.name for f in kernel.functions} | {"FreeTensor", *_CALLS}


def _reads(call: ApiCall, matrix: str) -> bool:
    """Is the matrix the operand that an instruction can take with a stride of its own?"""
    if len(call.args) != 4 or "," in call.template:
        return False
    if call.name == "Axpy":
        return call.args[1] == matrix
    first = call.name in _SWAPS and call.args[1] == matrix and call.args[2] != matrix
    return call.name in BINARY and (first or (call.args[2] == matrix and call.args[1] != matrix))


def _first(kernel: KernelProgram, block: Block, found: _Spread) -> str:
    """The condition, and what comes in place of the matrix: a block a row, or nothing."""
    rows, width = (f"static_cast<int64_t>({n})" for n in (found.rows, found.width))
    size = f"static_cast<int64_t>(sizeof({found.kind}))"
    conditions = [
        f"{rows} > 1",
        f"{rows} <= {_MOST}",
        f"{width} * {size} % 32 == 0",
        *([f"{width} * {size} >= 256"] if found.call is not None else []),  # a loop has an instruction for each row
        f"{width} * {size} <= {_MOST * 32}",
        f"{size} >= 2",
        *dict.fromkeys(f"static_cast<int64_t>({used.args[-1]}) == {rows} * {width}" for used in found.users),
    ]
    condition = f"const bool {found.name} = {' && '.join(conditions)};"
    whole = kernel.text(block.function.path, found.made)
    if not found.blocks or found.call is None:
        return f"{condition} if (!{found.name}) {{ {whole} }}"
    times = f"static_cast<uint8_t>(({rows} + 7) / 8)"
    brcb = found.call.spelled("Brcb", found.blocks, found.source, times, "{1, 8}")
    return f"{condition} if ({found.name}) {{ {brcb}; }} else {{ {whole} }}"


def _second(kernel: KernelProgram, found: _Spread, used: ApiCall) -> str:
    """The instruction a column of 256 bytes, its repeats rows, or a row, its repeats columns: as there are more."""
    by_column, by_row = _by_column(found, used), _by_row(found, used)
    width, lanes = f"static_cast<int64_t>({found.width})", _lanes(found)
    rows = f"static_cast<int64_t>({found.rows})"
    whole = f"{kernel.text(used.path, used.node)};"
    return (
        f"if ({found.name} && {width} <= {rows} * ({lanes})) {{ {by_column} }} "
        f"else if ({found.name}) {{ {by_row} }} else {{ {whole} }}"
    )


def _lanes(found: _Spread) -> str:
    return f"256 / static_cast<int64_t>(sizeof({found.kind}))"


def _strided(
    found: _Spread, used: ApiCall, at: tuple[str, str], mask: str, repeats: str, apart: tuple[str, str]
) -> str:
    """``at``: where operands begin, and what is spread; ``apart``: blocks from repeat to repeat of these."""
    spread, blocks = f"{found.blocks or found.source}{at[1]}", "0" if found.blocks else "1"
    if used.name == "Axpy":
        operands = [f"{used.args[0]}{at[0]}", spread, used.args[2]]
        params = f"AscendC::UnaryRepeatParams(1, {blocks}, {apart[0]}, {apart[1]})"
    else:
        other = used.args[1] if used.args[2] == found.matrix else used.args[2]
        operands = [f"{used.args[0]}{at[0]}", f"{other}{at[0]}", spread]
        params = f"AscendC::BinaryRepeatParams(1, 1, {blocks}, {apart[0]}, {apart[0]}, {apart[1]})"
    counts = (f"static_cast<uint64_t>({mask})", f"static_cast<uint8_t>({repeats})")
    return f"{used.spelled(used.name, *operands, *counts, params)};"


def _by_column(found: _Spread, used: ApiCall) -> str:
    width, lanes = f"static_cast<int64_t>({found.width})", _lanes(found)
    apart = f"static_cast<uint8_t>({width} * sizeof({found.kind}) / 32)"
    left = f"const int64_t columnWidth = {width} - column < {lanes} ? {width} - column : {lanes};"
    at, repeats = ("[column]", "" if found.blocks else "[column]"), "1" if found.blocks else "0"
    one = _strided(found, used, at, "columnWidth", found.rows, (apart, repeats))
    return f"for (int64_t column = 0; column < {width}; column += {lanes}) {{ {left} {one} }}"


def _by_row(found: _Spread, used: ApiCall) -> str:
    width, lanes = f"static_cast<int64_t>({found.width})", f"({_lanes(found)})"
    head = f"for (int64_t row = 0; row < static_cast<int64_t>({found.rows}); row++)"
    if not found.blocks:
        at = f"[row * {width}]"
        args = [f"{used.args[0]}{at}", *(found.source if a == found.matrix else f"{a}{at}" for a in used.args[1:3])]
        if used.name == "Axpy":
            args = [f"{used.args[0]}{at}", found.source, used.args[2]]
        return f"{head} {{ {used.spelled(used.name, *args, found.width)}; }}"
    block = f"[row * (32 / static_cast<int64_t>(sizeof({found.kind})))]"
    first = _strided(found, used, (f"[row * {width}]", block), lanes, f"{width} / {lanes}", ("8", "0"))
    tail = (f"[row * {width} + {width} / {lanes} * {lanes}]", block)
    rest = _strided(found, used, tail, f"{width} % {lanes}", "1", ("8", "0"))
    return f"{head} {{ {first} if ({width} % {lanes} != 0) {{ {rest} }} }}"
