"""Where motifs meet real kernels: how many operators each matches, and how many it made faster.

Matching reads texts and runs nothing. Measuring puts a motif into an operator of the benchmark's table, at one case,
and asks the gate: times are modelled, answers are kept (subject.py), so an interrupted survey goes on where it was.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..bank.worth import MotifGain, first_bottleneck
from ..errors import AscendOptError, CacheError, OperatorError
from ..evaluate.diagnosis import diagnose
from ..files import write_between
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import Outcome, Timed
from ..nouns.trial import key_in
from ..search.acceptance import MIN_EFFECT
from ..search.kernel.motifs import MOTIFS
from ..search.kernel.rules import applied, grouped, rewrites_of
from ..sources.project import load_project
from ..sources.registry import load_operator, operator_names
from .subject import Subject

BEGIN, END = "<!-- survey: written by `ascendopt-tune bank survey --docs` -->", "<!-- end of the survey -->"
_SUFFIXES = frozenset([".h", ".hpp", ".cpp", ".cc"])
_OTHERS = frozenset(["third_party", "3rdparty"])
_MUCH = 0.01  # of the time: a gain that counts as one in the second column
_TRIES = 2  # groups of a motif's rewrites that are measured: all places, then the next


@dataclass(frozen=True)
class Surveyed:
    """A kernel that was looked at: whose, and for each motif that matches at how many places."""

    source: str
    name: str
    matches: dict[str, int]


@dataclass
class Survey:
    """``kernels`` that were read, ``gains`` that were measured, and what could not be: path -> why.

    ``motifs`` are those that are measured and that the table has.
    """

    kernels: list[Surveyed] = field(default_factory=list)
    gains: list[MotifGain] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    motifs: tuple[str, ...] = tuple(m.name for m in MOTIFS)


def operators_below(folder: Path) -> list[Path]:
    """Every folder at or below ``folder`` that has an ``op_kernel`` folder, by path; what others wrote is left out."""
    found = {p.parent for p in folder.rglob("op_kernel") if p.is_dir()}
    return sorted(p for p in found if _OTHERS.isdisjoint(p.relative_to(folder).parts))


def registry(motifs: Sequence[str] | None = None) -> Iterator[Surveyed]:
    """The operators that ship with the project. ``motifs``: these only (None: all), as below."""
    for name in operator_names():
        operator = load_operator(name)
        yield Surveyed("registry", name, _counts(operator.baseline, operator.auto_sync, motifs))


def survey(folder: Path, motifs: Sequence[str] | None = None) -> Iterator[Surveyed]:
    """The operators below a folder, one after the other.

    Raises:
        OperatorError: there is no operator below the folder.
    """
    found = operators_below(folder)
    if not found:
        raise OperatorError(f"{folder} has no operator below it.", "An operator is a folder with op_kernel/ in it.")
    for path in found:
        pair, auto_sync = operator_pair(path)
        if pair.kernel:
            yield Surveyed(source_of(folder), str(path.relative_to(folder)), _counts(pair, auto_sync, motifs))


def source_of(folder: Path) -> str:
    """What a folder of operators is called: by its own name, or the one above a plain ``src``."""
    folder = folder.resolve()
    return folder.parent.name if folder.name == "src" else folder.name


def operator_pair(folder: Path) -> tuple[Pair, bool]:
    """Both programs of an operator's folder, and whether its kernel is built with automatic synchronization.

    A folder whose host program can't be told is read as plain files: matching needs no more.
    """
    try:
        operator = load_project(folder)
    except AscendOptError:
        return _plain(folder), True
    return operator.baseline, operator.auto_sync


def _plain(folder: Path) -> Pair:
    tiling, kernel = (
        {
            str(p.relative_to(folder)): p.read_text(encoding="utf-8", errors="replace")
            for p in sorted((folder / part).rglob("*"))
            if p.suffix in _SUFFIXES and p.is_file()
        }
        for part in ("op_host", "op_kernel")
    )
    return Pair(tiling, kernel)


def _counts(pair: Pair, auto_sync: bool, motifs: Sequence[str] | None) -> dict[str, int]:
    return {motif: len(found) for motif, found in rewrites_of(pair, auto_sync, None, motifs).items() if found}


def has_place(pair: Pair, auto_sync: bool, motifs: Sequence[str]) -> bool:
    """Whether one of the motifs has a place in the pair's text, whatever its case and key."""
    return any(rewrites_of(pair, auto_sync, None, [name])[name] for name in motifs)


def measure(subject: Subject, motifs: Sequence[str]) -> Iterator[MotifGain]:
    """What each of the motifs that matches is worth to the subject's operator, put in on its own.

    Raises:
        OperatorError: the operator as written does not pass the gate.
    """
    operator = subject.operator
    before = subject.outcome(operator.baseline)
    if not isinstance(before, Timed):
        raise OperatorError(f"{subject.entry.name} does not pass the gate: {before.reason}.")
    key = key_in(subject.launch(operator.baseline))
    bottleneck = first_bottleneck(diagnose(before.profile, subject.chip).paragraph)
    for motif, speedup in worths(operator, key, before, subject.outcome, motifs):
        yield MotifGain(motif, subject.entry.path, subject.entry.size, bottleneck, speedup)


