"""MultiKernelBench's tasks through the generator: one record per task, in a process of its own with a time limit.

A task's file is a user's own checkout; nothing of it is kept but what its operator folder needs. A record says how far
the task came: lowered, compiled, MultiKernelBench's own check, the gate at the task's shapes and at odd ones, which
trivial outputs pass, modelled times, and the roofline of the module's ATen calls.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Queue

import numpy as np

from ..build import toolkit
from ..errors import AscendOptError, CaseError, OperatorError
from ..evaluate.compare import compare, tolerance
from ..evaluate.evaluator import EvaluateRequest, Evaluator, GateTrial, ProcessLimits
from ..evaluate.gate import Gate
from ..evaluate.protocol import load_arrays, save_array
from ..generator import Generated, generate_file
from ..generator.gated import example_case
from ..generator.interpreted import shapes_at
from ..generator.module_file import read
from ..generator.roofline import roofline_us
from ..nouns.case import Case, flatten
from ..nouns.operator import Operator
from ..nouns.outcome import CompileFailed, Timed
from ..nouns.run_options import RunOptions
from ..sources.registry import load_folder
from ..store.lines import append_lines, read_lines

#: The categories of AscendCraft's 52 tasks, in its order.
CATEGORIES = ("activation", "loss", "math", "normalization", "optimizer", "reduce", "pooling")
#: Sizes that free axes take in turn for the gate's odd shapes: tails, unaligned rows, more and fewer rows than cores.
ODD = ((5, 1003, 7, 9, 11), (53, 3, 67, 5, 6))
_ODD_ELEMENTS = 1 << 21
_ODD_TRIALS = ("normal", "lines", "large", "columns", "outlier", "uniform", "zeros", "negative", "offset", "tiny")
_TRIALS = 5
_LAUNCHES = 600.0  # seconds that the launches of an evaluation may take
_TRIVIAL = ("zeros", "a copy of the first input", "a constant", "another trial's result")
_LARGE = 64 << 20  # bytes of a task's tensors: larger ones get one trial of MultiKernelBench's check
_HUGE, _FEW = 256 << 20, ("normal", "large")  # and beyond these the gate has two trials at the task's own shapes
_WAIT = 0.5
_ENDED = "ended"


@dataclass
class Record:
    """What became of a task. Times in us, modelled; ``reason``: of the first thing that failed."""

    task: str
    category: str
    shapes: str = ""
    schedule: str = ""
    lowered: bool = False
    compiled: bool = False
    mkb: dict[str, bool] = field(default_factory=dict)  # by tolerance
    mkb_trials: int = 0
    mkb_error: float | None = None
    gate: str = ""  # passed, or the outcome's name
    checks: int = 0
    skipped: list[str] = field(default_factory=list)
    odd: dict[str, str] = field(default_factory=dict)  # the gate at odd shapes
    trivial: list[str] = field(default_factory=list)  # outputs without the work that the gate's trials let pass
    time_us: float | None = None
    tuned_us: float | None = None
    evaluations: int = 0
    roofline_us: float | None = None
    seconds: float = 0.0
    reason: str = ""

    @property
    def passed(self) -> bool:
        return self.gate == "passed" and all(v == "passed" for v in self.odd.values())


def task_files(tasks: Path, wanted: Sequence[str]) -> list[Path]:
    """Files of the tasks, by name or category; without any the 52.

    Raises:
        CaseError: no such task, or no such folder.
    """
    folder = tasks / "reference" if (tasks / "reference").is_dir() else tasks
    known = {p.stem: p for p in sorted(folder.glob("*/*.py"))}
    if not known:
        raise CaseError(f"{tasks} has no tasks.", "It is a checkout of MultiKernelBench, or its folder `reference`.")
    found: dict[str, Path] = {}
    for name in wanted or CATEGORIES:
        chosen = {n: p for n, p in known.items() if name in (n, p.parent.name)}
        if not chosen:
            raise CaseError(f"there is no task or category {name!r} in {folder}.")
        found |= chosen
    return list(found.values())


def execute(
    files: Sequence[Path],
    results: Path,
    *,
    jobs: int,
    evaluations: int,
    chip: str,
    seconds: float,
    say: Callable[[Record], None],
) -> list[Record]:
    """Runs what has no record yet; every finished task is a line of ``results``.

    Args:
        evaluations: of the tuner per task; 0: none.
        seconds: a task's limit.
    """
    known = {r.task: r for r in records(results) if r.evaluations >= evaluations}
    lock = threading.Lock()
    results.parent.mkdir(parents=True, exist_ok=True)

    workers: Queue[_Worker] = Queue()
    for _ in range(jobs):
        workers.put(_Worker(results.parent, evaluations, chip))

    def one(file: Path) -> Record:
        if file.stem in known:
            return known[file.stem]
        worker = workers.get()
        try:
            record = worker.run(file, seconds)
        finally:
            workers.put(worker)
        with lock:
            append_lines(results, [json.dumps(asdict(record))])
            say(record)
        return record

    try:
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, files))
    finally:
        while not workers.empty():
            workers.get().close()


def records(results: Path) -> Iterator[Record]:
    """What has been recorded; of several lines of a task the last. Lines that can't be read are left out."""
    found: dict[str, Record] = {}
    for line in read_lines(results):
        try:
            record = Record(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[record.task] = record
    yield from found.values()


class _Worker:
    """A process that runs tasks one after the other; a new one follows it when a task takes too long."""

    def __init__(self, folder: Path, evaluations: int, chip: str) -> None:
        self._arguments = str(folder), evaluations, chip
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def run(self, file: Path, seconds: float) -> Record:
        """The task's record, as far as it came within so many seconds."""
        began = time.monotonic()
        record = Record(file.stem, file.parent.name)
        pipe = self._started()
        pipe.send(str(file))
        while True:
            try:
                found = pipe.recv() if pipe.poll(_WAIT) else None
            except (EOFError, OSError):
                record.reason = record.reason or "its process ended"
                self.close()
                break
            if found == _ENDED:
                break
            if found is not None:
                record = Record(**found)
            if time.monotonic() - began > seconds:
                record.reason = record.reason or f"more than {seconds:.0f} s"
                self.close()
                break
        record.seconds = round(time.monotonic() - began, 1)
        return record

    def _started(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_child, args=(theirs, *self._arguments))
            self._process.start()
            theirs.close()
        return self._pipe

    def close(self) -> None:
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.terminate()
            self._process.join(10)
        self._process = self._pipe = None


def _child(pipe: Connection, folder: str, evaluations: int, chip: str) -> None:
    while True:
        try:
            file = pipe.recv()
        except EOFError:
            return
        record = Record(Path(file).stem, Path(file).parent.name)
        try:
            _run(record, Path(file), Path(folder), evaluations, chip, lambda r=record: pipe.send(asdict(r)))  # type: ignore[misc]
        except AscendOptError as error:
            record.reason = str(error)
        except Exception as error:  # a fault of ours: it belongs into the table, too
            place = traceback.extract_tb(error.__traceback__)[-1]
            record.reason = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        try:
            pipe.send(asdict(record))
            pipe.send(_ENDED)
        except OSError:  # nobody listens any more
            return


def _run(record: Record, file: Path, folder: Path, evaluations: int, chip: str, tell: Callable[[], None]) -> None:
    record.evaluations = evaluations
    module_file = read(file)
    module, inputs = module_file.make()
    record.roofline_us = round(roofline_us(module, inputs, chip), 3)
    generated = generate_file(file)
    target = folder / "operators" / generated.name
    shutil.rmtree(target, ignore_errors=True)
    generated.write(target)
    operator = load_folder(target)
    record.schedule, record.lowered = generated.schedule, True
    record.shapes = " ".join(f"{i.dtype}{list(i.example)}" for i in generated.graph.inputs if i.shape is not None)
    tell()
    with Evaluator(toolkit.find("virtual"), chip, ProcessLimits(run_s=_LAUNCHES)) as evaluator:
        case = example_case(operator, evaluator, generated)
        first = Gate(operator, case, evaluator).build(operator.baseline)
        record.compiled = not isinstance(first.outcome, CompileFailed)
        if not isinstance(first.outcome, Timed):
            record.reason = first.outcome.reason
            return
        record.time_us = round(first.outcome.profile.task_duration_us, 3)
        tell()
        _mkb_check(record, file, generated, operator, case, evaluator)
        tell()
        passing: set[str] | None = None  # by all gates so far
        for sizes in ODD:
            shapes = shapes_at(generated.graph, sizes)
            if shapes is None or sum(math.prod(s) for s in shapes.values()) > _ODD_ELEMENTS:
                continue
            small = example_case(operator, evaluator, generated, shapes)
            gate = Gate(operator, small, evaluator, kinds=_ODD_TRIALS)
            name = " ".join(str(list(s)) for s in shapes.values())
            try:
                record.odd[name] = _judge(record, gate, operator)
            except OperatorError as error:
                if not isinstance(error.__cause__, (RuntimeError, IndexError)):
                    raise
                record.skipped.append(str(error))  # torch itself doesn't take these shapes together
                continue
            if record.odd[name] == "passed":
                passing = _trivial(gate, operator) if passing is None else passing & _trivial(gate, operator)
            tell()
        size = sum(t.nbytes for t in flatten((*case.inputs, *case.outputs)))
        gate = Gate(operator, case, evaluator, kinds=_FEW if size > _HUGE else ())
        record.gate = _judge(record, gate, operator, main=True)
        if record.gate == "passed" and (passing is None or (passing and size <= _LARGE)):
            passing = _trivial(gate, operator) & (passing or set(_TRIVIAL))
        record.trivial = sorted(passing or ())
        tell()
        if evaluations and record.gate == "passed":
            from ..store.cache import Cache
            from ..tuner import tune_case

            tuned = tune_case(
                operator,
                case,
                RunOptions(chip, "virtual", budget=evaluations, workers=1, warm_start=False),
                cache=Cache(folder / "cache"),
                evaluator=evaluator,
            )
            record.tuned_us = round(tuned.best.task_duration_us, 3)


def _judge(record: Record, gate: Gate, operator: Operator, main: bool = False) -> str:
    result = gate.evaluate(operator.baseline)
    if main:
        record.checks = result.checks
    record.skipped += gate.skipped
    if isinstance(result.outcome, Timed):
        return "passed"
    record.reason = record.reason or result.outcome.reason
    return type(result.outcome).__name__


def _mkb_check(
    record: Record, file: Path, generated: Generated, operator: Operator, case: Case, evaluator: Evaluator
) -> None:
    """MultiKernelBench's: its seed, five trials of its inputs, one tolerance for both kinds of error."""
    import torch

    of = read(file)
    torch.manual_seed(1024)
    with torch.no_grad():
        module = of.model(*of.init_inputs())
        torch.manual_seed(1024)
        of.model(*of.init_inputs())  # theirs is built a second time
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    size = sum(t.nbytes for t in flatten((*case.inputs, *case.outputs)))
    record.mkb_trials = 1 if size > _LARGE else _TRIALS
    close = {"1e-2": True, "1e-4": True}
    worst = 0.0
    for trial in range(record.mkb_trials):
        with torch.no_grad():
            given = of.inputs()
            arrays = generated.arrays(state, given)
            saved = tuple(save_array(evaluator.folder / f"mkb-{trial}-{k}", a) for k, a in enumerate(arrays))
            wanted = module(*given)
        found = evaluator.evaluate(
            EvaluateRequest(
                operator,
                operator.baseline,
                case,
                evaluator.chip,
                "virtual",
                (GateTrial(1024 + trial, "normal", saved),),
                measure=False,
                keep_outputs=True,
            )
        )
        results = wanted if isinstance(wanted, (tuple, list)) else [wanted]
        if not found.outputs:
            close = dict.fromkeys(close, False)
            continue
        for want, argument in zip(results, found.outputs[0], strict=True):
            got = torch.from_numpy(np.array(load_arrays(argument))).reshape(want.shape).to(want.dtype)
            if want.dtype == torch.bool:  # torch subtracts none
                got, want = got.float(), want.float()
            worst = max(worst, float((got - want).abs().max())) if want.numel() else worst
            for name in close:
                close[name] &= torch.allclose(want, got, atol=float(name), rtol=float(name))
    record.mkb, record.mkb_error = close, worst


def _trivial(gate: Gate, operator: Operator) -> set[str]:
    """Which outputs that take no work all of the gate's trials would let pass."""
    passing = set(_TRIVIAL)
    trials = [t for t in gate.trials() if not t.again]
    names = [p.name for p in gate.signature.outputs] if gate.signature is not None else []
    for k, trial in enumerate(trials):
        wanted = [load_arrays(a) for a in trial.expected or ()]
        leeways = [load_arrays(a) for a in trial.leeway or (None,) * len(wanted)]
        other = [load_arrays(a) for a in trials[k - 1].expected or ()]
        first = load_arrays(trial.inputs[0])
        for name, want, free, before in zip(names, wanted, leeways, other, strict=True):
            assert isinstance(want, np.ndarray)
            assert isinstance(before, np.ndarray)
            assert isinstance(first, np.ndarray)
            with np.errstate(all="ignore"):
                tried = {
                    "zeros": np.zeros_like(want),
                    "a constant": np.full_like(want, np.float64(before.astype(np.float64)).mean()),
                    "another trial's result": before,
                }
                if first.shape == want.shape:
                    tried["a copy of the first input"] = first.astype(want.dtype)
                else:
                    passing.discard("a copy of the first input")
            for what, got in tried.items():
                limit = tolerance(str(want.dtype), operator.settings)
                if what in passing and compare(name, got, want, limit, None, free)[0] is not None:  # type: ignore[arg-type]
                    passing.discard(what)
    return passing
