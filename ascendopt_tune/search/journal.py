"""The journal of a run: JSON Lines, one line a trial, on disk before the next trial starts.

Line 1 says what run this is; every further line is one trial with its outcome, its moves, and the files it changed
against the baseline. A process that is killed loses at most the trial that was running; a torn last line is ignored.
A journal that is given again to the same run replays its outcomes instead of evaluating (engine.py). What a run was
told at its start from places that may change (the cache) is a line of its own, a fact, and is told again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import CacheError
from ..files import MALFORMED, parse_json
from ..nouns.operator import Pair
from ..nouns.outcome import Outcome, outcome_from_json, outcome_to_json
from ..nouns.trial import Trial
from ..store.lines import LineLog, read_lines

SCHEMA = 2


@dataclass(frozen=True)
class Recorded:
    """What an earlier run left: by pair hash, the outcomes of evaluations and the launches of all trials.

    ``spent``: seconds, tokens and money when the last trial ended. ``facts``: see :meth:`Journal.fact`.
    """

    header: Mapping[str, object] = field(default_factory=dict)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    launches: Mapping[str, str] = field(default_factory=dict)
    pairs: frozenset[str] = frozenset()
    spent: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_journal(path: Path) -> Recorded:
    """The journal at ``path``; an empty record if there is none.

    Raises:
        CacheError: a line other than the last is no JSON document, or the schema is another one.
    """
    try:
        lines = read_lines(path)
    except OSError as error:
        raise CacheError(f"journal {path} can't be read: {error.strerror}.", "Remove it to start afresh.") from error
    return _recorded(path, lines)


def _recorded(path: Path, lines: Sequence[bytes]) -> Recorded:
    header: dict[str, object] = {}
    outcomes: dict[str, Outcome] = {}
    launches: dict[str, str] = {}
    pairs: set[str] = set()
    spent: dict[str, float] = {}
    facts: dict[str, Any] = {}
    for number, line in enumerate(lines, start=1):
        try:
            doc = parse_json(line)
            if number == 1:
                header = dict(doc)
                if doc["schema"] != SCHEMA:
                    raise CacheError(
                        f"journal {path} has schema {doc['schema']}, this version writes {SCHEMA}.", "Remove it."
                    )
            elif "fact" in doc:
                facts[doc["fact"]] = doc["value"]
            else:
                pairs.add(doc["pair"])
                spent = {name: float(value) for name, value in doc["spent"].items()}
                if doc["launch"] is not None:
                    launches[doc["pair"]] = doc["launch"]
                if doc["duplicate_of"] is None:
                    outcomes[doc["pair"]] = outcome_from_json(doc["outcome"])
        except MALFORMED as error:
            raise CacheError(
                f"journal {path}, line {number}: {error!r}.", "Remove the file to start afresh."
            ) from error
    return Recorded(header, outcomes, launches, frozenset(pairs), spent, facts)


def _document(trial: Trial, baseline: Pair, seconds: float, spent: Mapping[str, float]) -> dict[str, object]:
    c = trial.candidate

    def changed(new: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
        return {path: text for path, text in new.items() if old.get(path) != text}

    return {
        "id": c.id,
        "parent": c.parent,
        "round": trial.round,
        "stage": trial.stage,
        "proposer": c.proposer,
        "change": c.change,
        "moves": [m.to_json() for m in trial.moves],
        "pair": c.pair.hash,
        "tiling": changed(c.pair.tiling, baseline.tiling),
        "kernel": changed(c.pair.kernel, baseline.kernel),
        "outcome": outcome_to_json(trial.outcome),
        "duplicate_of": trial.duplicate_of,
        "launch": trial.launch,
        "seconds": round(seconds, 3),
        "spent": dict(spent),
    }


class Journal:
    """Appends trials to a file; each is flushed and synced when ``write`` returns. One process at a time.

    Raises:
        CacheError: the file can't be written, holds another run (other header), or another process writes it.
    """

    def __init__(self, path: Path, header: Mapping[str, object]) -> None:
        self._path = path
        try:
            self._log = LineLog(path)
        except BlockingIOError:
            raise CacheError(
                f"another process is in the same run: it writes the journal {path}.", "Wait for its result."
            ) from None
        except OSError as error:
            raise CacheError(
                f"can't write the journal {path}: {error.strerror}.", "Free space or name a writable folder."
            ) from error
        try:
            self._open({"schema": SCHEMA, **header})
        except CacheError:
            self._log.close()
            raise

    def _open(self, wanted: Mapping[str, object]) -> None:
        self.recorded = _recorded(self._path, self._log.lines)
        if self._log.lines and dict(self.recorded.header) != json.loads(json.dumps(wanted)):
            names = sorted(k for k in wanted if wanted[k] != self.recorded.header.get(k))
            raise CacheError(
                f"journal {self._path} belongs to another run (differs in {', '.join(names)}).", "Name another file."
            )
        if not self._log.lines:
            self._line(wanted)

    def write(self, trial: Trial, baseline: Pair, seconds: float, spent: Mapping[str, float]) -> None:
        """Records a trial, how long it took, and what the run has spent (:meth:`~.budget.Budget.spent`)."""
        if trial.candidate.pair.hash not in self.recorded.pairs:
            self._line(_document(trial, baseline, seconds, spent))

    def fact(self, name: str, make: Callable[[], Any]) -> Any:
        """What the run was told under this name: what is recorded, else what ``make`` returns (JSON), recorded now."""
        if name not in self.recorded.facts:
            value = json.loads(json.dumps(make()))
            self._line({"fact": name, "value": value})
            return value
        return self.recorded.facts[name]

    def _line(self, doc: Mapping[str, object]) -> None:
        try:
            self._log.append(json.dumps(doc, sort_keys=True))
        except OSError as error:
            raise CacheError(
                f"can't write the journal {self._path}: {error.strerror}.", "Free space and resume."
            ) from error

    def close(self) -> None:
        self._log.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
