"""A fifth reading: four operators, read when calls were written out and before any motif was asked.

fifth_reading.csv: repository, operator, file, lines, class, expected effect, sizes, what it is. ``first``: the motifs
that met the finding when they were asked for the first time; ``met``: those that do now. Somebody looked whether the
rewrite does what the finding asks for. Chosen by rule (docs/motifs_reading.md says which).

``python tests/bank/fifth.py`` writes the table of docs/motifs_reading.md; with ``REPOSITORY=FOLDER`` of checkouts it
asks the motifs again and names the findings they no longer meet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import blind
import fourth

from ascendopt_tune.files import write_between

READING = Path(__file__).with_name("fifth_reading.csv")
BEGIN, END = "<!-- fifth reading: written by tests/bank/fifth.py -->", "<!-- end of the fifth reading -->"


def main() -> None:
    found = fourth.findings(READING)
    if len(sys.argv) == 1:
        write_between(blind.PAGE, BEGIN, END, "the fifth reading", fourth.table(found))
        return
    checkouts = {name: Path(folder) for name, _, folder in (a.partition("=") for a in sys.argv[1:])}
    print(*fourth.unconfirmed(checkouts, found), sep="\n")


if __name__ == "__main__":
    main()
