"""A motif: one way to make a kernel faster, and back. Both directions are structural rewrites of syntax trees.

``optimize`` turns the slow form into the fast one wherever it finds it, in code it was not mined from; ``rewind`` takes
the optimization away from a strong kernel and keeps it correct. Neither proves anything: the gate (hazards, results)
and the clock decide. What both promise: every rewrite parses as well as the text it was made from, changes something,
and the rewrites come in a fixed order.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....sources.cpp import Edit, apply_edits, breaks_syntax
from ..reading.flat import Flat, Place, ends, flattened
from ..reading.kernel_program import KernelProgram


@dataclass(frozen=True)
class Rewrite:
    """One application of a motif: ``site`` names the place stably, ``change`` says in a line what is done there.

    ``copied``: where what is changed stands in other functions of the kernel, whose calls are written out for it.
    """

    motif: str
    site: str
    change: str
    edits: tuple[Edit, ...]
    tiling_edits: tuple[Edit, ...] = ()
    copied: frozenset[Place] = frozenset()

    def kernel(self, program: KernelProgram) -> dict[str, str]:
        """The kernel's files with the rewrite applied."""
        return apply_edits(program.files, self.edits)

    def tiling(self, program: KernelProgram) -> dict[str, str]:
        """The tiling program's files with the rewrite applied."""
        return apply_edits(program.tiling, self.tiling_edits)


@dataclass(frozen=True)
class Change:
    """What a motif's finder yields: a ``Rewrite`` without the motif's name."""

    site: str
    change: str
    edits: tuple[Edit, ...]
    tiling_edits: tuple[Edit, ...] = ()
    copied: frozenset[Place] = frozenset()


Finder = Callable[[KernelProgram], Iterable[Change]]


@dataclass(frozen=True)
class Motif:
    """``bottlenecks``: keywords of ``diagnosis.Finding.bound`` it helps against, the most typical first.

    ``preconditions`` is for people and prompts. ``together``: may its rewrites be tried at all places at once, with
    those of other motifs: ``yes``, ``auto-sync`` (where the compiler synchronizes), ``whole-blocks`` (where no tensor
    ends inside of a block of 32 bytes), ``behind`` (each changes the whole kernel, and goes on top of what the others
    leave) or ``no`` (many are refused, or do nothing). ``beyond_l2``: it is for launches that L2 is too small
    for. ``through_calls``: it is also asked where calls of small functions are written out and instructions stand in
    the sides of a choice (reading/flat.py).
    ``faster`` and ``slower`` find the places; callers use ``optimize`` and ``rewind``, which drop what would not
    parse.
    """

    name: str
    title: str
    description: str
    bottlenecks: tuple[str, ...]
    preconditions: str
    faster: Finder
    slower: Finder
    together: str = "yes"
    beyond_l2: bool = False
    through_calls: bool = False

    @property
    def kind(self) -> str:
        """The folder it is in: what it changes."""
        return self.faster.__module__.rpartition(".")[0].rpartition(".")[2]

    def optimize(self, kernel: KernelProgram) -> Iterator[Rewrite]:
        """Bad -> good, at every place the motif applies to; a place's safest rewrite first."""
        found = tuple(self.faster(kernel)) if self.through_calls else self.faster(kernel)
        yield from self._rewrites(kernel, found)
        if self.through_calls:
            known = _lines(kernel, (place for c in found for place in ends(c.edits)))
            for flat in flattened(kernel):
                more = tuple(self._in_flat(kernel, flat, known))
                yield from self._rewrites(kernel, more)
                known |= _lines(kernel, (place for c in more for place in c.copied))

    def _in_flat(self, kernel: KernelProgram, flat: Flat, known: set[Place]) -> Iterator[Change]:
        """Places that only a flat form of the kernel shows. ``known``: lines that were found before."""
        for c in self.faster(flat.kernel):
            copied = flat.origins(c.edits)
            if "/" not in c.site or c.tiling_edits or _lines(kernel, copied) <= known:
                continue
            edits = flat.back(c.edits)
            if edits is not None:
                change = f"{c.change}; calls and choices on the way written out"
                yield Change(f"{c.site}/flat", change, edits, (), copied)

    def rewind(self, kernel: KernelProgram) -> Iterator[Rewrite]:
        """Good -> bad, at every place the optimization is found; each keeps the kernel's results."""
        return self._rewrites(kernel, self.slower(kernel))

    def _rewrites(self, kernel: KernelProgram, found: Iterable[Change]) -> Iterator[Rewrite]:
        for c in found:
            rewrite = Rewrite(self.name, c.site, c.change, c.edits, c.tiling_edits, c.copied)
            try:
                after, tiling = rewrite.kernel(kernel), rewrite.tiling(kernel)
            except ValueError:  # edits of nested places overlap
                continue
            changed = after != kernel.files or tiling != kernel.tiling
            if changed and not breaks_syntax(kernel.files, after) and not breaks_syntax(kernel.tiling, tiling):
                yield rewrite


def _lines(kernel: KernelProgram, places: Iterable[Place]) -> set[Place]:
    """The lines, numbered from 0, that places are in."""
    return {(path, kernel.program.files[path].data.count(b"\n", 0, byte)) for path, byte in places}


def whole_lines(kernel: KernelProgram, files: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edits by which the kernel becomes those files, in whole lines."""
    edits: list[Edit] = []
    for path, text in files.items():
        before, after = kernel.files[path].splitlines(True), text.splitlines(True)
        starts = [0]
        for line in before:
            starts.append(starts[-1] + len(line.encode()))
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag != "equal":
                edits.append(Edit(path, starts[a], starts[b], "".join(after[c:d])))
    return tuple(edits)
