"""Floats rounded to 8 or 4 bits without the detour over int32.

``float -> int32 -> half -> int8`` rounds in its first step, and the others change nothing for what fits 8 bits.
``float -> half`` to odd keeps on which side of a tie a value lies, and half has three bits more than 8 bits need:
``half -> int8`` then rounds as the first step did. A half needs the last step alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ...reading.affine import indexed
from ...reading.api import VECTOR, is_barrier, root
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, KernelProgram, siblings
from ..motif import Change, Motif

_MODE = re.compile(r"(?:AscendC::)?(?:RoundMode::)?(CAST_(?:RINT|ROUND|FLOOR|CEIL|TRUNC))")
_REINTERPRETED = re.compile(r"\.\s*(?:template\s+)?ReinterpretCast\s*<\s*([\w:]+)\s*>\s*\(\s*\)\s*(?:\[[^\[\]]*\])?$")
_OTHERS = frozenset(["bfloat16_t", "float", "half", "int16_t", "int32_t", "int64_t", "uint32_t"])


@dataclass(frozen=True)
class _Chain:
    """``Cast(whole, source, mode); Cast(narrow, whole); Cast(target, narrow)``, the last one perhaps several times."""

    first: ApiCall
    second: ApiCall
    last: tuple[ApiCall, ...]
    kind: str  # of the source
    idle: tuple[Node, ...]  # barriers between the first two, which nothing else needs


def kind_of(kinds: dict[str, set[str]], operand: str) -> str:
    """The element type of an operand where it is known; empty otherwise."""
    seen = _REINTERPRETED.search(operand)
    if seen is not None:
        return seen[1]
    known = kinds.get(root(operand), set()) if "ReinterpretCast" not in operand else set()
    return next(iter(known)) if len(known) == 1 else ""


def _casts(kernel: KernelProgram) -> Iterator[ApiCall]:
    return (c for c in kernel.named("Cast") if len(c.args) == 4 and c.statement is not None)


def _chains(kernel: KernelProgram) -> Iterator[_Chain]:
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for first in _casts(kernel):
        whole, source, mode, count = first.args
        if _MODE.fullmatch(mode) is None:
            continue
        kinds = {**everywhere, **local_kinds([kernel.text(first.path, first.function.node)])}
        kind = kind_of(kinds, source)
        if kind_of(kinds, whole) != "int32_t" or kind not in ("float", "half"):
            continue
        found = _narrowed(kernel, first)
        if found is None or found[0].args[3] != count or kind_of(kinds, found[0].args[0]) != "half":
            continue
        second, idle = found
        if kind == "half" and second.args[0] != source:
            continue
        last = _taken(kernel, second, whole)
        if last and not any(kind_of(kinds, c.args[0]) in _OTHERS for c in last):
            yield _Chain(first, second, last, kind, idle)


def _narrowed(kernel: KernelProgram, first: ApiCall) -> tuple[ApiCall, tuple[Node, ...]] | None:
    """The cast that takes what the first one made, and the barriers between that only order these two."""
    assert first.statement is not None
    whole, source = first.args[:2]
    own = re.compile(rf"\b(?:{re.escape(root(whole))}|{re.escape(root(source))})\b")
    idle: list[Node] = []
    alone = True
    for node in siblings(first.statement):
        if node.start_byte <= first.statement.start_byte:
            continue
        call = kernel.call_of(first.function, node)
        if call is not None and call.name == "Cast" and len(call.args) == 4 and call.args[1] == whole:
            return call, tuple(idle) if alone else ()
        if call is not None and is_barrier(call, "PIPE_V"):
            idle.append(node)
        elif call is not None and call.name in VECTOR:
            alone = False
        if call is None and node.type not in ("declaration", "comment"):
            return None
        if node.type != "declaration" and own.search(kernel.text(first.path, node)):
            return None
    return None


def _taken(kernel: KernelProgram, second: ApiCall, whole: str) -> tuple[ApiCall, ...]:
    """The casts that read what the second one made, all of them; none where anything else reads it or ``whole``."""
    narrow = second.args[0]
    out: list[ApiCall] = []
    for call in kernel.calls_of(second.function):
        if call.node.start_byte <= second.node.start_byte or call.name == "FreeTensor" or not call.args:
            continue
        if call.args[0] in (narrow, whole) and not {narrow, whole} & set(call.args[1:]):
            break  # made anew
        if call.name == "Cast" and len(call.args) == 4 and narrow in (call.args[1], indexed(call.args[1])[0]):
            out.append(call)
        elif any(narrow in a or re.search(rf"\b{re.escape(whole)}(?!\w)", a) for a in call.args):
            return ()
    return tuple(out)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for chain in _chains(kernel):
        first, second, f = chain.first, chain.second, chain.first.function
        assert first.statement is not None
        assert second.statement is not None
        mode = first.args[2]
        edits = [kernel.delete(f.path, n) for n in (first.statement, *chain.idle)]
        if chain.kind == "half":
            edits.append(kernel.delete(f.path, second.statement))
        else:
            odd = re.sub(r"CAST_\w+", "CAST_ODD", mode)
            text = second.spelled("Cast", second.args[0], first.args[1], odd, second.args[3])
            edits.append(kernel.replace(f.path, second.statement, f"{text};"))
        edits += [kernel.replace(f.path, c.arguments[2], mode) for c in chain.last]
        change = f"{chain.kind} in {f.name} rounded in its last cast, without int32 in between"
        yield Change(kernel.site(f, first.statement), change, tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``Cast(h, f, CAST_ODD); Cast(y, h, mode)`` by way of an int32 in the float's own place, where nobody reads it."""
    for first in _casts(kernel):
        narrow, source, odd, count = first.args
        takers = _taken(kernel, first, source) if odd.endswith("CAST_ODD") and re.fullmatch(r"\w+", source) else ()
        if len(takers) != 1 or _MODE.fullmatch(takers[0].args[2]) is None:
            continue
        mode = takers[0].args[2]
        whole = f"{source}.template ReinterpretCast<int32_t>()"
        barrier = "" if kernel.auto_sync else "PipeBarrier<PIPE_V>(); "
        none = re.sub(r"CAST_\w+", "CAST_NONE", mode)
        lines = (
            f"{first.spelled('Cast', whole, source, mode, count)}; {barrier}"
            f"{first.spelled('SetDeqScale', 'static_cast<half>(1.0f)')}; "
            f"{first.spelled('Cast', narrow, whole, none, count)};"
        )
        assert first.statement is not None
        edits = (
            kernel.replace(first.path, first.statement, lines),
            kernel.replace(first.path, takers[0].arguments[2], re.sub(r"CAST_\w+", "CAST_TRUNC", mode)),
        )
        yield Change(kernel.site(first.function, first.statement), f"{source} rounded by way of int32", edits)


FEWER_CASTS = Motif(
    name="fewer-casts",
    title="To 8 bits without int32 in between",
    description="A float that becomes int8 by way of int32 and half takes three passes over the data. Rounded to odd, "
    "the half keeps what the last cast needs to round as int32 would have been; a half needs that last cast alone.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="Nobody else reads the int32 values; the deq scale is 1; results have 8 bits or fewer.",
    faster=_faster,
    slower=_slower,
)
