"""A sixth reading: twelve operators of ops-nn and ops-math, read before any motif was asked.

sixth_reading.csv: repository, operator, file, lines, class, expected effect, sizes, what it is. ``first``: the motifs
that met the finding when they were asked for the first time; ``met``: those that do now. Somebody looked whether the
rewrite does what the finding asks for. Chosen by rule (docs/motifs_reading.md says which).

``python tests/bank/sixth.py`` writes the table of docs/motifs_reading.md; with ``REPOSITORY=FOLDER`` of checkouts it
asks the motifs again and names the findings they no longer meet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import blind
import fourth

from ascendopt_tune.files import write_between

READING = Path(__file__).with_name("sixth_reading.csv")
BEGIN, END = "<!-- sixth reading: written by tests/bank/sixth.py -->", "<!-- end of the sixth reading -->"


def main() -> None:
    found = fourth.findings(READING)
    if len(sys.argv) == 1:
        write_between(blind.PAGE, BEGIN, END, "the sixth reading", fourth.table(found))
        return
    checkouts = {name: Path(folder) for name, _, folder in (a.partition("=") for a in sys.argv[1:])}
    print(*fourth.unconfirmed(checkouts, found), sep="\n")


if __name__ == "__main__":
    main()
