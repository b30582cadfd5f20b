"""A motif: one way to make a kernel faster, and back. Both directions are structural rewrites of syntax trees.

``optimize`` turns the slow form into the fast one wherever it finds it, in code it was not mined from; ``rewind`` takes
the optimization away from a strong kernel and keeps it correct. Neither proves anything: the gate (hazards, results)
and the clock decide. What both promise: every rewrite parses as well as the text it was made from, changes something,
and the rewrites come in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ....sources.cpp import Edit, apply_edits, breaks_syntax
from ..reading.kernel_program import KernelProgram


@dataclass(frozen=True)
class Rewrite:
    """One application of a motif: ``site`` names the place stably, ``change`` says in a line what is done there."""

    motif: str
    site: str
    change: str
    edits: tuple[Edit, ...]
    tiling_edits: tuple[Edit, ...] = ()

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


Finder = Callable[[KernelProgram], Iterable[Change]]


@dataclass(frozen=True)
class Motif:
    """``bottlenecks``: keywords of ``diagnosis.Finding.bound`` it helps against, the most typical first.

    ``preconditions`` is for people and prompts. ``together``: may its rewrites be tried at all places at once, with
    those of other motifs: ``yes``, ``auto-sync`` (where the compiler synchronizes), ``whole-blocks`` (where no tensor
    ends inside of a block of 32 bytes), ``behind`` (each changes the whole kernel, and goes on top of what the others
    leave) or ``no`` (many are refused, or do nothing). ``beyond_l2``: it is for launches that L2 is too small
    for.
    ``faster`` and ``slower`` find the places; callers use ``optimize`` and ``rewind``, which drop what would not parse.
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

    @property
    def kind(self) -> str:
        """The folder it is in: what it changes."""
        return self.faster.__module__.rpartition(".")[0].rpartition(".")[2]

    def optimize(self, kernel: KernelProgram) -> Iterator[Rewrite]:
        """Bad -> good, at every place the motif applies to; a place's safest rewrite first."""
        return self._rewrites(kernel, self.faster)

    def rewind(self, kernel: KernelProgram) -> Iterator[Rewrite]:
        """Good -> bad, at every place the optimization is found; each keeps the kernel's results."""
        return self._rewrites(kernel, self.slower)

    def _rewrites(self, kernel: KernelProgram, finder: Finder) -> Iterator[Rewrite]:
        for c in finder(kernel):
            rewrite = Rewrite(self.name, c.site, c.change, c.edits, c.tiling_edits)
            try:
                after, tiling = rewrite.kernel(kernel), rewrite.tiling(kernel)
            except ValueError:  # edits of nested places overlap
                continue
            changed = after != kernel.files or tiling != kernel.tiling
            if changed and not breaks_syntax(kernel.files, after) and not breaks_syntax(kernel.tiling, tiling):
                yield rewrite
