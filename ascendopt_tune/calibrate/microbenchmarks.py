"""The microbenchmarks: which kernel with which arguments on how many cores.

Each differs from a sibling in one thing (a length, a count, a core), so that their difference shows a constant. Counts
are such that a launch takes 5 to 50 us: long against what launching costs, short enough for many repetitions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..nouns.chip import Chip

KERNELS = Path(__file__).parent / "kernels"

#: Bytes of each of the two buffers that kernels get: more than the L2 of any chip of architecture 2201 holds.
BUFFER_BYTES = 320 << 20

_PAST_L2, _WAIT, _FILLED = 1, 2, 4  # bits of `how` in copy.cpp
_CASE = re.compile(r'\b(ROW|CASE)\((\d+), "([^"]+)"')

_MOST_TURNS = 20000  # of the holding kernel: some milliseconds

#: Vector benchmarks on this many repeats: the first shows the head, the second the pace.
_REPEATS = (1, 40)


@dataclass(frozen=True)
class Data:
    """A kernel argument that is the address of buffer ``number`` (0 or 1)."""

    number: int = 0


@dataclass(frozen=True)
class Wide:
    """A kernel argument of 64 bits."""

    value: int


#: A kernel argument; plain integers are 32 bits wide.
Value = Data | Wide | int


@dataclass(frozen=True)
class Microbenchmark:
    """One launch to be timed.

    ``kernel`` is a file of ``kernels/`` and ``entry`` its function. ``state`` is what a launch finds: ``warm`` (one of
    many), ``flushed`` (after a kernel that touches more than L2 holds) or ``cold`` (the first after loading). ``held``:
    held out of the fit, to see how well it predicts.
    """

    name: str
    kernel: str
    entry: str
    blocks: int
    args: tuple[Value, ...] = ()
    auto_sync: bool = False
    state: str = "warm"
    held: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Of the device compiler."""
        return (f"--cce-auto-sync={'on' if self.auto_sync else 'off'}",)

    @property
    def digest(self) -> str:
        """Changes with whatever is run."""
        return hashlib.sha256(f"{self}{source(self.kernel)}".encode()).hexdigest()[:12]


@cache
def source(kernel: str) -> str:
    """The text of a kernel file."""
    return (KERNELS / f"{kernel}.cpp").read_text(encoding="utf-8")


def _cases(kernel: str, word: str = "CASE") -> dict[str, int]:
    """What a kernel can be asked for: its lines ``word(number, "name", ...)``."""
    return {name: int(number) for kind, number, name in _CASE.findall(source(kernel)) if kind == word}


def vector_rows() -> tuple[str, ...]:
    """The rows of the chip file's table of instructions that there is a benchmark for."""
    return tuple(_cases("vector", "ROW"))


def microbenchmarks(chip: Chip, *, reduced: bool = False) -> tuple[Microbenchmark, ...]:
    """All microbenchmarks for a chip, or with ``reduced`` a few of each kind (for CI: see ``silicon-check``)."""
    cores = int(chip.values["core.aiv"])
    chosen = (*_launches(cores), *_scalars(cores), *_vectors(), *_copies(cores, int(chip.values["memory.l2_bytes"])))
    if not reduced:
        return chosen
    seen: dict[tuple[str, str], int] = {}
    kept = []
    for one in chosen:
        key = one.kernel, one.entry
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= 4:
            kept.append(one)
    return tuple(kept)


