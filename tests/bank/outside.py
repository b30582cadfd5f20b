"""What the bank finds for kernels that nobody mined, against opportunities that no motif's rewind planted.

Two kinds of kernels, one question: is a motif that meets the kernel's opportunity among the three that retrieval names?

* slow/: written by hand (hand_written.py). The opportunity is the class in the file's head; and, apart from that, the
  motif that made the kernel fastest when each was put in alone, through the gate.
* in_the_wild.csv: what was found in operators of cann-ops by reading them, class by class (376 findings; nothing was
  run for it). Asked about are the operators that the benchmark has a medium case of.

Which motifs meet a class says the table in docs/motifs_reading.md. ``python tests/bank/outside.py`` runs the kernels,
writes outside.json (what they show, what was gained; none of their code) and prints the figures; it takes minutes, and
the operators need ASCENDOPT_CANN_OPS. ``--report`` prints the figures of the file that is there.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import ascendopt_tune  # noqa: F401  # isort: skip  # before torch, which torch_npu is loaded with
import hand_written

from ascendopt_tune import paths
from ascendopt_tune.bank import worth
from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.bank.symptoms import symptoms
from ascendopt_tune.bench import survey, table
from ascendopt_tune.bench.subject import Subject
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.evaluate.diagnosis import diagnose
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.trial import key_in
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.search.kernel.rules import rewrites_of
from ascendopt_tune.settings import settings

FILE, WILD = (Path(__file__).with_name(name) for name in ("outside.json", "in_the_wild.csv"))
_SHIPPED = paths.shipped("cache") / "bank"
_PAGE = Path(__file__).parents[2] / "docs/motifs_reading.md"
CHIP, _SIZE = "ascend910b4", "medium"
_NAMED = 3  # motifs that count as found
_GAIN = 1.01  # a motif that gains less is no opportunity


@dataclass(frozen=True)
class Shown:
    """A kernel: what it shows, which motifs have a place in it, and what each was worth alone (0: not let through)."""

    name: str
    symptoms: str
    bounds: tuple[str, ...]
    places: tuple[str, ...]
    gains: dict[str, float]

    @property
    def best(self) -> str | None:
        """The motif that gained most."""
        name = max(self.gains, key=lambda n: self.gains[n], default=None)
        return name if name is not None and self.gains[name] > _GAIN else None


def met_by() -> dict[str, tuple[frozenset[str], str]]:
    """Class -> (motifs, what the table in docs/motifs_reading.md says besides)."""
    known = {m.name for m in MOTIFS}
    rows = re.findall(r"^\| `([\w:]+)` \| \d+ \| \d+ \| [^|]*\| (.*) \|$", _PAGE.read_text(), re.MULTILINE)
    return {name: (frozenset(re.findall(r"`([\w-]+)`", says)) & known, says) for name, says in rows}


def wild() -> dict[str, frozenset[str]]:
    """Operator -> classes of what was found in it with an effect that was expected to be high or medium."""
    found: dict[str, set[str]] = {}
    with WILD.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["effect"] in ("high", "medium"):
                found.setdefault(row["op"], set()).add(row["class"])
    return {op: frozenset(classes) for op, classes in found.items()}


# -- asking --------------------------------------------------------------------------------------------------------


class Asked:
    """The shipped bank. What an operator itself earned, where it is one that was measured, is not known to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gains = worth.read(_SHIPPED / worth.FILE)
        self._banks: dict[str, Bank] = {}

    def named(self, shown: Shown, conditions: bool) -> list[str]:
        """The three motifs that retrieval names first; with ``conditions`` of those that have a place in the kernel."""
        own = shown.name if any(g.operator == shown.name for g in self._gains) else ""
        if own not in self._banks:
            self._banks[own] = Bank(self._folder, [_SHIPPED], gains=[g for g in self._gains if g.operator != own])
        places = shown.places if conditions else None
        return [e.motif for e, _ in self._banks[own].search(shown.symptoms, _NAMED, one_per_motif=True, places=places)]


@dataclass(frozen=True)
class Score:
    """``right`` of ``of``; ``constant``: right with the same three motifs always, that together are right most."""

    right: int
    of: int
    constant: int
    missed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.right} of {self.of} (always the same three motifs: {self.constant})"


def score(answers: Sequence[tuple[str, Iterable[str], Iterable[str]]]) -> Score:
    """Of (name, motifs that would be right, motifs that were named)."""
    rows = [(name, frozenset(wanted), frozenset(given)) for name, wanted, given in answers]
    motifs = sorted({m for _, wanted, _ in rows for m in wanted})
    constant = max(
        (sum(not wanted.isdisjoint(three) for _, wanted, _ in rows) for three in combinations(motifs, _NAMED)),
        default=len(rows),
    )
    missed = tuple(name for name, wanted, given in rows if not wanted & given)
    return Score(len(rows) - len(missed), len(rows), constant, missed)


