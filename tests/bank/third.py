"""A third reading: how many of its findings the motifs meet, in the half they were mended from and in the other.

third_reading.csv: what was found by reading 16 vector operators before any motif was asked: repository, operator, half,
file, lines, class, expected effect, sizes, what it is. ``first``: the motifs that met the finding when they were asked
for the first time; ``met``: those that do now. Somebody looked whether the rewrite does what the finding asks for.
``half``: by every other place in the order of the paths' SHA-256, before anything was mended; *held* was not mended
from.

``python tests/bank/third.py`` writes the table of docs/motifs_reading.md; with ``REPOSITORY=FOLDER`` of checkouts it
asks the motifs again and names the findings they no longer meet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import blind

from ascendopt_tune.files import write_between

READING = Path(__file__).with_name("third_reading.csv")
BEGIN, END = "<!-- third reading: written by tests/bank/third.py -->", "<!-- end of the third reading -->"
HALVES = ("mend", "held")
_FEW = 3  # a class with fewer findings has no line of its own
_BELOW = {"cann-ops": "src"}
ELSEWHERE = frozenset(["double-buffer"])  # its edit is where buffers get their number, not at the lines of a loop


def by_half() -> dict[str, list[blind.Finding]]:
    """Half -> its findings in device code."""
    found = [(row["half"], blind.finding_of(row)) for row in blind.rows(READING)]
    return {half: [f for h, f in found if h == half and f.of_kernel] for half in HALVES}


def table() -> str:
    """The findings of device code by class, the most frequent first; met at first and now, in each half."""
    halves = by_half()
    every = [f for found in halves.values() for f in found]
    kinds = sorted({f.kind for f in every}, key=lambda k: (-sum(f.kind == k for f in every), k))
    few = [k for k in kinds if sum(f.kind == k for f in every) < _FEW]
    lines = [
        "| class | mended from: met at first | now | held back: met at first | now |",
        "|---|--:|--:|--:|--:|",
    ]
    wanted = [([k], f"`{k}`", "") for k in kinds if k not in few] + [(few, f"{len(few)} classes of fewer", "")]
    for names, title, effect in (*wanted, (kinds, "those expected to matter most", "high"), (kinds, "all", "")):
        cells = []
        for half in HALVES:
            some = [f for f in halves[half] if f.kind in names and effect in ("", f.effect)]
            cells += [f"{sum(bool(f.first) for f in some)} of {len(some)}", f"{sum(bool(f.met) for f in some)}"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def unconfirmed(checkouts: Mapping[str, Path]) -> Iterator[str]:
    """Findings that are said to be met by a motif that has no place there."""
    for row in blind.rows(READING):
        f, root = blind.finding_of(row), checkouts.get(row["repository"])
        folder = root / _BELOW.get(f.repository, "") if root is not None else None
        if folder is None or not (folder / f.op).is_dir():
            continue
        anywhere = ELSEWHERE & {motif for motif, *_ in blind.places(folder / f.op)}
        gone = f.met - blind.motifs_at(f, folder) - anywhere
        if gone:
            yield f"{f.op} {f.file}:{f.lines} {f.kind}: {', '.join(sorted(gone))}"


def main() -> None:
    if len(sys.argv) == 1:
        write_between(blind.PAGE, BEGIN, END, "the third reading", table())
        return
    checkouts = {name: Path(folder) for name, _, folder in (a.partition("=") for a in sys.argv[1:])}
    print(*unconfirmed(checkouts), sep="\n")


if __name__ == "__main__":
    main()
