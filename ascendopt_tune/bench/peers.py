"""The peers: OpenEvolve, Optuna and kernel_tuner, each through its own front door, with this project's evaluator.

They are an extra (``pip install "ascendopt_tune[bench]"``) and imported when they run. A number is a knob of Optuna and
kernel_tuner (space.py); what fails the gate is told to them as ten times the baseline's time (Optuna) or as a failed
configuration (kernel_tuner). OpenEvolve gets whole pairs; the model behind its client hook is this project's rules
(openevolve_worker.py).
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ..errors import SettingsError
from ..nouns.history import History
from ..nouns.operator import Candidate
from ..nouns.outcome import LaunchFailed
from ..nouns.trial import Trial
from ..search.proposer import Proposer, SearchState
from ..search.tiling.context import Context
from ..search.tiling.rules import TilingRules
from . import openevolve_worker
from .methods import rule_proposers
from .run import Method, Run, RunSubject, Spent
from .space import SpaceKnob, knobs, pair_of

#: method -> package of PyPI and module.
PACKAGES = {
    "openevolve": ("openevolve", "openevolve"),
    "optuna-tpe": ("optuna", "optuna"),
    "kernel-tuner": ("kernel-tuner", "kernel_tuner"),
}
#: kernel_tuner's strategies differ a lot; this one was the best of its own on a space of this size (docs/benchmark.md).
STRATEGY = "adaptive_tabu_greywolf"


def require(names: Sequence[str]) -> dict[str, str]:
    """Package -> version of the peers among these methods.

    Raises:
        SettingsError: one isn't installed.
    """
    wanted = {n: PACKAGES[n] for n in names if n in PACKAGES}
    missing = sorted(n for n, (_, module) in wanted.items() if importlib.util.find_spec(module) is None)
    if missing:
        raise SettingsError(
            f"the methods {', '.join(missing)} need packages that are not installed.",
            'Run pip install "ascendopt_tune[bench]", or leave them out with --methods.',
        )
    return {package: version(package) for package, _ in wanted.values()}


# -- numbers only ------------------------------------------------------------------------------------------------------


def parametric(subject: RunSubject) -> tuple[SpaceKnob, ...]:
    """The knobs of the subject's baseline; none if its tiling program has no number to change."""
    first = Trial(Candidate(0, subject.operator.baseline, None, "", "as written"), LaunchFailed("not evaluated"))
    s = subject
    state = SearchState(s.operator, s.case, s.chip, s.signature, first, first, History((first,)), 0)
    return knobs(subject.operator.baseline, Context.of(state))


def _attempt(run: Run, space: Sequence[SpaceKnob], values: Sequence[int]) -> Trial:
    pair, change = pair_of(run.subject.operator.baseline, space, values)
    return run.attempt(pair, change, 0, stage=1)


