"""All runs that were asked for: operators side by side, each operator's methods and seeds one after the other.

A finished run is a line of ``runs.jsonl`` and isn't repeated as long as nothing it depends on has changed: operator,
case, chip, toolkit, method, seed, budget, the sources of the search and of this package, and the experience bank.
Of what is interrupted the evaluations are kept (subject.py); why an operator has no run is in ``failures.jsonl``.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Any

from .. import paths
from ..errors import AscendOptError, CacheError
from ..nouns.run_options import Schedule
from ..store.lines import append_lines, read_documents
from . import peers
from .methods import OWN, as_written, ours
from .patience import at_most
from .record import RunRecord
from .run import Method, record
from .subject import Subject
from .table import BenchOperator

#: What is compared unless methods are named.
COMPARED: dict[str, Method] = {**OWN, **peers.PEERS}
#: Run when they are named: the search with another choice than its default (what the default was chosen by), and the
#: baseline alone, by which the cases are verified.
VARIANTS: dict[str, Method] = {
    "full-paper": ours(schedule=Schedule.PAPER),
    "full-adaptive": ours(schedule=Schedule.ADAPTIVE),
    "as-written": as_written,
}
METHODS = {**COMPARED, **VARIANTS}
#: What decides about a run besides its evaluations.
_SOURCES = (
    "nouns/clocks.py",
    "search/**/*.py",
    "bank/*.py",
    "llm/choice.py",
    *(f"bench/{n}.py" for n in ("run", "methods", "peers", "space")),
)


@dataclass(frozen=True)
class BenchPlan:
    """What to run.

    ``list``: of which the operators are. ``results``: the folder of runs and evaluations; ``sampled``: methods that run
    on the sample only. ``run_minutes``: a run that takes longer is ended, and with it its case.
    """

    operators: tuple[BenchOperator, ...]
    methods: tuple[str, ...]
    seeds: int
    budget: int
    chip: str
    results: Path
    jobs: int = 1
    sampled: tuple[str, ...] = ()
    list: str = "test"
    run_minutes: float | None = None

    def methods_on(self, entry: BenchOperator) -> tuple[str, ...]:
        return tuple(m for m in self.methods if entry.sampled or m not in self.sampled)

    @property
    def runs(self) -> int:
        """How many it asks for, at most."""
        return self.seeds * sum(len(self.methods_on(entry)) for entry in self.operators)


@dataclass(frozen=True)
class Said:
    """One case's news: a finished run, or ``error``, why it has none (more)."""

    operator: str
    size: str
    run: RunRecord | None = None
    error: str = ""


Keep = Callable[[str, dict[str, Any]], None]
Done = dict[tuple[object, ...], RunRecord]


@cache
def code() -> str:
    """Names the version of the search, of this package and of the experience bank, by their files."""
    digest = hashlib.sha256()
    sources = Path(__file__).parents[1]
    files = [path for pattern in _SOURCES for path in sorted(sources.glob(pattern))]
    for layer in (paths.shipped("cache"), paths.cache_dir()):
        files += sorted((layer / "bank").glob("*.jsonl"))
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def read_runs(results: Path) -> list[RunRecord]:
    """The finished runs in a folder, whatever version made them; a torn last line is left out.

    Raises CacheError for one that can't be read, or another line that is damaged.
    """
    return read_documents(results / "runs.jsonl", RunRecord.from_json)


def read_failures(results: Path) -> dict[tuple[str, str], str]:
    """(operator, size) -> why it had no run (or none more) when that was tried last. Raises as :func:`read_runs`."""
    path = results / "failures.jsonl"
    return dict(read_documents(path, lambda line: ((line["operator"], line["size"]), line["error"])))


def keep_in(results: Path) -> Keep:
    """What is told it (``runs`` or ``failures``, and a document) is a line of that file in the folder.

    What is returned raises CacheError where it can't be written.
    """

    def keep(name: str, document: dict[str, Any]) -> None:
        path = results / f"{name}.jsonl"
        try:
            append_lines(path, [json.dumps(document, sort_keys=True)])  # operators end together
        except OSError as error:
            raise CacheError(
                f"can't write {path}: {error.strerror}.", "Free space; the same command goes on there."
            ) from error

    return keep


