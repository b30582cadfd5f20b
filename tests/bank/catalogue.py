"""How many findings of the first reading the motifs meet, at the very lines; nobody looked whether they do as asked.

in_the_wild.csv: operator, file, lines, class, expected effect and sizes of what somebody found in 62 operators of
cann-ops, and ``met``, the motifs that docs/motifs_reading.md names for the class and that have an edit at those lines.
``python tests/bank/catalogue.py CANN_OPS/src`` asks the motifs again and writes ``met``, and the column of the page.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import blind
import outside

_COLUMNS = ("op", "file", "lines", "class", "effect", "size", "met")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_ELSEWHERE = frozenset(["double-buffer"])  # its edit is where buffers get their number, not at the loop that has one
_TOGETHER = re.compile(r"Together \d+ of \d+, and \d+ of \d+ of those expected to matter most\.")
_ROW = re.compile(r"^(\| `([\w:]+)` \| \d+ \| \d+ \|)(?: [^|]*\|)? (.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """A finding in device code."""

    row: dict[str, str]

    @property
    def kind(self) -> str:
        return self.row["class"]

    @property
    def files(self) -> frozenset[str]:
        return frozenset(Path(part.strip()).name for part in self.row["file"].split(";"))

    @property
    def met(self) -> frozenset[str]:
        return frozenset(self.row["met"].split())

    def met_in(self, operators: Path) -> frozenset[str]:
        """The motifs of its class with an edit at its lines."""
        of_class = outside.met_by().get(self.kind, (frozenset[str](), ""))[0]
        folder = operators / self.row["op"]
        spans = ((int(m[1]), int(m[2] or m[1])) for m in _SPAN.finditer(self.row["lines"]))
        anywhere = _ELSEWHERE.intersection(motif for motif, *_ in blind.places(folder))
        return of_class & (blind.edits_at(folder, self.files, spans) | anywhere)


def rows() -> list[dict[str, str]]:
    with outside.WILD.open(newline="") as file:
        return list(csv.DictReader(file))


def of_kernels() -> list[Found]:
    return [Found(row) for row in rows() if "op_kernel" in row["file"]]


def column() -> dict[str, str]:
    """Class -> how many of its findings in device code are met."""
    found = of_kernels()
    all_of, met = Counter(f.kind for f in found), Counter(f.kind for f in found if f.met)
    return {kind: f"{met[kind]} of {n}" for kind, n in all_of.items()}


def together() -> str:
    """All of them, in words."""
    found = of_kernels()
    high = [f for f in found if f.row["effect"] == "high"]
    met, met_high = (sum(bool(f.met) for f in some) for some in (found, high))
    return f"Together {met} of {len(found)}, and {met_high} of {len(high)} of those expected to matter most."


def with_counts(page: str) -> str:
    """The page with that column in its table of classes, and the sentence in front of it."""
    counts = column()
    page = _TOGETHER.sub(together(), page)
    return _ROW.sub(lambda m: f"{m[1]} {counts.get(m[2], '')} | {m[3]} |", page)


def changed(operators: Path) -> Iterator[tuple[dict[str, str], frozenset[str]]]:
    """Rows whose motifs are others than they say, with those they are."""
    for row in rows():
        met = Found(row).met_in(operators) if "op_kernel" in row["file"] else frozenset[str]()
        if met != Found(row).met:
            yield row, met


def main() -> None:
    new = {tuple(row.values()): met for row, met in changed(Path(sys.argv[1]))}
    with_met = [{**row, "met": " ".join(sorted(new.get(tuple(row.values()), Found(row).met)))} for row in rows()]
    with outside.WILD.open("w", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(with_met)
    blind.PAGE.write_text(with_counts(blind.PAGE.read_text()))
    print(together())


if __name__ == "__main__":
    main()