def _launches(cores: int) -> Iterator[Microbenchmark]:
    for blocks in sorted({1, 2, 8, cores // 2, cores}):
        yield Microbenchmark(f"empty/{blocks}", "launch", "empty", blocks)
        yield Microbenchmark(f"tiled/{blocks}", "launch", "tiled", blocks, (Data(),))
    for blocks in (1, 8, cores):
        for state in ("flushed", "cold"):
            yield Microbenchmark(f"empty/{state}/{blocks}", "launch", "empty", blocks, state=state)
    for blocks in (1, 8, cores):
        yield Microbenchmark(f"tiled/flushed/{blocks}", "launch", "tiled", blocks, (Data(),), state="flushed")
    # Waves of blocks: what a block costs a core that is running already. 0 and 16 instructions of 128 repeats.
    for times in (0, 16):
        for waves in (1, 10):
            yield Microbenchmark(f"waves/{times}/{waves}", "launch", "spin", waves * cores, (times,))


_SCALAR_TIMES = {
    "flag": 4000, "vector_to_scalar": 500, "vector_by_count": 500, "vector_barrier": 500, "vector_barriers": 400,
    "all_barrier": 500, "register": 2000, "ub": 1500, "gm_hit": 1500, "gm_miss": 60, "sync_all": 20,
    "ub_store": 3000, "ub_move": 1000, "gm_miss_move": 60,
}  # fmt: skip


def hold(turns: int) -> Microbenchmark:
    """What keeps the device busy, leaves L2 alone and costs the host one launch: copies that are waited for."""
    args = (Data(), min(turns, _MOST_TURNS), 1, 32, 0, 512, 1 << 20, Wide(0), _PAST_L2 | _WAIT)
    return Microbenchmark("hold", "copy", "copy_in", 1, args)


def flush(chip: Chip) -> Microbenchmark:
    """What leaves nothing in L2 that was there before."""
    return next(b for b in microbenchmarks(chip) if b.name.startswith("copy_in/beyond/"))


def _scalars(cores: int) -> Iterator[Microbenchmark]:
    for name, number in _cases("scalar").items():
        on = cores if name == "sync_all" else 1
        yield Microbenchmark(f"scalar/{name}", "scalar", "scalar", on, (Data(), number, _SCALAR_TIMES[name]))
    yield Microbenchmark("scalar/sync_all/2", "scalar", "scalar", 2, (Data(), _cases("scalar")["sync_all"], 20))
    for buffers, times, ring in ((1, 0, 0), (60, 0, 0), (1, 400, 0), (1, 400, 1)):
        name = f"queue/{buffers}/{times}" + ("/ring" if ring else "")
        yield Microbenchmark(name, "queue", "queue", 1, (buffers, times, ring))


def _vectors() -> Iterator[Microbenchmark]:
    for row, number in _cases("vector", "ROW").items():
        for repeats in _REPEATS:
            times = 600 if repeats == 1 else 200
            if row.startswith(("Gather.", "MrgSort", "Sort32")):
                times //= 4  # a unit is an element, not a repeat
            name = f"vector/{row}/{repeats}"
            yield Microbenchmark(name, "vector", "vector", 1, (number, times, repeats))
    for name, number in _cases("vector").items():
        yield Microbenchmark(f"vector/{name}", "vector", "vector", 1, (number, 200, 40), held=True)
    for turn, name in enumerate(("dependent", "independent")):
        for repeats in _REPEATS:
            yield Microbenchmark(f"chain/{name}/{repeats}", "chain", "chain", 1, (turn, 500, repeats), auto_sync=True)


def _copies(cores: int, l2_bytes: int) -> Iterator[Microbenchmark]:
    def copy(
        name: str,
        entry: str,
        blocks: int,
        times: int,
        count: int,
        nbytes: int,
        *,
        gap: int = 0,
        step: int | None = None,
        span: int = 1 << 20,
        each: int | None = None,
        how: int = 0,
        state: str = "warm",
        held: bool = False,
    ) -> Microbenchmark:
        """``each``: where the next block begins; default: behind what this one touches."""
        length = count * (nbytes + gap)
        step = length if step is None else step
        touched = min(span, step * times)
        args = (Data(), times, count, nbytes, gap, step, span, Wide(touched if each is None else each), how)
        return Microbenchmark(f"{entry}/{name}/{blocks}", "copy", entry, blocks, args, state=state, held=held)

    # One core. Lengths, then pieces with gaps and without; what is in L2 stays there, what goes past it never is.
    for entry in ("copy_in", "copy_out"):
        for times, nbytes in ((400, 32), (400, 512), (200, 4096), (40, 32768)):
            yield copy(f"{nbytes}", entry, 1, times, 1, nbytes, step=max(nbytes, 512))
        for times, nbytes in ((100, 32), (100, 2048)):
            yield copy(f"waited/{nbytes}", entry, 1, times, 1, nbytes, step=max(nbytes, 512), how=_WAIT)
        for times, count, nbytes, gap in ((80, 16, 128, 384), (20, 128, 128, 384), (20, 128, 256, 256)):
            yield copy(f"pieces/{count}x{nbytes}+{gap}", entry, 1, times, count, nbytes, gap=gap)
        yield copy("pieces/128x32+0", entry, 1, 10, 128, 32)
        yield copy("pieces/64x64+0", entry, 1, 20, 64, 64)
        yield copy("past/32768", entry, 1, 40, 1, 32768, how=_PAST_L2)
        yield copy("past/512", entry, 1, 400, 1, 512, how=_PAST_L2)
        for times, count, nbytes, gap in ((40, 64, 128, 384), (40, 64, 384, 128)):
            yield copy(f"past/pieces/{count}x{nbytes}+{gap}", entry, 1, times, count, nbytes, gap=gap, how=_PAST_L2)
    yield copy("filled/512x4+0", "copy_in", 1, 20, 512, 4, how=_FILLED)  # pieces filled up with a value, one by one
    yield copy("past/waited/32", "copy_in", 1, 100, 1, 32, step=512, how=_PAST_L2 | _WAIT)
    # Pieces that L2 lacks though they don't go past it: going past it has a factor of its own.
    yield copy("flushed/pieces/64x128+384", "copy_in", 1, 100, 64, 128, gap=384, span=1 << 22, state="flushed")
    # Pieces that follow each other inside of a block of 32 bytes; on the way out short ones, which wait longer.
    yield copy("pieces/64x34+0", "copy_in", 1, 20, 64, 34)
    for times, count, nbytes in ((10, 256, 4), (10, 128, 16)):
        yield copy(f"pieces/{count}x{nbytes}+0", "copy_out", 1, times, count, nbytes)
    # A page of 2 MiB a copy, each for the first time.
    yield copy("flushed/pages", "copy_in", 1, 32, 1, 512, step=1 << 21, span=1 << 26, state="flushed")
    # All cores: what they share. Everything in L2, past it, more than fits in, and all the same addresses.
    for entry in ("copy_in", "copy_out"):
        yield copy("32768", entry, cores, 40, 1, 32768, span=1 << 18)
        yield copy("past/32768", entry, cores, 40, 1, 32768, span=1 << 20, how=_PAST_L2)
        yield copy("past/32768", entry, cores // 2, 40, 1, 32768, span=1 << 20, how=_PAST_L2)
        # A few bytes each of one window, which serves one core after another.
        yield copy("few", entry, cores, 20, 1, 2, span=8, each=8)
    for times, count, nbytes, gap in ((20, 64, 256, 256), (20, 64, 128, 384), (10, 128, 256, 256), (20, 64, 384, 128)):
        name = f"past/pieces/{count}x{nbytes}+{gap}"
        yield copy(name, "copy_in", cores, times, count, nbytes, gap=gap, how=_PAST_L2)
    share = (l2_bytes * 5 // 4 // cores) >> 15 << 15
    yield copy("beyond", "copy_in", cores, share >> 15, 1, 32768, span=share)
    yield copy("beyond", "copy_out", cores, share >> 15, 1, 32768, span=share, held=True)
    for blocks in (cores // 2, cores):
        yield copy("same", "copy_in", blocks, 40, 1, 16384, each=0)
        yield copy("past/same", "copy_in", blocks, 40, 1, 16384, each=0, how=_PAST_L2)
    for how, name in ((0, "l2"), (_PAST_L2, "past")):
        for blocks in (1, cores):
            args = (Data(), Data(1), 40, 32768, 1 << 19, Wide(1 << 19), how)
            yield Microbenchmark(f"copy_through/{name}/{blocks}", "copy", "copy_through", blocks, args, held=True)