def execute(plan: BenchPlan, say: Callable[[Said], None]) -> None:
    """Runs the plan, telling every run as it ends; what is known already is told, not repeated.

    Raises:
        SettingsError: a peer among the methods isn't installed.
        KeyboardInterrupt: interrupted; what ended is kept.
    """
    versions = peers.require(plan.methods)
    plan.results.mkdir(parents=True, exist_ok=True)
    done = {r.identity: r for r in read_runs(plan.results)}
    if plan.jobs == 1:
        for entry in plan.operators:
            for said in run_operator(plan, entry, done, versions, keep_in(plan.results)):
                say(said)
        return
    # A fresh interpreter for each: evaluation servers, and peers that take global state, want it.
    context = get_context("spawn")
    news: Queue[Said] = context.Queue()
    with ProcessPoolExecutor(plan.jobs, context, _begin, (news,), max_tasks_per_child=1) as pool:
        waiting = {pool.submit(_tell_all, plan, entry, done, versions) for entry in plan.operators}
        try:
            while waiting:
                ended = {future for future in waiting if future.done()}
                with suppress(Empty):
                    while True:
                        say(news.get(timeout=_PATIENCE_S))
                for future in ended:
                    future.result()
                waiting -= ended
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    with suppress(Empty):  # all processes have ended, so whatever they said is here
        while True:
            say(news.get(timeout=_PATIENCE_S))


_PATIENCE_S = 0.5
_news: Queue[Said]  # of a process of the pool


def _begin(news: Queue[Said]) -> None:
    global _news
    _news = news
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process tells when to end
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed tells nobody, and its results are another run's from then on."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _tell_all(plan: BenchPlan, entry: BenchOperator, done: Done, versions: dict[str, str]) -> None:
    for said in run_operator(plan, entry, done, versions, keep_in(plan.results)):
        _news.put(said)


def run_operator(
    plan: BenchPlan, entry: BenchOperator, done: Done, versions: dict[str, str], keep: Keep
) -> Iterator[Said]:
    """The runs of one case, each kept before it is told; those in ``done`` are told alone."""
    of = (entry.path, entry.size)
    try:
        with Subject(entry, plan.results, plan.chip) as subject:
            # What it knows, and what is read from texts, stays: hardly anything there is to be collected.
            gc.freeze()
            gc.set_threshold(50_000, 50)
            parametric = bool(peers.parametric(subject))
            for seed, name in itertools.product(range(plan.seeds), plan.methods_on(entry)):
                if name in peers.PARAMETRIC and not parametric:
                    continue
                about: dict[str, Any] = {
                    "key": subject.name,
                    "operator": entry.path,
                    "method": name,
                    "code": code(),
                    "list": entry.list,
                    "level": entry.level,
                    "size": entry.size,
                    "elements": entry.elements,
                    "chip": plan.chip,
                    "toolkit": subject.toolkit.version,
                    "versions": versions,
                }
                identity = (about["key"], name, seed, plan.budget, about["code"])
                if identity not in done:
                    try:
                        with at_most(plan.run_minutes, f"{name}, seed {seed},"):
                            done[identity] = record(subject, METHODS[name], seed, plan.budget, **about)
                    except Exception as error:
                        if name not in peers.PEERS or isinstance(error, CacheError):  # a full disk is nobody's fault
                            raise
                        own = f"{name}, seed {seed}: {error!r}"  # a peer's own trouble
                        keep("failures", {"operator": entry.path, "size": entry.size, "error": own})
                        yield Said(*of, error=own)
                        continue
                    keep("runs", done[identity].to_json())
                yield Said(*of, done[identity])
    except AscendOptError as error:  # the other operators may do better
        keep("failures", {"operator": entry.path, "size": entry.size, "error": str(error)})
        yield Said(*of, error=str(error))


def newest(runs: Sequence[RunRecord], plan: BenchPlan) -> list[RunRecord]:
    """Of each run of the plan the one that was made last."""
    methods = {(o.path, o.size): plan.methods_on(o) for o in plan.operators}
    out: dict[tuple[str, str, str, int], RunRecord] = {}
    for r in runs:
        wanted = r.method in methods.get(r.case, ()) and r.seed < plan.seeds
        if wanted and r.budget == plan.budget and r.chip == plan.chip:
            out[*r.case, r.method, r.seed] = r
    return list(out.values())
