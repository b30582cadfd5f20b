"""Tuning a list of wishes ahead of time, several at once, into the cache and from there into a bundle.

1. What the cache has already is not tuned again: a second prebuild does only what changed.
2. Each wish is a job for one of several worker processes (or a Ray task on any host; the same :func:`run_job`). Trials
   are journaled as they end, so a job whose process is killed loses the candidate that was running, and goes on.
3. A result is in the cache before it is announced; the bundle is written from the cache at the end, and also when
   somebody presses Ctrl-C: then it holds what is done.
"""

from __future__ import annotations

import base64
import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .. import paths
from ..build.toolkit import find
from ..errors import AscendOptError
from ..evaluate.cluster import joined
from ..evaluate.evaluator import Evaluator
from ..evaluate.sandbox import die_with_parent
from ..nouns.case import Argument, AttrValue, Case
from ..nouns.clocks import Interval, speedup_text
from ..nouns.operator import Operator
from ..settings import override
from ..sources.arguments import build_case, parse_tensors
from ..store.cache import Cache, Entry, Key
from ..store.claim import claim
from .manifest import Wish

ATTEMPTS = 3  # a job whose process dies is started again; this often it may be the job that kills it


@dataclass(frozen=True)
class CaseDone:
    """What became of a wish. ``result``: ``tuned``, ``cached`` or ``failed`` (then ``reason`` says why).

    ``folder`` is the entry's in the cache; times in us of the target (modelled for ``virtual``, then with the
    speedup's ``interval`` over plausible clocks).
    """

    wish: Wish
    result: str
    case: str = ""
    folder: Path | None = None
    baseline_us: float = 0.0
    best_us: float = 0.0
    reason: str = ""
    interval: Interval | None = None

    @property
    def speedup_text(self) -> str:
        """The speedup as people read it."""
        return speedup_text(self.baseline_us / self.best_us, self.interval)


def resolve(wish: Wish, evaluator: Evaluator) -> tuple[Operator, Case]:
    """Loads the operator and makes the case. Raises AscendOptError for a wish that can't be."""
    operator = wish.operator()
    if wish.options.invariant:
        operator = operator.invariantly()
    signature = evaluator.describe(operator).signature
    own = {param.name for param in signature.inputs}
    changed = {n: t for n, t in wish.call.written.items() if n.partition(".")[0] in own}
    inputs = parse_tensors([f"{n}={t}" for n, t in {**wish.call.inputs, **changed}.items()], "inputs")
    outputs = parse_tensors([f"{n}={t}" for n, t in wish.call.outputs.items()], "outputs")
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in wish.call.attrs.items()}

    def infer(given: tuple[Argument, ...], values: tuple[tuple[str, AttrValue], ...]) -> tuple[Argument, ...]:
        return evaluator.infer_outputs(operator, given, values)

    case = build_case(signature, inputs, attrs, outputs, infer, operator.in_place)
    return operator, case


def run_job(wish: Wish) -> dict[str, Any]:
    """Tunes one wish into this process's cache; a JSON document with the case, the entry's files (base64), or an error.

    The process is a worker's: torch doesn't load its device backends there, since references compute on the CPU.
    A case that another process is tuning, for a prebuild or for serving, is waited for.
    """
    from ..evaluate.screen import open_evaluator
    from ..tuner import tune_case

    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    options = replace(wish.options, workers=1)
    try:
        toolkit = find(options.target)
        with open_evaluator(toolkit, options.chip, workers=1) as evaluator:
            operator, case = resolve(wish, evaluator)
            key = Key.of(operator, case, chip=options.chip, target=toolkit.target, toolkit=toolkit.version)
            with claim(paths.cache_dir(), key.call, wait=True):
                record = tune_case(operator, case, options, evaluator=evaluator)
    except AscendOptError as error:
        return {"error": str(error)}
    files = {name: base64.b64encode(data).decode() for name, data in record.entry.to_files().items()}
    return {"case": str(case), "cached": record.cached, "files": files}


def prebuild(
    wishes: Sequence[Wish],
    cache: Cache,
    *,
    workers: int,
    ray_address: str | None = None,
    started: Callable[[Wish], None] = lambda wish: None,
) -> Iterator[CaseDone]:
    """Yields what became of each wish, as it ends; every result is in ``cache`` by then.

    Args:
        workers: jobs at the same time, each evaluating one candidate at a time. On a cluster, its processors decide.
        ray_address: run the jobs on this Ray cluster (``auto``: the one this machine is part of; ``local``: one that
            is started for this prebuild, here).

    Raises:
        AscendOptError: Ray isn't installed or can't be reached.
    """
    run = _on_ray(ray_address, workers) if ray_address is not None else _in_processes(cache.root, workers)
    for wish, document in run(wishes, started):
        yield _kept(wish, document, cache)


