"""An operator of the benchmark, ready to be asked: what becomes of this pair? Answers are kept.

Modelled times don't vary, so an answer holds for every method and seed. The store is a file of JSON Lines per operator,
case, chip and toolkit; each answer is on disk before it is used. What is asked again costs no time, but it still counts
as an evaluation of the run that asks (run.py).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..build.toolkit import Toolkit, find
from ..errors import CacheError
from ..evaluate.evaluator import EvaluationResult, Evaluator
from ..evaluate.gate import Checked, Gate
from ..evaluate.limits import ProcessLimits
from ..nouns.chip import WARM, load_chip
from ..nouns.operator import Pair
from ..nouns.outcome import Outcome, outcome_from_json, outcome_to_json
from ..sources.specification import specification
from ..store.cache import Key
from ..store.entry import sha256
from ..store.lines import LineLog, documents
from .sizes import DECODE, LARGE, MEDIUM
from .table import BenchOperator

T = TypeVar("T")

# Wall clock of an evaluation's launches, in s: the slowest baselines take a fifth of it on an idle processor.
_RUN_S = {DECODE: 60.0, MEDIUM: 120.0, LARGE: 240.0}


class EvaluationStore:
    """Questions and answers of one subject. One process at a time writes it.

    Raises:
        CacheError: the file can't be written, a line of it is damaged, or another process has it.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._log = LineLog(path)
        except BlockingIOError:
            raise CacheError(f"another process writes {path}.", "Wait for it, or name another --results.") from None
        except OSError as error:
            raise CacheError(
                f"can't write {path}: {error.strerror}.", "Name a writable folder by --results."
            ) from error
        self._path = path
        try:
            known = documents(path, self._log.lines, lambda line: ((line["asked"], line["pair"]), line["answer"]))
        except CacheError:
            self._log.close()
            raise
        self._known: dict[tuple[str, str], Any] = dict(known)

    def ask(self, asked: str, pair: str, make: Callable[[], Any]) -> Any:
        """What is known under this name, else what ``make`` says (JSON), kept from now on.

        Raises CacheError where it can't be kept.
        """
        if (asked, pair) not in self._known:
            document = {"asked": asked, "pair": pair, "answer": make()}
            try:
                self._log.append(json.dumps(document, sort_keys=True))
            except OSError as error:
                raise CacheError(
                    f"can't write {self._path}: {error.strerror}.", "Free space; the same command goes on there."
                ) from error
            self._known[asked, pair] = document["answer"]
        return self._known[asked, pair]

    def known(self, asked: str, pair: str) -> Any | None:
        """What is known under this name, else None."""
        return self._known.get((asked, pair))

    def close(self) -> None:
        self._log.close()


class Subject:
    """``operator`` with its case on a chip; a context manager.

    ``seconds``: of the wall clock, spent on answering since the subject was opened; what a method takes besides is its
    own overhead.

    Raises:
        AscendOptError: the operator can't be loaded, or its definition doesn't build.
    """

    def __init__(self, entry: BenchOperator, results: Path, chip: str, target: str = "virtual") -> None:
        self.entry, self.chip = entry, load_chip(chip)
        self.toolkit: Toolkit = find(target)
        self._evaluator = Evaluator(self.toolkit, chip, ProcessLimits(run_s=_RUN_S[entry.size]), workers=1)
        operator = entry.load()
        self.signature = self._evaluator.describe(operator).signature
        self.operator = entry.with_settings(operator, self.signature)
        self.case = entry.case
        key = Key.of(self.operator, self.case, chip=chip, target=self.toolkit.target, toolkit=self.toolkit.version)
        #: Names the case with what its inputs are drawn from: evaluations and runs on others are not its own.
        self.name = sha256(f"{key.hash} {specification(self.operator)}".encode())
        self._gate = Gate(self.operator, self.case, self._evaluator, signature=self.signature)
        name = f"{entry.path.replace('/', '-')}-{self.name[:16]}.jsonl"
        self._store = EvaluationStore(results / "evaluations" / name)
        self.seconds = 0.0
        self._gate_knows_baseline = False

    def outcome(self, pair: Pair) -> Outcome:
        """The pair through the whole gate, and its modelled time."""

        def make() -> dict[str, object]:
            base = self.operator.baseline
            # A run that goes on has the baseline's outcome from its file; the gate has to have seen it all the same.
            if pair.hash != base.hash and not self._gate_knows_baseline:
                list(self._gate.evaluate_many({0: base}))
            self._gate_knows_baseline = True
            ((_, checked),) = self._gate.evaluate_many({0: pair})
            return outcome_to_json(checked.outcome)

        return outcome_from_json(self._timed(lambda: self._store.ask("outcome", pair.hash, make)))

    def launch(self, pair: Pair) -> str | None:
        """Names the launch the pair leads to: equal names, equal outcomes. None if that is unknown."""
        found: str | None = self._timed(
            lambda: self._store.ask("launch", pair.hash, lambda: self._gate.fingerprint(pair))
        )
        return found

    def confirm(self, pair: Pair) -> Checked:
        """The pair through the gate once more, in a fresh process, on inputs that no search has met."""

        def make() -> dict[str, object]:
            return outcome_to_json(self._gate.confirm(pair).outcome)

        outcome = outcome_from_json(self._timed(lambda: self._store.ask("confirm", pair.hash, make)))
        return Checked(EvaluationResult(outcome), {})

    def speedups(self, pair: Pair) -> list[float]:
        """Over the pair as written, under each of the plausible clocks."""
        found: list[float] = self._timed(
            lambda: self._store.ask("speedups", pair.hash, lambda: list(self._gate.speedups(pair)))
        )
        return found

    def keep(self, pair: Pair) -> None:
        """Keeps the sources of a pair, as what differs from the baseline."""
        base = self.operator.baseline
        parts = ((pair.tiling, base.tiling), (pair.kernel, base.kernel))
        changed = [{path: text for path, text in new.items() if old.get(path) != text} for new, old in parts]
        self._store.ask("sources", pair.hash, lambda: changed)

    def kept(self, name: str) -> Pair | None:
        """The pair of this hash: the baseline, or one that was kept."""
        base = self.operator.baseline
        if name == base.hash:
            return base
        changed = self._store.known("sources", name)
        return Pair({**base.tiling, **changed[0]}, {**base.kernel, **changed[1]}) if changed is not None else None

    def times(self, pair: Pair, clocks: Sequence[Mapping[str, float]], state: str = WARM) -> list[float]:
        """Modelled times of the pair, in us, under clocks that differ from the chip's in these constants.

        Args:
            state: what the launches find, one of STATES of nouns/chip.py.

        Raises:
            DeviceError: it can't be launched, or a constant is unknown.
        """
        which = hashlib.sha256(json.dumps([dict(c) for c in clocks], sort_keys=True).encode()).hexdigest()[:16]
        asked = f"times {which}" if state == WARM else f"times {which} {state}"
        times: list[float] = self._store.ask(asked, pair.hash, lambda: self._gate.replay(pair, clocks, state))
        return times

    def _timed(self, question: Callable[[], T]) -> T:
        started = time.monotonic()
        try:
            return question()
        finally:
            self.seconds += time.monotonic() - started

    def close(self) -> None:
        self._store.close()
        self._evaluator.close()

    def __enter__(self) -> Subject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
