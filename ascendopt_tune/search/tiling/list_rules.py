"""Lists in the tiling data, made as long as the case needs them.

A list for every core or tensor that there could be is copied to each core, 8 bytes at a time, whatever the case has of
them. Source: asc-devkit, operator practice, "limit the size of the TilingData struct": the copy takes microseconds,
which small shapes feel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...nouns.trial import Move
from ...sources.cpp import Edit
from ..mutation import Mutation
from .context import Context
from .logic_rules import core_count
from .purposes import CAP
from .slice import Template

_LIST = re.compile(rb"\bTILING_DATA_FIELD_DEF_ARR\s*\(\s*([\w:]+)\s*,\s*(\w+)\s*,\s*\w+\s*\)")
_NAMED = re.compile(
    rb"(?:#\s*define\s+|\bconst(?:expr)?\s+[\w:\s]*?\b)(\w+)\s*=?\s*\(?\s*(\d+)\s*[uUlL]*\s*\)?\s*(?:;|$)", re.M
)
_CORES, _TENSORS = (re.compile(words, re.IGNORECASE) for words in ("core|block", "tensor|input"))
_SHORTEST = 16  # elements; a list that has fewer costs next to nothing
_LEAST = 64  # bytes that have to be saved
_TOO_EARLY = 0.2  # worth of shorter lists while there are more blocks than pay
_RANK, _LEAST_RANK, _MOST_RANK = 60.0, 0.5, 12.0  # worth of a task's whole time; a number of cores is worth 3
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


@dataclass(frozen=True)
class _Place:
    """The length of a list: where it is written, in which words, and how long it is."""

    path: str
    start: int
    end: int
    length: int
    element: int  # bytes
    words: str


def shorter_lists(template: Template, context: Context) -> Iterator[Mutation]:
    """Every long list as long as there are blocks and tensors, or one of tensors as long as there are tensors.

    Where the work pays for fewer cores, also with as many: the list of a launch on all cores leaves little to save.
    Where lists are as long as there are cores already, other numbers of cores with lists as long.
    """
    if context.blocks is None:
        return
    yield from _other_cores(template, context)
    fewer = context.paying_cores if context.paying_cores and context.paying_cores < context.blocks else None
    yield from _shortened(template, context, context.blocks, None, 1.0 if fewer is None else _TOO_EARLY)
    if fewer is not None:
        for m in core_count(template, context):
            if m.moves[0].value == fewer:
                yield from _shortened(template, context, fewer, m, 1.0)
                return


def _shortened(
    template: Template, context: Context, blocks: int, cores: Mutation | None, promise: float
) -> Iterator[Mutation]:
    """Lists for so many blocks, together with what makes them so many."""
    places = list(_places(template))
    lengths = [
        dict.fromkeys(places, max(blocks, context.listed)),
        {p: _needed(p.words, blocks, context.listed) for p in places},
    ]
    told: set[tuple[tuple[str, int, int], ...]] = set()
    for chosen in lengths:
        shorter = {p: n for p, n in chosen.items() if n < p.length}
        saved = sum((p.length - n) * p.element for p, n in shorter.items())
        marks = tuple(sorted((p.path, p.start, n) for p, n in shorter.items()))
        if saved < _LEAST or marks in told:
            continue
        told.add(marks)
        edits = tuple(Edit(p.path, p.start, p.end, str(n)) for p, n in shorter.items())
        sizes = sorted(set(shorter.values()), reverse=True)
        change = f"tiling lists: at most {' and '.join(map(str, sizes))} elements, {saved} bytes less"
        move = Move("tiling lists", "tiling_list", "down", sum(shorter.values()))
        share = saved / 8 * context.word_us / context.task_us if context.task_us else 0.0
        weight = promise * min(_MOST_RANK, max(_LEAST_RANK, _RANK * share))
        if cores is None:
            yield Mutation(edits, change, (move,), weight)
        else:
            yield Mutation((*cores.edits, *edits), f"{cores.change}; {change}", (*cores.moves, move), 2 * weight)


def _other_cores(template: Template, context: Context) -> Iterator[Mutation]:
    """Another number of cores with lists as long, where they are as long as the number of cores is."""
    entries = _entries(template)
    if entries is None:
        return
    places = [p for p in _places(template, shortest=1) if p.length == entries]
    for m in core_count(template, context):
        cores = round(m.moves[0].value)
        if 0 < cores <= context.cores:
            edits = tuple(Edit(p.path, p.start, p.end, str(cores)) for p in places)
            yield Mutation((*m.edits, *edits), f"{m.change}, in tiling lists, too", m.moves, m.weight)


def beyond_lists(template: Template) -> Callable[[Mutation], bool]:
    """Does it ask for another number of cores and leave lists of the tiling data that are as long as there are cores
    as they are? Asked of mutations."""
    entries = _entries(template)
    lists = {(p.path, p.start) for p in _places(template, shortest=1) if p.length == entries}

    def leaves_lists(mutation: Mutation) -> bool:
        more = entries is not None and any(m.family == "core_count" for m in mutation.moves)
        return more and not lists <= {(e.path, e.start) for e in mutation.edits}

    return leaves_lists


def _entries(template: Template) -> int | None:
    """How long the lists are that have an entry for each core: a number, and the most cores that the program takes."""
    most = {int(c["n"]) for s in template.of_purpose("core_count") if (c := CAP.fullmatch(s.text))}
    known = {p.length for p in _places(template, shortest=1) if p.words.isdigit()}
    return min(most & known, default=None)


def _needed(words: str, blocks: int, tensors: int) -> int:
    """How long a list has to be whose length is called so; one that is a number may be of either."""
    if _CORES.search(words):
        return blocks
    return tensors if tensors and _TENSORS.search(words) else max(blocks, tensors)


def _places(template: Template, shortest: int = _SHORTEST) -> Iterator[_Place]:
    files = template.program.files
    named = {name: int(n) for source in files.values() for name, n in _NAMED.findall(source.data)}
    for path, source in files.items():
        for found in _LIST.finditer(source.data):
            kind, length = found.groups()
            number = int(length) if length.isdigit() else named.get(length)
            if number is None or number < shortest or _left_out(source.data, found.start()):
                continue
            bits = re.search(r"\d+", kind.decode())
            size = _BYTES.get(bits[0] if bits else "", 4)
            yield _Place(path, *found.span(2), number, size, length.decode())


def _left_out(text: bytes, at: int) -> bool:
    """Is the line a comment, or a macro's own definition?"""
    line = text[text.rfind(b"\n", 0, at) + 1 : at].lstrip()
    return line.startswith((b"//", b"#", b"*"))