def optuna_tpe(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
    """Optuna's TPE, multivariate, each knob a categorical; the text's own numbers are its first point."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    run = Run(subject, seed, budget)
    space = parametric(subject)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Optuna about what it calls experimental
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed))
    study.enqueue_trial({k.name: k.written for k in space})
    failed = 10 * (run.baseline.time_us or 1.0)
    with contextlib.suppress(Spent):
        while True:
            trial = study.ask()
            values = [trial.suggest_categorical(k.name, list(k.values)) for k in space]
            study.tell(trial, _attempt(run, space, values).time_us or failed)
    return run.history


class _Answers(dict[str, Any]):
    """What kernel_tuner's simulation mode takes for its table of results: each row is made when it is looked up."""

    def __init__(self, run: Run, space: Sequence[SpaceKnob]) -> None:
        super().__init__()
        self._run, self._space = run, space

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> Any:
        if not super().__contains__(key):
            values = [int(v) for v in key.split(",")]
            trial = _attempt(self._run, self._space, values)
            times = dict.fromkeys(("compile_time", "verification_time", "benchmark_time"), 0.0)
            row: dict[str, Any] = {f"k{i}": v for i, v in enumerate(values)} | times
            if trial.time_us is None:
                from kernel_tuner.util import RuntimeFailedConfig

                row |= {"time": RuntimeFailedConfig(), "__error__": RuntimeFailedConfig()}
            else:
                row["time"] = trial.time_us / 1000  # it reckons in ms
            self[key] = row
        return super().__getitem__(key)


def kernel_tuner(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
    """kernel_tuner's strategy ``STRATEGY`` in its simulation mode, whose table of results is filled as it asks.

    Its budget counts configurations; it may use as many as the run allows, and the run ends it.
    """
    import kernel_tuner as tuner
    from kernel_tuner import util

    run = Run(subject, seed, budget)
    space = parametric(subject)
    random.seed(seed)  # its own seed reaches the pymoo strategies only
    np.random.seed(seed)
    answers = _Answers(run, space)
    with (
        mock.patch.object(util, "process_cache", return_value=answers),
        mock.patch.object(util, "close_cache", return_value=None),
        contextlib.suppress(Spent),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        tuner.tune_kernel(
            "tiling",
            "void tiling() {}",
            1,
            [],
            {f"k{i}": list(k.values) for i, k in enumerate(space)},
            lang="C",
            cache="in-memory.json",
            simulation_mode=True,
            quiet=True,
            strategy=STRATEGY,
            strategy_options={"max_fevals": 5 * budget},
        )
    return run.history


# -- whole pairs -------------------------------------------------------------------------------------------------------


def openevolve(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
    """OpenEvolve with its defaults, one evaluation at a time.

    It runs in a process of its own (it takes the signal handlers, the root logger and the global generators for itself)
    and asks this one two things: what a model answers to a prompt, and what a program is worth.
    """
    run = Run(subject, seed, budget)
    with tempfile.TemporaryDirectory(prefix="ascendopt-openevolve-") as folder:
        first = Path(folder) / "pair.cpp"
        first.write_text(openevolve_worker.text_of(subject.operator.baseline))
        key = os.urandom(16)
        with Listener(str(Path(folder) / "socket"), "AF_UNIX", authkey=key) as listener:
            told = {
                openevolve_worker.ADDRESS: str(listener.address),
                openevolve_worker.KEY: key.hex(),
            }
            command = [sys.executable, "-m", openevolve_worker.__name__, str(first), str(seed), str(4 * budget)]
            with (Path(folder) / "log").open("w") as log:
                process = subprocess.Popen(
                    command, env=os.environ | told, stdout=log, stderr=log, cwd=folder, start_new_session=True
                )
            threading.Thread(target=_say_when_ended, args=(process, str(listener.address), key), daemon=True).start()
            # Stage I's rules may choose another parent than they are shown; here OpenEvolve does that.
            proposers = [TilingRules(others=0.0), *rule_proposers((2,))]
            try:
                for connection, question in _questions(listener):
                    connection.send(_answer(run, proposers, question))
            except Spent:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if len(run.history) < 2:
            raise SettingsError(f"OpenEvolve ended without a proposal: {(Path(folder) / 'log').read_text()[-2000:]}")
    return run.history


def _say_when_ended(process: subprocess.Popen[bytes], address: str, key: bytes) -> None:
    process.wait()
    with contextlib.suppress(OSError, EOFError), Client(address, "AF_UNIX", authkey=key) as connection:
        connection.send(("ended", ""))


def _questions(listener: Listener) -> Iterator[tuple[Connection, tuple[str, str]]]:
    """One question a connection, until OpenEvolve's process has ended."""
    while True:
        with contextlib.suppress(EOFError, ConnectionError), listener.accept() as connection:
            question = connection.recv()
            if question[0] == "ended":
                return
            yield connection, question


def _answer(run: Run, proposers: Sequence[Proposer], question: tuple[str, str]) -> object:
    what, text = question
    try:
        pair = openevolve_worker.pair_in(text)
    except ValueError:  # not what the model answered, or not what was evaluated
        return {"combined_score": 0.0} if what == "evaluate" else text
    if what == "evaluate":
        time_us = run.attempt(pair, "OpenEvolve").time_us
        assert run.baseline.time_us is not None
        return {"combined_score": 0.0 if time_us is None else run.baseline.time_us / time_us}
    # The rules' proposal for the pair that the prompt shows, in the history of this run.
    parent = next((t for t in run.history if t.candidate.pair.hash == pair.hash), run.baseline)
    parent = parent if parent.time_us is not None else run.baseline
    stages = [1, 2]
    random.Random(f"{run.seed}/openevolve/{len(run.history)}/{run.asked}").shuffle(stages)
    for stage in stages:
        for proposer in proposers:
            for p in proposer.propose(run.state(stage, parent), 1) if proposer.stage == stage else ():
                run.promise(p, stage)
                return openevolve_worker.text_of(p.pair)
    return text


PEERS: dict[str, Method] = {
    "openevolve": openevolve,
    "optuna-tpe": optuna_tpe,
    "kernel-tuner": kernel_tuner,
}
#: Methods that need a parametric space.
PARAMETRIC = ("optuna-tpe", "kernel-tuner")
