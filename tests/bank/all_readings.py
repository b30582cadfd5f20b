"""All readings together: of which classes findings are, how many a motif meets, and what the others would be worth.

``python tests/bank/all_readings.py`` writes the table of docs/motifs_reading.md. A finding expected to matter most
counts three, one of medium effect two, of low effect one; the catalogue's findings are those of in_the_wild.csv.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import blind

from ascendopt_tune.files import write_between

FILES = (
    "in_the_wild",
    "blind_reading",
    "third_reading",
    "fourth_reading",
    "fifth_reading",
    "sixth_reading",
    "seventh_reading",
    "eighth_reading",
)
BEGIN, END = "<!-- all readings: written by tests/bank/all_readings.py -->", "<!-- end of all readings -->"
_WEIGHT = {"high": 3, "medium": 2, "low": 1}
_FEW = 5  # a class with fewer findings that nothing meets has no line of its own


@dataclass
class Class:
    """Findings of a class: all, those a motif meets, and the weight of the others."""

    findings: int = 0
    met: int = 0
    left: int = 0


def classes() -> dict[str, Class]:
    """Class -> its findings in device code, those that would be worth most first."""
    found: dict[str, Class] = defaultdict(Class)
    for name in FILES:
        for row in blind.rows(Path(__file__).with_name(f"{name}.csv")):
            if not row["file"] or blind.of_host(row["file"]) or row["class"] == "none":
                continue
            one = found[row["class"]]
            one.findings += 1
            one.met += bool(row["met"])
            one.left += 0 if row["met"] else _WEIGHT.get(row["effect"], 0)
    return dict(sorted(found.items(), key=lambda c: (-c[1].left, c[0])))


def table() -> str:
    """The classes as a Markdown table."""
    found = classes()
    few = [n for n, c in found.items() if c.findings - c.met < _FEW]
    lines = ["| class | findings | met | not met | their weight |", "|---|--:|--:|--:|--:|"]
    rows = [(n, [c]) for n, c in found.items() if n not in few]
    rows += [(f"{len(few)} classes of which fewer are left", [found[n] for n in few]), ("all", list(found.values()))]
    for title, some in rows:
        findings, met, left = (sum(getattr(c, key) for c in some) for key in ("findings", "met", "left"))
        lines.append(f"| {title} | {findings} | {met} | {findings - met} | {left} |")
    return "\n".join(lines)


def main() -> None:
    write_between(blind.PAGE, BEGIN, END, "all readings", table())


if __name__ == "__main__":
    main()