def _kept(wish: Wish, document: Mapping[str, Any], cache: Cache) -> CaseDone:
    if "error" in document:
        return CaseDone(wish, "failed", reason=document["error"])
    files = {name: base64.b64decode(text) for name, text in document["files"].items()}
    entry = Entry.from_files(files.__getitem__)
    cache.put(entry)  # on a cluster: the worker's own cache has it, ours hasn't
    kept = cache.get(entry.key) or entry
    return CaseDone(
        wish,
        "cached" if document["cached"] else "tuned",
        document["case"],
        _folder(cache, entry.key),
        kept.baseline.task_duration_us,
        kept.best.task_duration_us,
        interval=kept.interval,
    )


def _folder(cache: Cache, key: Key) -> Path | None:
    return next((s.folder for s in cache.items(key.operator) if s.key.hash == key.hash), None)


Runner = Callable[[Sequence[Wish], Callable[[Wish], None]], Iterator[tuple[Wish, Mapping[str, Any]]]]


def _in_processes(cache_dir: Path, workers: int) -> Runner:
    def run(wishes: Sequence[Wish], started: Callable[[Wish], None]) -> Iterator[tuple[Wish, Mapping[str, Any]]]:
        waiting = [(wish, 1) for wish in reversed(wishes)]
        idle: list[_Worker] = []
        busy: dict[Connection, tuple[_Worker, Wish, int]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < workers:
                    wish, attempt = waiting.pop()
                    worker = _hand(wish, idle, cache_dir)
                    busy[worker.pipe] = (worker, wish, attempt)
                    started(wish)
                for ready in wait(list(busy)):
                    assert isinstance(ready, Connection)
                    worker, wish, attempt = busy.pop(ready)
                    try:
                        yield wish, json.loads(ready.recv_bytes())
                        idle.append(worker)
                    except (EOFError, OSError):
                        worker.end()
                        if attempt < ATTEMPTS:
                            waiting.append((wish, attempt + 1))
                        else:
                            text = (
                                f"the worker died {ATTEMPTS} times, with exit code {worker.process.exitcode} at last."
                            )
                            yield wish, {"error": text}
        finally:
            for worker in (*idle, *(worker for worker, _, _ in busy.values())):
                worker.end()

    return run


def _hand(wish: Wish, idle: list[_Worker], cache_dir: Path) -> _Worker:
    """The worker that has the wish now: one of those without work that still lives, or a new one."""
    while idle:
        worker = idle.pop()
        try:
            worker.pipe.send(wish)
            return worker
        except OSError:  # it was killed while it had nothing to do
            worker.end()
    worker = _Worker(cache_dir)
    with contextlib.suppress(OSError):  # it was killed already: the end of its pipe tells
        worker.pipe.send(wish)
    return worker


class _Worker:
    """A process that runs one job after another."""

    def __init__(self, cache_dir: Path) -> None:
        context = multiprocessing.get_context("spawn")  # not fork: whoever calls may have threads
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(str(cache_dir), there))
        self.process.start()
        there.close()

    def end(self) -> None:
        """Ends it at once; the journal has what it did."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(cache_dir: str, pipe: Connection) -> None:
    """The worker's side. Ctrl-C is the parent's affair, who ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(signal.SIGKILL)  # a job that went on would be in the way of the prebuild that is started again
    if (parent := multiprocessing.parent_process()) is None or not parent.is_alive():
        return  # it was killed before we could ask
    with override(cache_dir=cache_dir):
        while True:
            try:
                wish = pipe.recv()
            except EOFError:
                return
            pipe.send_bytes(json.dumps(run_job(wish)).encode())


def _on_ray(address: str, workers: int) -> Runner:
    def run(wishes: Sequence[Wish], started: Callable[[Wish], None]) -> Iterator[tuple[Wish, Mapping[str, Any]]]:
        with joined(address, workers) as ray:
            task = ray.remote(max_retries=ATTEMPTS - 1)(run_job)
            running = {}
            for wish in wishes:
                running[task.remote(wish)] = wish
                started(wish)
            while running:
                ready, _ = ray.wait(list(running), num_returns=1)
                wish = running.pop(ready[0])
                try:
                    yield wish, ray.get(ready[0])
                except ray.exceptions.RayError as error:
                    yield wish, {"error": f"the Ray task failed: {error}"}

    return run
