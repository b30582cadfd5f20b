"""Which files a model sees, in which order, and which parts of those that are too long.

A file is shown without the notice of its licence. Of one that is too long it sees the lines that matter (what has been
changed so far, the kernel's entry, what decides the launch) and then the beginning; what is left out is marked.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..sources.cpp import program_of, tiling_functions

_NOTICE = re.compile(r"\s*(?:/\*.*?\*/[ \t]*\n?|(?://[^\n]*\n)+)\s*", re.DOTALL)
_OF_LICENCE = re.compile(r"licen[cs]e|copyright", re.IGNORECASE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_ENTRY = re.compile(r"\b__global__\b")
_DECIDES = re.compile(r"\bset_\w+\(|\bSetBlockDim\(|\bSetTilingKey\(|\btiling(?!Context)\w*(?:->|\.)\w")
_FIELDS = re.compile(r"\bBEGIN_TILING_DATA_DEF\b|^[ \t]*struct \w*Tiling\w*\b", re.MULTILINE)
_LEFT_OUT = "// [{} lines are left out here]\n"
_AROUND, _ENTRY_LINES, _LEAST = 3, 40, 1_200  # lines, lines, characters
_SMALL = 1_500  # characters of a header with the fields of the tiling data that is shown before all others


@dataclass(frozen=True)
class Listing:
    """A file as it is shown; ``cut``: a part of it only, ``gaps``: lines are left out before its last one, too."""

    path: str
    text: str
    cut: bool = False
    gaps: bool = False


def notice_of(text: str) -> str:
    """The notice of a licence at the beginning of a file, with white space around it; empty: there is none."""
    found = _NOTICE.match(text)
    return found.group() if found and _OF_LICENCE.search(found.group()) else ""


def listing(
    files: Mapping[str, str], first: Sequence[str], limit: int, wanted: Mapping[str, Iterable[int]] | None = None
) -> list[Listing]:
    """The files, those of ``first`` before the others, as long as there is room for ``limit`` characters.

    ``wanted``: by path, the lines (from 0) that matter. Of a file that is too long these are shown and the beginning;
    without them only the very first one is, as far as it goes, and others are left out.
    """
    out: list[Listing] = []
    order = [*first, *(p for p in sorted(files) if p not in first)]
    asked = {path: set(lines) for path, lines in (wanted or {}).items() if lines}
    for i, path in enumerate(order):
        notice = notice_of(files[path])
        text = files[path][len(notice) :]
        later = sum(min(len(files[p]), 2 * _LEAST) for p in order[i + 1 :] if p in asked)
        room = limit - (later if out or path in asked else 0)
        if len(text) <= room:
            out.append(Listing(path, text))
        elif path in asked and room >= _LEAST:
            skipped = notice.count("\n")
            out.append(_parts(path, text, {line - skipped for line in asked[path]}, room))
        elif not out:
            out.append(Listing(path, text[: text.rfind("\n", 0, limit) + 1], cut=True))
        else:
            continue
        limit -= len(out[-1].text)
    return out


def _parts(path: str, text: str, lines: set[int], room: int) -> Listing:
    """The wanted lines with some around them, then the beginning, in ``room`` characters."""
    all_of = text.splitlines(keepends=True)
    near = sorted({n for line in lines for n in range(line - _AROUND, line + _AROUND + 1) if 0 <= n < len(all_of)})
    room -= 8 * len(_LEFT_OUT)
    shown = set[int]()
    for n in [*near, *range(len(all_of))]:
        if n not in shown:
            room -= len(all_of[n])
            if room < 0:
                break
            shown.add(n)
    shown = _joined(shown, all_of)
    parts, left = list[str](), 0
    for n, line in enumerate(all_of):
        if n not in shown:
            left += 1
            continue
        if left:
            parts.append(_LEFT_OUT.format(left))
            left = 0
        parts.append(line)
    if left and parts and any(part.startswith("// [") for part in parts):
        parts.append(_LEFT_OUT.format(left))
    gaps = any(part.endswith("are left out here]\n") for part in parts)
    return Listing(path, "".join(parts), cut=True, gaps=gaps)


def _joined(shown: set[int], lines: Sequence[str]) -> set[int]:
    """Gaps of a line or two are not worth a mark."""
    out = set(shown)
    for n in range(len(lines)):
        if n not in shown and n - 1 in out and (n + 1 in shown or n + 2 in shown):
            out.add(n)
    return out


def changed_lines(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[int]]:
    """By path, the lines (from 0) of ``after`` that ``before`` hasn't."""
    out = {}
    for path, text in after.items():
        if before.get(path) != text:
            matcher = difflib.SequenceMatcher(None, before.get(path, "").splitlines(), text.splitlines(), False)
            blocks = (block for block in matcher.get_opcodes() if block[0] != "equal")
            out[path] = [n for _, _, _, start, end in blocks for n in range(start, max(end, start + 1))]
    return out


def deciding_lines(files: Mapping[str, str]) -> dict[str, list[int]]:
    """By path, the lines that a kernel's entry consists of, and those that write or read tiling data."""
    out = {}
    for path, text in files.items():
        lines = text.splitlines()
        found = {n for n, line in enumerate(lines) if _DECIDES.search(line)}
        for n, line in enumerate(lines):
            if _ENTRY.search(line):
                ends = (k for k in range(n, len(lines)) if lines[k].startswith("}"))
                found.update(range(n, min(next(ends, n), n + _ENTRY_LINES) + 1))
        if found:
            out[path] = sorted(found)
    return out


def in_order(files: Mapping[str, str], first: Sequence[str]) -> list[str]:
    """``first``, and what they include of ``files``, nearest first."""
    out = [path for path in first if path in files]
    for path in out:  # grows
        for name in _INCLUDE.findall(files[path]):
            end = re.sub(r"^(?:\.{1,2}/)+", "", name)
            out += [p for p in files if p not in out and (p == end or p.endswith(f"/{end}"))][:1]
    return out


def tiling_first(files: Mapping[str, str]) -> list[str]:
    """The files that decide the launch, before their headers and helpers."""
    return in_order(files, sorted({f.path for f in tiling_functions(program_of(files))}))


def of_the_launch(files: Mapping[str, str]) -> dict[str, str]:
    """What of a tiling program decides the launch: without files of their own for definition and shapes."""
    names = tiling_first(files)
    return {path: files[path] for path in names} if names else dict(files)


def fields_first(files: Mapping[str, str], first: Sequence[str]) -> list[str]:
    """For who reads only: a short header with the fields of the tiling data before what fills them."""
    short = [p for p in first if len(files[p]) <= _SMALL + len(notice_of(files[p])) and _FIELDS.search(files[p])]
    return [*short, *(path for path in first if path not in short)]
