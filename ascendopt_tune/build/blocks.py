"""Blocks of a tiling program that a case runs: a change anywhere else leads to the same launch.

``probed`` puts a mark at the beginning of every block; after a run the marks say which blocks were entered. Two
programs that are equal but for blocks which the run of one never entered run alike (the other enters none of them
either, for what decides about that is equal), so the second needn't be compiled to know what it decides.

A block stands for all its text, and the text outside of blocks counts as run. So do blocks that may be entered
elsewhere than at their beginning (labels, cases), bodies of switches, and constexpr functions.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node, Query

from ..sources.cpp import LANGUAGE, captured, parse

#: File, then the block's number among those of its file, among those directly in that one, and so on.
BlockId = tuple[str | int, ...]

#: The marks' array in a program.
TABLE = "vnpu_ran"
_PER_FILE = 512  # blocks that get a mark; the others count as run
_JUMPS = ("case_statement", "labeled_statement", "goto_statement")
_NODES = Query(
    LANGUAGE,
    f"[(compound_statement) (function_definition) {' '.join(f'({kind})' for kind in _JUMPS)}] @node",
)


@dataclass(frozen=True)
class _Block:
    start: int  # byte behind the opening brace
    end: int  # byte of the closing one
    inner: tuple[_Block, ...]


def probed(files: Mapping[str, str], main: str) -> tuple[dict[str, str], tuple[tuple[int, BlockId], ...]]:
    """The files with marks, and (place in the array, block) of each. ``main``: the source that has the array."""
    out: dict[str, str] = {}
    marks: list[tuple[int, BlockId]] = []
    for number, (path, text) in enumerate(sorted(files.items())):
        found = list(_numbered((path,), _blocks(path, text)))[:_PER_FILE]
        data, parts, at = text.encode(), [], 0
        size = len(files) * _PER_FILE if path == main else ""
        parts.append(f'extern "C" {{ {"" if size else "extern "}unsigned char {TABLE}[{size}]; }}\n#line 1\n'.encode())
        for place, (name, block) in enumerate(sorted(found, key=lambda x: x[1].start), number * _PER_FILE):
            parts += [data[at : block.start], f" {TABLE}[{place}] = 1; ".encode()]
            at = block.start
            marks.append((place, name))
        out[path] = b"".join([*parts, data[at:]]).decode()
    return out, tuple(marks)


def names(files: Mapping[str, str]) -> list[BlockId]:
    """All blocks of the files."""
    return [name for path, text in sorted(files.items()) for name, _ in _numbered((path,), _blocks(path, text))]


def digest_of_run(files: Mapping[str, str], ran: Collection[BlockId]) -> str:
    """Names the files without what stands in other blocks than those that ran."""
    digest = hashlib.sha256()
    for path, text in sorted(files.items()):
        data = text.encode()
        digest.update(f"{path}\0".encode())
        at = 0
        for block in _left_out((path,), _blocks(path, text), ran):
            digest.update(data[at : block.start])
            at = block.end
        digest.update(data[at:] + b"\0")
    return digest.hexdigest()


def _numbered(parent: BlockId, blocks: Sequence[_Block]) -> Iterator[tuple[BlockId, _Block]]:
    for i, block in enumerate(blocks):
        yield (*parent, i), block
        yield from _numbered((*parent, i), block.inner)


def _left_out(parent: BlockId, blocks: Sequence[_Block], ran: Collection[BlockId]) -> Iterator[_Block]:
    """The outermost blocks that didn't run, in order of the text."""
    for i, block in enumerate(blocks):
        name = (*parent, i)
        if name in ran:
            yield from _left_out(name, block.inner, ran)
        else:
            yield block


@lru_cache(maxsize=256)
def _blocks(path: str, text: str) -> tuple[_Block, ...]:
    source = parse(path, text)
    nodes = captured(_NODES, source.tree.root_node)
    jumps = [n.start_byte for n in nodes if n.type in ("labeled_statement", "goto_statement")]
    skipped = [
        (n.start_byte, n.end_byte)
        for n in nodes
        if n.type == "function_definition"
        and (_is_constexpr(n) or any(n.start_byte <= at < n.end_byte for at in jumps))
    ]
    # Who has a case or a label among its statements is entered there as well.
    entered = {n.parent.id for n in nodes if n.type in _JUMPS and n.parent is not None}
    spans = sorted(
        (n.start_byte + 1, 1 - n.end_byte)
        for n in nodes
        if n.type == "compound_statement"
        and n.id not in entered
        and (n.parent is None or n.parent.type != "switch_statement")
        and source.data[n.start_byte : n.start_byte + 1] == b"{"
        and source.data[n.end_byte - 1 : n.end_byte] == b"}"
        and not any(start <= n.start_byte < end for start, end in skipped)
    )
    return _nested(deque((start, -end) for start, end in spans), len(source.data))


def _nested(spans: deque[tuple[int, int]], end: int) -> tuple[_Block, ...]:
    """The blocks of these (start, end), outer ones before inner ones, that begin before ``end``."""
    out = []
    while spans and spans[0][0] <= end:
        first, last = spans.popleft()
        out.append(_Block(first, last, _nested(spans, last)))
    return tuple(out)


def _is_constexpr(function: Node) -> bool:
    words = [c.text for c in function.children if c.type in ("type_qualifier", "storage_class_specifier")]
    return b"constexpr" in words or b"consteval" in words
