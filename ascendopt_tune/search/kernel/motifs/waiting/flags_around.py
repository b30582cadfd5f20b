"""Flags of a loop over tiles that a loop over rows sets anew for each row: set once, and waited for once.

``SetFlag<E>(a); SetFlag<E>(b);``, tiles that wait for a flag before they use a half and set it behind, and
``WaitFlag<E>(a); WaitFlag<E>(b);``: at the end of each row both halves are waited for, and the next row begins with
nothing under way. Each flag is set once more than it is waited for when the tiles of a row are done, which is what the
next row begins with, so that both lines may stand around the loop over rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.api import COPY, VECTOR
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change

_SETS = {"SetFlag": "WaitFlag", "set_flag": "wait_flag"}
_LOOPS = ("for_statement", "while_statement", "do_statement")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CHANGED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:[-+*/%|&]?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)")


def set_once(kernel: KernelProgram) -> Iterator[Change]:
    """Flags set in front of the only loop of a loop's turn and waited for behind it, set and waited for once."""
    for block in kernel.blocks:
        outer = block.node.parent
        if outer is None or outer.type not in _LOOPS[:2] or outer.parent is None:
            continue
        if outer.parent.type != "compound_statement":
            continue
        steps = [s for s in block.steps if s.node.type != "comment"]
        inner = [i for i, s in enumerate(steps) if s.node.type in _LOOPS]
        if len(inner) != 1 or _leaves(outer, steps[inner[0]].node):
            continue
        sets = [s for s in steps[: inner[0]] if s.call is not None and s.call.name in _SETS]
        waits = steps[inner[0] + 1 :]
        if not sets or not _matched(sets, waits) or not _fixed(kernel, block, outer, sets):
            continue
        rest = [s for s in steps[: inner[0]] if s not in sets]
        if any(_issues(kernel, block, s) for s in rest):
            continue
        path, f = block.function.path, block.function
        line = f"\n{kernel.indent(path, outer)}"
        behind = "".join(f"{line}{kernel.text(path, s.node)}" for s in waits)
        edits = [kernel.before(path, outer, line.join(kernel.text(path, s.node) for s in sets))]
        edits += [kernel.delete(path, s.node) for s in (*sets, *waits)]
        edits.append(Edit(path, outer.end_byte, outer.end_byte, behind))
        change = f"{len(sets)} flags of {f.name} set and waited for once around the loop over rows, not for each row"
        yield Change(f"{kernel.site(f, sets[0].node)}/around", change, tuple(edits))


def _leaves(outer: Node, inner: Node) -> bool:
    """May a turn of the outer loop end before its end?"""
    for node in walk(outer):
        within = inner.start_byte <= node.start_byte < inner.end_byte
        if node.type in ("return_statement", "goto_statement"):
            return True
        if node.type in ("break_statement", "continue_statement") and not within:
            return True
    return False


def _matched(sets: Sequence[BlockStep], waits: Sequence[BlockStep]) -> bool:
    """Is what stands behind the tiles a wait for each of the flags, and nothing else?"""

    def flag(call: ApiCall | None, name: str) -> tuple[str, str, tuple[str, ...]] | None:
        return None if call is None else (name, call.template, call.args)

    made = [flag(s.call, _SETS[s.call.name]) for s in sets if s.call is not None]
    awaited = [flag(s.call, s.call.name if s.call is not None else "") for s in waits]
    return len(set(made)) == len(made) and len(awaited) == len(made) and set(awaited) == set(made)


def _fixed(kernel: KernelProgram, block: Block, outer: Node, sets: Sequence[BlockStep]) -> bool:
    """Is each flag's number the same in all turns?"""
    text = kernel.text(block.function.path, outer)
    changed = {name for pair in _CHANGED.findall(text) for name in pair}
    words = {w for s in sets if s.call is not None for a in s.call.args for w in _WORD.findall(a)}
    declared = re.compile(rf"\b\w+[\s&*]+(?:{'|'.join(words) or '$'})\s*[{{(;]")
    return not words & changed and declared.search(text) is None


def _issues(kernel: KernelProgram, block: Block, step: BlockStep) -> bool:
    """Does a statement in front of the tiles ask a pipe for something, as far as it can be seen?"""
    own = {f.name.partition("<")[0] for f in kernel.program.functions}
    for node in walk(step.node):
        if node.type != "call_expression":
            continue
        call = kernel.call_at(block.function, node)
        if call.name in VECTOR | COPY or call.name in own or call.name in (*_SETS, *_SETS.values()):
            return True
        if call.receiver and call.name in ("EnQue", "DeQue", "AllocTensor", "FreeTensor", "SetValue", "GetValue"):
            return True
    return False
