"""The gate, proven by mutation: wrong variants of verified kernels are refused, each for a reason that is named.

CI runs a share of the mutants, some of every kind; ``make gate-battery`` runs them all and prints the counts. A mutant
that the gate accepts is not wrong when it does what the original does: the same machine code and tiling, or the same
bits on inputs of two more seeds, all distributions, compared exactly. Any other is a hole in the gate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import pytest
from mutants import Mutant, mutants

from ascendopt_tune.build import toolkit
from ascendopt_tune.build.elf import read
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Outcome, Timed
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

_PER_KIND = 4  # mutants of one kind that CI runs, over all operators
_SEEDS = (1 << 20, 1 << 21)  # of the inputs on which an accepted mutant has to give the original's bits


@dataclass(frozen=True)
class Subject:
    """A verified operator, its case, and what makes the case take several loops and tiles per core."""

    operator: str
    inputs: str
    constants: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.operator} {self.inputs}"


SUBJECTS = (
    Subject("add", "x=float16[5,1003] y=float16[5,1003]", (("TILE_LENGTH = 2048", "TILE_LENGTH = 32"),)),
    Subject("dynamic_quant", "x=float16[401,33]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("foreach_mul_scalar", "x.0=float16[3,33] x.1=float16[1] x.2=float16[40,50] scalar=float32[1]"),
    Subject("layer_norm", "x=float16[150,33] gamma=float16[33] beta=float16[33]"),
    Subject("masked_fill", "x=float16[25,1003] mask=bool[25,1003]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("moe_gather_rows", "x=float16[50,33] index=int32[150]", (("TILE_BYTES = 16 * 1024", "TILE_BYTES = 64"),)),
    Subject("reduce_sum_last", "x=float32[337,133]",
            (("TILE_LENGTH = 4096", "TILE_LENGTH = 64"), ("ROWS_PER_LOOP = 128", "ROWS_PER_LOOP = 3"))),
    Subject("rms_norm", "x=float16[401,33] gamma=float16[33]", (("PER_LOOP = 4095", "PER_LOOP = 2"),)),
    Subject("rms_norm", "x=float32[2,12301] gamma=float32[12301]"),
    Subject("rope", "x=float16[30,4,50] cos=float16[30,50] sin=float16[30,50]"),
    Subject("silu", "x=float16[5,1003]"),
    Subject("softmax", "x=float16[401,33]", (("TILE_LENGTH = 4096", "TILE_LENGTH = 128"),)),
    Subject("softmax", "x=float32[2,20001]"),
    Subject("swiglu", "x=float16[401,66]", (("TILE_LENGTH = 2048", "TILE_LENGTH = 64"),)),
)  # fmt: skip

#: What the reason of a refusal says, by kind of outcome: its own subject, and never nothing.
_WORDS = {
    "WrongResult": r"elements of output|rounded to one side|less accurate than the original",
    "OutOfBounds": r"covers|no allocation|past the end|past its end|not its output|Unified Buffer|through a pointer",
    "Hazard": r"not ordered after|nobody has written|relies on|leaves other results|static or global variable",
    "LaunchFailed": r"does not take|queue|block dim|tiling|buffer|Wait|must|InitBuffer|align|repeat|type|stride",
    "Deadlock": r"wait for ever|hangs",
    "CompileFailed": r"does not compile|AscendC|poison",
    "TimedOut": r"did not end|processor time",
    "Crashed": r"signal|ended its process",
}


@dataclass(frozen=True)
class Judged:
    """A mutant and what became of it; ``same``: it does what the original does."""

    subject: Subject
    mutant: Mutant
    outcome: Outcome
    same: str = ""

    def __str__(self) -> str:
        text = self.same or getattr(self.outcome, "reason", "ACCEPTED")
        return f"{self.subject.operator} {self.mutant.kind} {self.mutant.what}: {type(self.outcome).__name__}: {text}"


class Bench:
    """The gates of one subject."""

    def __init__(self, subject: Subject, evaluator: Evaluator) -> None:
        self.subject = subject
        self._evaluator = evaluator
        operator = load_operator(subject.operator)
        host = f"op_host/{subject.operator}.cpp"
        text = operator.baseline.tiling[host]
        for old, new in subject.constants:
            assert old in text, old
            text = text.replace(old, new)
        self.operator: Operator = replace(operator, baseline=operator.baseline.with_tiling(host, text))
        self.signature = evaluator.describe(self.operator).signature
        self.case: Case = build_case(
            self.signature, dict(map(parse_tensor, subject.inputs.split())), {}, {},
            lambda inputs, attrs: evaluator.infer_outputs(self.operator, inputs, attrs),
        )  # fmt: skip
        self.gate = Gate(self.operator, self.case, evaluator)
        self.baseline = self.gate.evaluate(self.operator.baseline)
        assert isinstance(self.baseline.outcome, Timed), self.baseline.outcome
        self._exact: list[Gate] = []

    def mutants(self) -> list[Mutant]:
        return list(mutants(self.operator, self.signature))

    def judge(self, some: list[Mutant]) -> Iterator[Judged]:
        for i, checked in self.gate.evaluate_many({i: m.pair for i, m in enumerate(some)}):
            same = self._same(some[i], checked) if isinstance(checked.outcome, Timed) else ""
            yield Judged(self.subject, some[i], checked.outcome, same)

    def _same(self, mutant: Mutant, checked: Checked) -> str:
        """Why an accepted mutant isn't wrong; "" when it is."""
        if self._launch(checked) == self._launch(self.baseline):
            return "the same machine code and tiling"
        if not self._exact:
            dtypes = {"float16", "float32", "int8"}
            settings = {**self.operator.settings, "tolerance": {d: {"rtol": 0, "atol": 0, "ratio": 0} for d in dtypes}}
            operator = replace(self.operator, reference=None, settings=settings)
            self._exact = [Gate(operator, self.case, self._evaluator, seed=s) for s in _SEEDS]
        outcomes = [gate.evaluate(mutant.pair).outcome for gate in self._exact]
        return "the same bits" if all(isinstance(o, Timed) for o in outcomes) else ""

    @staticmethod
    def _launch(checked: Checked) -> tuple[object, ...]:
        code = tuple(read(checked.binary).section(name) for name in (".text", ".rodata", ".data"))
        return code, checked.tiling


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), "ascend910b2", limits=ProcessLimits(run_s=10), workers=2) as e:
        yield e