def figures() -> dict[str, Score]:
    """What README and docs/bank.md quote, by what it says."""
    document = json.loads(FILE.read_text())
    slow, operators = (
        [Shown(**{**row, "bounds": tuple(row["bounds"]), "places": tuple(row["places"])}) for row in document[kind]]
        for kind in ("slow", "operators")
    )
    classes, motifs = wild(), {name: met for name, (met, _) in met_by().items()}
    wanted = {name: hand_written.wanted(name) for name in hand_written.names()}
    out: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as empty:
        bank = Asked(Path(empty))
        for conditions, how in ((False, "by the texts alone"), (True, "of motifs that have a place")):
            found = {s.name: bank.named(s, conditions) for s in (*slow, *operators)}
            out[f"hand-written, the class in their head, {how}"] = score(
                [(s.name, motifs.get(wanted[s.name], ()), found[s.name]) for s in slow]
            )
            out[f"hand-written, the motif that gained most, {how}"] = score(
                [(s.name, [s.best], found[s.name]) for s in slow if s.best]
            )
            meant = {s.name: frozenset[str]().union(*(motifs.get(c, ()) for c in classes[s.name])) for s in operators}
            out[f"operators, one of their classes, {how}"] = score(
                [(s.name, meant[s.name], found[s.name]) for s in operators if meant[s.name]]
            )
            out[f"operators, the motif that gained most, {how}"] = score(
                [(s.name, [s.best], found[s.name]) for s in operators if s.best]
            )
    return out


# -- running -------------------------------------------------------------------------------------------------------


def _shown(name: str, operator: Operator, key: int | None, before: Timed, chip: str, gate: Any) -> Shown:
    pair = operator.baseline
    kernel = KernelProgram(pair.kernel, pair.tiling, None, operator.auto_sync, key)
    text = symptoms(before.profile, load_chip(chip), kernel)
    bounds = tuple(f.bound for f in diagnose(before.profile, load_chip(chip)).findings)
    places = tuple(sorted(m for m, found in rewrites_of(pair, operator.auto_sync, key).items() if found))
    worths = survey.worths(operator, key, before, gate)
    return Shown(name, text, bounds, places, {m: round(w or 0.0, 4) for m, w in worths})


def run_slow(name: str, evaluator: Evaluator) -> Shown:
    """One of the kernels written by hand; its results are held against its formula."""
    kernel = hand_written.read(name)
    gate = Gate(kernel.operator, kernel.case, evaluator, signature=kernel.signature)
    before = gate.evaluate(kernel.operator.baseline).outcome
    assert isinstance(before, Timed), f"{name}: {before}"
    return _shown(name, kernel.operator, None, before, CHIP, lambda pair: gate.evaluate(pair).outcome)


def run_operator(entry: table.BenchOperator, results: Path) -> Shown:
    """One of cann-ops. Raises OperatorError when it doesn't pass the gate as written."""
    with Subject(entry, results, CHIP) as subject:
        pair = subject.operator.baseline
        before = subject.outcome(pair)
        if not isinstance(before, Timed):
            raise AscendOptError(f"{entry.name} does not pass the gate.")
        return _shown(entry.path, subject.operator, key_in(subject.launch(pair)), before, CHIP, subject.outcome)


def entries() -> list[table.BenchOperator]:
    """Operators of in_the_wild.csv that the benchmark knows a medium case of."""
    return sorted((o for o in table.read() if o.size == _SIZE and o.path in wild()), key=lambda o: o.path)


def _run() -> None:
    document: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"operators": []}
    with Evaluator(virtual(), CHIP) as evaluator:
        document["slow"] = [vars(run_slow(name, evaluator)) for name in hand_written.names()]
    if settings().cann_ops is not None:
        results = paths.cache_dir() / "outside"
        document["operators"], left_out = [], []
        for entry in entries():
            try:
                document["operators"].append(vars(run_operator(entry, results)))
            except AscendOptError as error:
                left_out.append(f"{entry.path}: {error}")
            print(entry.path, file=sys.stderr)
        print(*left_out, sep="\n", file=sys.stderr)
    document["made by"] = "tests/bank/outside.py"
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def main() -> None:
    if sys.argv[1:] != ["--report"]:
        _run()
    for what, result in figures().items():
        print(f"{what}: {result}\n    missed: {', '.join(result.missed) or 'none'}")


if __name__ == "__main__":
    main()