def worths(
    operator: Operator,
    key: int | None,
    before: Timed,
    outcome: Callable[[Pair], Outcome],
    motifs: Sequence[str] | None = None,
) -> Iterator[tuple[str, float | None]]:
    """(motif, best speedup over ``before`` or None) for each motif that has a place in the operator's baseline.

    ``key``: the tiling key of the case, as far as it is known. ``outcome``: what the gate says of a pair. ``motifs``:
    these only (None: all).
    """
    pair = operator.baseline
    for motif, rewrites in rewrites_of(pair, operator.auto_sync, key, motifs).items():
        best: float | None = None
        tried = 0
        for group in grouped(rewrites):
            changed = applied(pair, group)
            if changed is None or changed.hash == pair.hash:
                continue
            found = outcome(changed)
            if isinstance(found, Timed):
                best = max(best or 0.0, before.profile.task_duration_us / found.profile.task_duration_us)
            tried += 1
            if tried == _TRIES:
                break
        if tried:
            yield motif, best


def table(found: Survey) -> str:
    """The survey as a Markdown table, a motif a row, those that match most first."""
    sources = list(dict.fromkeys(k.source for k in found.kernels))
    head = ["motif", *sources]
    if found.gains:
        head += ["tried on", "faster", "by 1 %", "geometric mean where faster", "most"]
    rows = [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
    for name in sorted(found.motifs, key=lambda n: -_matching(found.kernels, n)):
        cells = [str(_matching((k for k in found.kernels if k.source == s), name)) for s in sources]
        rows.append(f"| {' | '.join([f'`{name}`', *cells, *_worth(found, name)])} |")
    return "\n".join(rows) + "\n"


def _matching(kernels: Iterable[Surveyed], motif: str) -> int:
    return sum(motif in k.matches for k in kernels)


def _worth(found: Survey, motif: str) -> list[str]:
    if not found.gains:
        return []
    best: dict[str, MotifGain] = {}  # operator -> the motif's best gain at any size
    for gain in found.gains:
        if gain.motif == motif and (gain.speedup or 0) >= (best.get(gain.operator, gain).speedup or 0):
            best[gain.operator] = gain
    speedups = [g.speedup for g in best.values() if g.faster and g.speedup is not None]
    much = sum(s >= 1 + _MUCH for s in speedups)
    if not speedups:
        return [str(len(best)), "0", "0", "", ""]
    mean = math.exp(statistics.fmean(map(math.log, speedups)))
    return [str(len(best)), str(len(speedups)), str(much), f"{mean:.2f}x", f"{max(speedups):.2f}x"]


def section(found: Survey, sources: Sequence[str], when: str, every: int = 1) -> str:
    """What docs/motifs.md says between its marks: what was looked at, when, and the table.

    Args:
        sources: a line for each folder, telling what it is.
        when: the date.
        every: each so many-th operator was measured.
    """
    unmet = [f"`{m.name}`" for m in MOTIFS if not _matching(found.kernels, m.name)]
    lines = [
        f"{when}: {'; '.join(sources)}. Counted are operators whose kernel `optimize` finds a place in.",
        *_tried(found, every),
        *([f"{', '.join(unmet)} met nothing here."] if unmet else []),
    ]
    return "\n".join([*lines, "", table(found)])


def renewed(old: str, found: Survey, sources: Sequence[str], when: str, every: int = 1) -> str:
    """``old``, a section that was written before, with the rows of the survey's motifs new or added.

    The others' rows stay as they are, and so does what is said of them; a paragraph says of which day the new ones are.

    Raises:
        CacheError: the section has no table, or one with other columns than these.
    """
    fresh = table(found).splitlines()
    text, bar, rows = old.strip().partition("| motif |")
    lines = (bar + rows).splitlines()
    if lines[:2] != fresh[:2]:
        raise CacheError(
            "the page's table has other columns than this survey.", "Name the folders that it was written with."
        )
    names = {_motif_of(row): row for row in lines[2:]} | {_motif_of(row): row for row in fresh[2:]}
    places = len(dict.fromkeys(k.source for k in found.kernels))
    by_place = sorted(names.values(), key=lambda row: -sum(int(c) for c in row.split("|")[2 : 2 + places]))
    said = [p for p in text.strip().split("\n\n") if not _is_of(p, found.motifs)]
    which = ", ".join(f"`{name}`" for name in found.motifs)
    said.append("\n".join([f"{_ONLY} {which}: {when}, {'; '.join(sources)}.", *_tried(found, every)]))
    return "\n\n".join([*said, "\n".join([*lines[:2], *by_place])])


_ONLY = "The rows of"


def _motif_of(row: str) -> str:
    return row.split("|")[1].strip(" `")


def _is_of(paragraph: str, motifs: Iterable[str]) -> bool:
    """Whether a paragraph says of which day the rows of some of the motifs are, and of no others."""
    named = paragraph.partition(":")[0].removeprefix(_ONLY)
    return paragraph.startswith(_ONLY) and {n.strip(" `") for n in named.split(",")} <= set(motifs)


def _tried(found: Survey, every: int) -> list[str]:
    """A line that says what was measured, if anything was."""
    if not found.gains:
        return []
    operators = len({g.operator for g in found.gains})
    sizes = ", ".join(dict.fromkeys(g.size for g in found.gains))
    asked = f"; asked was one operator in {every}" if every > 1 else ""
    return [
        f"Tried on {operators} operators of the benchmark's table ({sizes}{asked}): the motif alone, at all its places "
        f"and at the next group of them, through the gate; times are modelled. Operators are `faster` by more than "
        f"{MIN_EFFECT['virtual']:.1%}; then those by {_MUCH:.0%} and more."
    ]


def write(page: Path, text: str) -> None:
    """Puts ``text`` between the page's marks. Raises CacheError when it has none, or can't be written."""
    write_between(page, BEGIN, END, "the survey", text.rstrip())


def written(page: Path) -> str:
    """What is between the page's marks. Raises CacheError when the page can't be read."""
    try:
        return page.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    except OSError as error:
        raise CacheError(f"can't read {page}: {error.strerror}.", "Name another --docs.") from error
