"""How many findings of a reading the motifs meet, at the very lines.

blind_reading.csv holds what was found by reading 24 vector operators before any motif was asked: repository, operator,
file, lines, class, expected effect, sizes, and what it is. ``first``: the motifs that met the finding when they were
asked for the first time; ``met``: those that do now. A finding is met where a motif that the table of classes in
docs/motifs_reading.md names for its class has a rewrite there that does what the finding asks for (somebody looked).

``python tests/bank/blind.py`` writes the table of docs/motifs_reading.md; with ``REPOSITORY=FOLDER``, the folders that
the operators of one, two or three checkouts are in, it asks the motifs again and names the findings they no longer
meet.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascendopt_tune.bench.survey import operator_pair
from ascendopt_tune.files import write_between
from ascendopt_tune.search.kernel.rules import rewrites_of

READING, PAGE = Path(__file__).with_name("blind_reading.csv"), Path(__file__).parents[2] / "docs/motifs_reading.md"
BEGIN, END = "<!-- blind reading: written by tests/bank/blind.py -->", "<!-- end of the blind reading -->"
_FEW = 3  # a class with fewer findings has no line of its own
_NEAR = 2  # lines


def of_host(file: str) -> bool:
    """Is a file the tiling program's, by the folder it is in?"""
    return not {"op_host", "op_tiling", "tiling"}.isdisjoint(re.split(r"[/; ]+", file))


def named(op: str) -> str:
    """An operator's name: its folder, or the one above where that is a version."""
    folders = op.split("/")
    return folders[-2] if re.fullmatch(r"v\d+", folders[-1]) else folders[-1]


@dataclass(frozen=True)
class Finding:
    """A line of the reading."""

    repository: str
    op: str
    file: str
    lines: str
    kind: str
    effect: str
    size: str
    what: str
    first: frozenset[str]
    met: frozenset[str]

    @property
    def of_kernel(self) -> bool:
        """Is it in device code? The others are the tiling program's."""
        return bool(self.file) and not of_host(self.file)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First and last lines."""
        found = (re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in self.lines.split(";"))
        return tuple((int(m[1]), int(m[2] or m[1])) for m in found if m is not None)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def finding_of(row: Mapping[str, str]) -> Finding:
    return Finding(
        repository=row["repository"],
        op=row["op"],
        file=row["file"],
        lines=row["lines"],
        kind=row["class"],
        effect=row["effect"],
        size=row["size"],
        what=row["what"],
        first=frozenset(row["first"].split()),
        met=frozenset(row["met"].split()),
    )


def reading() -> tuple[Finding, ...]:
    return tuple(map(finding_of, rows(READING)))


def table() -> str:
    """The findings of device code by class, the most frequent first."""
    kernel = [f for f in reading() if f.of_kernel]
    kinds = sorted({f.kind for f in kernel}, key=lambda k: (-len([f for f in kernel if f.kind == k]), k))
    few = [k for k in kinds if len([f for f in kernel if f.kind == k]) < _FEW]
    rows = ["| class | met at first | met now | by |", "|---|--:|--:|---|"]
    for kind in (k for k in kinds if k not in few):
        rows.append(_row(f"`{kind}`", [f for f in kernel if f.kind == kind]))
    rows.append(_row(f"{len(few)} classes of fewer", [f for f in kernel if f.kind in few]))
    rows.append(_row("those expected to matter most", [f for f in kernel if f.effect == "high"]))
    rows.append(_row("all", kernel))
    return "\n".join(rows)


def _row(title: str, findings: list[Finding]) -> str:
    first, now = (
        sum(bool(names) for names in side) for side in zip(*((f.first, f.met) for f in findings), strict=True)
    )
    by = sorted({name for f in findings for name in f.met}) if title.startswith("`") else []
    return f"| {title} | {first} of {len(findings)} | {now} of {len(findings)} | {', '.join(f'`{n}`' for n in by)} |"


# -- asking the motifs again -------------------------------------------------------------------------------------------


@cache
def places(folder: Path) -> tuple[tuple[str, str, int, int], ...]:
    """(motif, file, first line, last line) of each edit of each rewrite of an operator's kernel, and of each place that
    a rewrite has a copy of, as it writes calls out."""
    pair, auto_sync = operator_pair(folder)
    found = []
    for motif, rewrites in rewrites_of(pair, auto_sync).items():
        for edit in (e for rewrite in rewrites for e in rewrite.edits):
            text = pair.kernel[edit.path].encode()
            first, last = (text[:at].count(b"\n") + 1 for at in (edit.start, max(edit.start, edit.end - 1)))
            found.append((motif, edit.path, first, last))
        for path, byte in {place for rewrite in rewrites for place in rewrite.copied}:
            line = pair.kernel[path].encode()[:byte].count(b"\n") + 1
            found.append((motif, path, line, line))
    return tuple(found)


def motifs_at(finding: Finding, folder: Path) -> frozenset[str]:
    """Motifs with an edit at the finding's lines."""
    return edits_at(folder / finding.op, {Path(finding.file).name}, finding.spans)


def edits_at(folder: Path, files: Collection[str], spans: Iterable[tuple[int, int]]) -> frozenset[str]:
    """Motifs with an edit at some lines of files of an operator's kernel. ``spans``: first and last line."""
    lines = tuple(spans)
    return frozenset(
        motif
        for motif, path, first, last in places(folder)
        if Path(path).name in files and any(first <= end + _NEAR and last >= start - _NEAR for start, end in lines)
    )


def unconfirmed(folders: Mapping[str, Path]) -> Iterator[str]:
    """Findings that are said to be met by a motif that has no place there. ``folders``: repository -> its operators.

    An operator that a checkout doesn't have is passed over: releases have fewer than what was read.
    """
    for finding in reading():
        folder = folders.get(finding.repository)
        if folder is not None and (folder / finding.op).is_dir():
            gone = finding.met - motifs_at(finding, folder)
            if gone:
                yield f"{finding.op} {finding.file}:{finding.lines} {finding.kind}: {', '.join(sorted(gone))}"


def main() -> None:
    if len(sys.argv) == 1:
        write_between(PAGE, BEGIN, END, "the blind reading", table())
        return
    folders = {name: Path(folder) for name, _, folder in (a.partition("=") for a in sys.argv[1:])}
    print(*unconfirmed(folders), sep="\n")


if __name__ == "__main__":
    main()