def run(evaluator: Evaluator, chosen: dict[Subject, list[Mutant]], benches: dict[Subject, Bench]) -> list[Judged]:
    return [judged for subject, some in chosen.items() for judged in benches[subject].judge(some)]


def check(judged: list[Judged]) -> None:
    accepted = [str(j) for j in judged if isinstance(j.outcome, Timed) and not j.same]
    assert not accepted, "wrong, and accepted:\n" + "\n".join(accepted)
    for j in judged:
        if not isinstance(j.outcome, Timed):
            assert re.search(_WORDS[type(j.outcome).__name__], j.outcome.reason), str(j)


def table(judged: list[Judged]) -> str:
    lines = []
    for kind, group in groupby(sorted(judged, key=lambda j: j.mutant.kind), key=lambda j: j.mutant.kind):
        found = list(group)
        outcomes = Counter(j.same or type(j.outcome).__name__ for j in found)
        lines.append(f"{kind:14s} {len(found):4d}: " + ", ".join(f"{n} {what}" for what, n in outcomes.most_common()))
    refused = sum(not isinstance(j.outcome, Timed) for j in judged)
    same = sum(bool(j.same) for j in judged)
    return "\n".join([*lines, f"{len(judged)} mutants: {refused} refused, {same} do what the original does"])


def test_a_share_of_the_mutants(evaluator: Evaluator) -> None:
    benches = {s: Bench(s, evaluator) for s in SUBJECTS[1:8:3]}
    every = [(s, m) for s, bench in benches.items() for m in bench.mutants()]
    chosen: dict[Subject, list[Mutant]] = {}
    for _, group in groupby(sorted(every, key=lambda pair: pair[1].kind), key=lambda pair: pair[1].kind):
        found = list(group)
        for subject, mutant in found[:: max(1, len(found) // _PER_KIND)][:_PER_KIND]:
            chosen.setdefault(subject, []).append(mutant)
    judged = run(evaluator, chosen, benches)
    check(judged)
    assert sum(not isinstance(j.outcome, Timed) for j in judged) >= 3 * len(judged) // 4


@pytest.fixture(scope="module")
def all_judged() -> list[Judged]:
    return []


@pytest.mark.battery
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_all_mutants(
    subject: Subject, evaluator: Evaluator, all_judged: list[Judged], capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(subject, evaluator)
    judged = list(bench.judge(bench.mutants()))
    all_judged += judged
    with capsys.disabled():
        print(f"\n{subject}\n{table(judged)}")
        for j in judged:
            if isinstance(j.outcome, Timed):
                print(f"  {j}")
    check(judged)


@pytest.mark.battery
def test_the_counts_of_all(all_judged: list[Judged], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{len({j.subject.operator for j in all_judged})} operators\n{table(all_judged)}")
    assert sum(not isinstance(j.outcome, Timed) for j in all_judged) >= 200
