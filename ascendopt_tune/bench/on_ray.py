"""The benchmark on a Ray cluster: operators are tasks, and what they find comes back as they go.

A task has a folder of its own, with what is known here of its operator; its finished runs and its evaluations are kept
here as they are told. One whose machine dies is started again on another, with what it had told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DeviceError
from ..evaluate.cluster import joined
from ..store.lines import append_lines, read_lines
from ..store.scratch import Scratch
from . import peers
from .runner import BenchPlan, Done, Said, code, keep_in, read_runs, run_operator
from .table import BenchOperator

_ATTEMPTS = 3  # a task whose machine dies is started again; this often it may be the task that kills it
_EVALUATIONS = "evaluations"
Lines = Mapping[str, list[bytes]]  # by file of that folder


def execute(plan: BenchPlan, address: str, say: Callable[[Said], None]) -> None:
    """:func:`.runner.execute` on the cluster at ``address`` (see :func:`..evaluate.cluster.joined`), whose processors
    decide how many operators run at the same time; ``local``: ``plan.jobs``.

    Raises, besides that, AscendOptError: the cluster can't be reached.
    """
    versions = peers.require(plan.methods)
    plan.results.mkdir(parents=True, exist_ok=True)
    done = {r.identity: r for r in read_runs(plan.results)}
    keep = keep_in(plan.results)
    with joined(address, plan.jobs) as ray:
        task = ray.remote(num_cpus=1, max_calls=1, max_retries=0, num_returns="streaming")(_there)

        def start(entry: BenchOperator) -> Any:
            return task.remote(plan, entry, done, versions, _known(plan.results, entry), code())

        running = {start(entry): (entry, 1) for entry in plan.operators}
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, fetch_local=False)
            entry, attempt = running.pop(ready[0])
            try:
                news, kept, lines = ray.get(next(ready[0]))
            except StopIteration:
                continue
            except ray.exceptions.RayError as error:
                if attempt == _ATTEMPTS:
                    raise DeviceError(f"{entry.path}: the Ray task failed {_ATTEMPTS} times: {error}") from error
                running[start(entry)] = (entry, attempt + 1)
                continue
            running[ready[0]] = (entry, attempt)
            for name, document in kept:
                keep(name, document)
            for name, new in lines.items():
                append_lines(plan.results / _EVALUATIONS / name, new)
            if news.run is not None:
                done[news.run.identity] = news.run
            say(news)


def _known(results: Path, entry: BenchOperator) -> Lines:
    """The evaluations of an operator that are known in a folder, by file; their names begin as subject.py says."""
    files = (results / _EVALUATIONS).glob(f"{entry.path.replace('/', '-')}-*.jsonl")
    return {file.name: read_lines(file) for file in files}


def _there(
    plan: BenchPlan, entry: BenchOperator, done: Done, versions: dict[str, str], known: Lines, version: str
) -> Iterator[tuple[Said, list[tuple[str, dict[str, Any]]], Lines]]:
    """On a machine of the cluster: the news, each with what is to be kept of it and the evaluations made for it."""
    if version != code():
        why = "a machine of the cluster has another version of the package, or another experience bank"
        failure = {"operator": entry.path, "size": entry.size, "error": why}
        yield Said(entry.path, entry.size, error=why), [("failures", failure)], {}
        return
    with Scratch(prefix="ascendopt-bench-") as results:
        for name, lines in known.items():
            append_lines(results / _EVALUATIONS / name, lines)
        told = {name: len(lines) for name, lines in known.items()}
        kept: list[tuple[str, dict[str, Any]]] = []
        own = replace(plan, results=results)
        for said in run_operator(own, entry, done, versions, lambda name, document: kept.append((name, document))):
            now = _known(results, entry)
            yield said, list(kept), {name: lines[told.get(name, 0) :] for name, lines in now.items()}
            told = {name: len(lines) for name, lines in now.items()}
            kept.clear()
