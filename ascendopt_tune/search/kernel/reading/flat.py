"""A kernel in a form that shows motifs more, and the way back from it.

Two things hide from a motif that two statements follow one another: a call of one of the kernel's own small functions
(written_out.py writes it out), and a choice at compile time in front of the second one (sunk.py moves the first one
into both sides). ``flattened`` does both everywhere; a motif finds its places there, and ``Flat.back`` makes of its
edits such of the kernel as it is: what was rewritten in the functions that are touched, with the motif's change in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ....sources.cpp import Edit, Function, apply_edits, breaks_syntax
from .kernel_program import KernelProgram, where
from .sunk import sunk
from .written_out import Piece, Rewritten, written_out

Place = tuple[str, int]  # path, byte

_MOST_GROWTH = 3.0  # times as long as the kernel as it is: longer forms are not looked at. Chosen by judgement


@dataclass(frozen=True)
class _Region:
    """A part of ``function`` that was rewritten; ``start``: its first byte in the flat text."""

    function: Function
    edit: Edit
    pieces: tuple[Piece, ...]
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.edit.text.encode())


@dataclass(frozen=True)
class _Level:
    """Regions of a kernel that were rewritten, in order: the way from one text to the other."""

    regions: tuple[_Region, ...]

    def back(self, edits: Iterable[Edit]) -> tuple[tuple[Edit, ...], bool] | None:
        """(the edits as those of the text in front, whether they touch what was rewritten); None at a region's rim."""
        inside: dict[int, list[Edit]] = {}
        outside: list[Edit] = []
        covered: set[int] = set()
        for e in edits:
            k = self._region(e.path, e.start)
            if k is not None:
                first = self.regions[k].start
                if e.end > self.regions[k].end:
                    return None
                moved = Edit(self.regions[k].edit.path, e.start - first, e.end - first, e.text)
                inside.setdefault(k, []).append(moved)
                continue
            last = self._region(e.path, e.end)
            if last is not None and e.end > self.regions[last].start:
                return None
            start = self._before(e.path, e.start)
            end = self.regions[last].edit.start if last is not None else self._before(e.path, e.end)
            outside.append(Edit(e.path, start, end, e.text))
            covered |= {
                i
                for i, r in enumerate(self.regions)
                if r.edit.path == e.path and start <= r.edit.start and r.edit.end <= end and start < end
            }
        functions = {where(self.regions[k].function) for k in {*inside, *covered}}
        for k, r in enumerate(self.regions):
            if where(r.function) in functions and k not in covered:
                path = r.edit.path
                text = apply_edits({path: r.edit.text}, inside.get(k, ()))[path]
                outside.append(Edit(path, r.edit.start, r.edit.end, text))
        return tuple(outside), bool(functions)

    def origin(self, place: Place) -> Place | None:
        """Where a byte of the text behind stands in the one in front; None where it was written anew."""
        k = self._region(*place)
        if k is None:
            return place[0], self._before(*place)
        at = place[1] - self.regions[k].start
        for piece in self.regions[k].pieces:
            size = len(piece.text.encode())
            if at < size:
                return (piece.origin[0], piece.origin[1] + at) if piece.origin is not None else None
            at -= size
        return None

    def _region(self, path: str, byte: int) -> int | None:
        """The region that the byte of the text behind is in."""
        starts, numbers = self._by_path.get(path, ([], []))
        i = bisect_right(starts, byte) - 1
        while i >= 0 and self.regions[numbers[i]].start == self.regions[numbers[i]].end:
            i -= 1  # what is taken out has no bytes
        return numbers[i] if i >= 0 and byte < self.regions[numbers[i]].end else None

    def _before(self, path: str, byte: int) -> int:
        """The byte of the text in front that a byte outside of all regions was."""
        starts, numbers = self._by_path.get(path, ([], []))
        i = bisect_right(starts, byte) - 1
        return byte + self.regions[numbers[i]].edit.end - self.regions[numbers[i]].end if i >= 0 else byte

    @cached_property
    def _by_path(self) -> dict[str, tuple[list[int], list[int]]]:
        out: dict[str, tuple[list[int], list[int]]] = {}
        for k, r in enumerate(self.regions):
            starts, numbers = out.setdefault(r.edit.path, ([], []))
            starts.append(r.start)
            numbers.append(k)
        return out


@dataclass(frozen=True)
class Flat:
    """``kernel``: the form that shows more; ``levels``: how it came about, the last one first."""

    kernel: KernelProgram
    levels: tuple[_Level, ...]

    def back(self, edits: Iterable[Edit]) -> tuple[Edit, ...] | None:
        """The edits, as edits of the kernel as it is; None where they touch nothing that was rewritten, or its rim."""
        now, any_touched = tuple(edits), False
        for level in self.levels:
            found = level.back(now)
            if found is None:
                return None
            now, touched = found
            any_touched = any_touched or touched
        return now if any_touched else None

    def origins(self, edits: Iterable[Edit]) -> frozenset[Place]:
        """Where what the edits begin and end at stands in the kernel as it is."""
        out: set[Place] = set()
        for end in ends(edits):
            place: Place | None = end
            for level in self.levels:
                place = level.origin(place) if place is not None else None
            out |= {place} if place is not None else set()
        return frozenset(out)


def ends(edits: Iterable[Edit]) -> Iterator[Place]:
    """The first and the last byte of each."""
    for e in edits:
        yield e.path, e.start
        yield e.path, max(e.start, e.end - 1)


def flattened(kernel: KernelProgram) -> tuple[Flat, ...]:
    """The kernel in such forms, the one nearest to it first: with instructions in the sides of choices, and with calls
    written out as well. None of them where nothing changes."""
    files, tiling = tuple(sorted(kernel.files.items())), tuple(sorted(kernel.tiling.items()))
    return _flat(files, tiling, kernel.auto_sync, kernel.tiling_key)


_Files = tuple[tuple[str, str], ...]


@lru_cache(maxsize=16)
def _flat(files: _Files, tiling: _Files, auto_sync: bool, key: int | None) -> tuple[Flat, ...]:
    kernel = KernelProgram(dict(files), dict(tiling), None, auto_sync, key)
    out: list[Flat] = []
    for rewrites in ((sunk,), (written_out, sunk)):
        now, levels = kernel, list[_Level]()
        for rewrite in rewrites:
            found = _rewritten(now, list(rewrite(now)))
            if found is not None:
                now, level = found
                levels.insert(0, level)
        grown = sum(map(len, now.files.values())) <= _MOST_GROWTH * sum(map(len, kernel.files.values()))
        if levels and grown and (not out or now.files != out[0].kernel.files):
            out.append(Flat(now, tuple(levels)))
    return tuple(out)


def _rewritten(kernel: KernelProgram, found: list[Rewritten]) -> tuple[KernelProgram, _Level] | None:
    """The kernel with what was found, and the way back; None where there is nothing, or one lies within another."""
    found.sort(key=lambda x: (x[1].path, x[1].start, x[1].end))
    regions: list[_Region] = []
    shift, last = 0, ("", -1)
    for f, edit, pieces in found:
        if edit.path != last[0]:
            shift = 0
        elif edit.start < last[1]:
            return None
        regions.append(_Region(f, edit, pieces, edit.start + shift))
        shift += len(edit.text.encode()) - (edit.end - edit.start)
        last = (edit.path, edit.end)
    if not regions:
        return None
    after = apply_edits(kernel.files, [r.edit for r in regions])
    if breaks_syntax(kernel.files, after):
        return None
    return replace(kernel, files=after), _Level(tuple(regions))
