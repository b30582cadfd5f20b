"""Copies that are only there because elsewhere, or in another build, something else stands in their place.

1. What is cast where the types differ is copied where they agree, several tensors at once perhaps, by a count or by
   repeats: where they agree the tensors are those that were loaded, held as long.
2. What an instruction makes and a copy takes to a tensor that was taken from a queue in between is made in that tensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.api import ACCUMULATING, ELEMENTWISE, is_barrier, root
from ...reading.classes import families
from ...reading.declared import global_tensors, kinds_in
from ...reading.kernel_program import ApiCall, Block, KernelProgram, where
from ..motif import Change
from ..vectors.choices import copies
from ..vectors.dead import dead, declared
from .copies_within import held_longer

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"(?:this->)?[A-Za-z_]\w*")
_TAKEN = re.compile(r"(?:[\w:]+\s*<[^;=]*>\s*|auto\s+)?(\w+)\s*=\s*[\w.>-]+\.\s*(?:template\s+)?AllocTensor\b[^;]*;")
_PLAIN = re.compile(r"\{1,1,8,8\}|(?:AscendC::)?CopyRepeatParams[({]1,1,8,8[)}]")
_DENSE = ("{1,1,8,8}", "{1,1,1,8,8,8}")
_GIVEN_ON = ("EnQue", "DataCopy", "DataCopyPad")


def copies_alike(kernel: KernelProgram) -> Iterator[Change]:
    """Each copy of the two kinds, not made."""
    outside = global_tensors(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            found = _choice(kernel, block, step.node)
            if found is not None and not outside & {root(a) for c in found.copied for a in c.args[:2]}:
                yield from _the_loaded_ones(kernel, block, i, found)
            if step.call is not None and is_copy(step.call) and not outside & {root(a) for a in step.call.args[:2]}:
                yield from _made_there(kernel, block, i, step.call)


def is_copy(call: ApiCall) -> bool:
    """A copy within the Unified Buffer by a count, or by repeats of one block behind the other."""
    if call.name == "Copy" and len(call.args) == 5:
        return _PLAIN.fullmatch("".join(call.args[4].split())) is not None
    return copies(call)


# -- those that were loaded --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """The side of a choice at compile time that copies, where another one casts the same tensors to the same ones."""

    copied: tuple[ApiCall, ...]
    casts: tuple[Node, ...]  # the last statement of each side that casts

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(c.args[0] for c in self.copied)


def _choice(kernel: KernelProgram, block: Block, node: Node) -> _Choice | None:
    sides: list[tuple[ApiCall, ...]] = []
    while node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        sides.append(_work(kernel, block, then))
        if other is None:
            break
        node = other.named_children[-1]
    else:
        sides.append(_work(kernel, block, node))
    copied = next((s for s in sides if s and all(is_copy(c) for c in s)), ())
    asked = [tuple(c.args[:2]) for c in copied]
    alike = [s for s in sides if s and [tuple(c.args[:2]) for c in s] == asked and all(c.name == "Cast" for c in s)]
    casts = tuple(s[-1].statement for s in alike if s[-1].statement is not None)
    many = len(copied) > 1 or (len(copied) == 1 and (copied[0].name == "Copy" or len(sides) > 2))
    return _Choice(copied, casts) if casts and many else None


def _work(kernel: KernelProgram, block: Block, side: Node | None) -> tuple[ApiCall, ...]:
    """The calls of a side in braces, barriers left aside; nothing where there is anything else."""
    if side is None or side.type != "compound_statement":
        return ()
    calls = [kernel.call_of(block.function, n) for n in side.named_children if n.type != "comment"]
    known = [c for c in calls if c is not None]
    return tuple(c for c in known if not is_barrier(c, "PIPE_V")) if len(known) == len(calls) else ()


def _the_loaded_ones(kernel: KernelProgram, block: Block, i: int, choice: _Choice) -> Iterator[Change]:
    f, path = block.function, block.function.path
    loaded = {root(c.args[1]) for c in choice.copied}
    names = [t.removeprefix("this->") for t in choice.targets]
    if len(loaded) != 1 or any(_NAME.fullmatch(t) is None for t in choice.targets) or loaded & set(names):
        return
    if not all(_of_the_function(kernel, f, block, i, n) for n in names):
        return
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    uses = [s.node for s in block.steps[i + 1 :] if word.search(kernel.text(path, s.node))]
    given = [s for s in block.steps[i + 1 :] if next(iter(loaded)) in _WORD.findall(kernel.text(path, s.node))]
    kinds = kinds_in(kernel, f)
    if not uses or len(given) != 1 or given[0].call is None or given[0].call.name != "FreeTensor":
        return
    if any(_given_on(kernel, f, n, word) for n in uses) or any(len(kinds.get(n, ())) != 1 for n in names):
        return
    edits: list[Edit] = []
    for name, copy in zip(names, choice.copied, strict=True):
        assert copy.statement is not None
        kind = next(iter(kinds[name]))
        text = f"{copy.args[0]} = {copy.args[1]}.template ReinterpretCast<{kind}>();"
        edits.append(kernel.replace(path, copy.statement, text))
    if given[0].node.start_byte < uses[-1].start_byte:
        edits += held_longer(kernel, block, given[0].node, uses[-1], list(choice.casts))
    first = choice.copied[0].statement
    assert first is not None
    change = f"{', '.join(names)} of {f.name} are {next(iter(loaded))} where the types agree"
    yield Change(f"{kernel.site(f, first)}/alike", change, tuple(edits))


def _of_the_function(kernel: KernelProgram, f: Function, block: Block, i: int, name: str) -> bool:
    """Is the tensor used behind step i of the block alone, and a buffer asked for it elsewhere at most?"""
    word = re.compile(rf"\b{re.escape(name)}\b")
    here = sum(len(word.findall(kernel.text(f.path, s.node))) for s in block.steps[i:])
    before = sum(_asks(kernel, f, s.node, name) for s in block.steps[:i])
    if len(word.findall(kernel.text(f.path, f.body))) != here + before or name in f.parameters:
        return False
    of = kernel.class_of(f)
    family = next((c for c in families(kernel).values() if of in c), frozenset([of]))
    for g in kernel.functions:
        if where(g) == where(f) or kernel.class_of(g) not in family:
            continue
        asked = sum(_asks(kernel, g, n, name) for n in g.body.named_children)
        if len(word.findall(kernel.text(g.path, g.body))) != asked and name not in declared(kernel, g):
            return False
    return True


def _asks(kernel: KernelProgram, f: Function, node: Node, name: str) -> bool:
    """``name = buffer.Get<T>();``, as a declaration or not."""
    text = kernel.text(f.path, node)
    made = rf"(?:[\w:]+\s*<[^;=]*>\s*|auto\s+)?(?:this->)?{re.escape(name)}\s*=\s*[^;]*\bGet(?:WithOffset)?\s*<[^;]*;"
    return re.fullmatch(made, text, re.DOTALL) is not None


def _given_on(kernel: KernelProgram, f: Function, node: Node, word: re.Pattern[str]) -> bool:
    """Is one of the tensors stored, given to a queue or assigned in a statement?"""
    text = kernel.text(f.path, node)
    if re.search(rf"(?:{word.pattern})\s*=[^=]", text):
        return True
    calls = re.finditer(r"\b(\w+)\s*(?:<[^<>();]*>)?\(([^;]*)\);", text)
    return any(m[1] in _GIVEN_ON and word.search(m[2]) for m in calls)


# -- made there --------------------------------------------------------------------------------------------------------


def _made_there(kernel: KernelProgram, block: Block, i: int, copy: ApiCall) -> Iterator[Change]:
    """``Mul(a, b, c, n); y = queue.AllocTensor(); copy(y, a, n);`` as ``y = queue.AllocTensor(); Mul(y, b, c, n);``."""
    path, (target, source) = block.function.path, copy.args[:2]
    taken = False
    for step in reversed(block.steps[:i]):
        text, call = kernel.text(path, step.node), step.call
        found = _TAKEN.fullmatch(text)
        if found is not None:
            taken = taken or found[1] == root(target)
        elif step.node.type != "comment" and not (call is not None and is_barrier(call, "PIPE_V")):
            plain = call is not None and call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == source
            if call is None or not plain or not (taken or copy.name == "Copy"):
                return
            if root(target) in map(root, call.args[1:]) or not _as_much(call, copy) or call.statement is None:
                return
            if not _over(kernel, block, i, root(source)) or not dead(kernel, block.function, root(source), _end(block)):
                return
            assert copy.statement is not None
            made = f"{call.spelled(call.name, target, *call.args[1:])};"
            edits = (kernel.delete(path, call.statement), kernel.replace(path, copy.statement, made))
            site = kernel.site(block.function, copy.statement)
            yield Change(f"{site}/there", f"{call.name} in {block.function.name} writes {target} itself", edits)
            return


def _over(kernel: KernelProgram, block: Block, i: int, name: str) -> bool:
    """Is the tensor written anew, or given back, by the next statement behind step i of the block that names it?"""
    for step in block.steps[i + 1 :]:
        if name in _WORD.findall(kernel.text(block.function.path, step.node)):
            call = step.call
            anew = call is not None and call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == name
            read = call is not None and any(name in _WORD.findall(a) for a in call.args[1:])
            return (anew and not read) or (call is not None and call.name == "FreeTensor")
    return True


def _end(block: Block) -> int:
    """The last byte of the block, or of the choice that it is a side of: its other sides are not behind it."""
    node = block.node
    while node.parent is not None and node.parent.type in ("if_statement", "else_clause"):
        node = node.parent
    return node.end_byte


def _as_much(made: ApiCall, copy: ApiCall) -> bool:
    if copy.name == "Copy":
        return made.args[-3:-1] == copy.args[2:4] and "".join(made.args[-1].split()) in _DENSE
    return made.args[-1] == copy.args[-1]
