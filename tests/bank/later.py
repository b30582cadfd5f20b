"""The fourth reading and those behind it: operators read before any motif was asked, each chosen by a rule.

NAME_reading.csv: repository, operator, file, lines, class, expected effect, sizes, what it is. ``first``: the motifs
that met the finding when they were asked for the first time; ``met``: those that do now. Somebody looked whether the
rewrite does what the finding asks for. docs/motifs_reading.md says how the operators were chosen.

``python tests/bank/later.py`` writes the tables of docs/motifs_reading.md; with ``REPOSITORY=FOLDER`` of checkouts it
asks the motifs again and names the findings they no longer meet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import blind
import third

from ascendopt_tune.files import write_between


@dataclass(frozen=True)
class Reading:
    """``operators``: how many were read."""

    name: str
    operators: int

    @property
    def file(self) -> Path:
        return Path(__file__).with_name(f"{self.name}_reading.csv")

    @property
    def marks(self) -> tuple[str, str]:
        begin = f"<!-- {self.name} reading: written by tests/bank/later.py -->"
        return begin, f"<!-- end of the {self.name} reading -->"

    def findings(self) -> list[blind.Finding]:
        """Those in device code."""
        return [f for f in map(blind.finding_of, blind.rows(self.file)) if f.of_kernel]


READINGS = (
    Reading("fourth", 4),
    Reading("fifth", 4),
    Reading("sixth", 12),
    Reading("seventh", 10),
    Reading("eighth", 10),
)


def table(every: list[blind.Finding]) -> str:
    """By class, the most frequent first: how many were met at first, and are now, and by what."""
    kinds = sorted({f.kind for f in every}, key=lambda k: (-sum(f.kind == k for f in every), k))
    lines = ["| class | met at first | met now | by |", "|---|--:|--:|---|"]
    for kind in kinds:
        lines.append(_row(f"`{kind}`", [f for f in every if f.kind == kind]))
    lines.append(_row("those expected to matter most", [f for f in every if f.effect == "high"]))
    lines.append(_row("all", every))
    return "\n".join(lines)


def _row(title: str, some: list[blind.Finding]) -> str:
    by = sorted({name for f in some for name in f.met}) if title.startswith("`") else []
    first, now = (sum(map(bool, side)) for side in ((f.first for f in some), (f.met for f in some)))
    return f"| {title} | {first} of {len(some)} | {now} of {len(some)} | {', '.join(f'`{n}`' for n in by)} |"


def unconfirmed(checkouts: Mapping[str, Path], every: list[blind.Finding]) -> Iterator[str]:
    """Findings that are said to be met by a motif that has no place there."""
    for f in every:
        folder = checkouts.get(f.repository)
        if folder is None or not (folder / f.op).is_dir():
            continue
        anywhere = third.ELSEWHERE & {motif for motif, *_ in blind.places(folder / f.op)}
        gone = f.met - blind.motifs_at(f, folder) - anywhere
        if gone:
            yield f"{f.op} {f.file}:{f.lines} {f.kind}: {', '.join(sorted(gone))}"


def main() -> None:
    checkouts = {name: Path(folder) for name, _, folder in (a.partition("=") for a in sys.argv[1:])}
    for reading in READINGS:
        if checkouts:
            print(*unconfirmed(checkouts, reading.findings()), sep="\n")
        else:
            write_between(blind.PAGE, *reading.marks, f"the {reading.name} reading", table(reading.findings()))


if __name__ == "__main__":
    main()
