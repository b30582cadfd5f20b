"""One request, in a process forked for it: build -> tile -> launch -> check -> what came of it.

This process runs none of the candidate's code. What does (compilers apart: the tiling function and the kernel) runs in
confined processes it forks, and answers through a pipe.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from ..build.host import HostDescription, HostProgram, TilingResult
from ..build.object import uses_system_workspace
from ..build.storage import variables
from ..build.toolkit import Toolkit
from ..device.launch import SYSTEM_WORKSPACE, Arrays, as_tuple, same_bytes
from ..errors import CaseError, HostProgramError, HostProgramStuck, KernelCompileError
from ..nouns.case import Argument, AttrValue, flatten
from ..nouns.chip import kept_folder, load_chip
from ..nouns.operator import Operator, Pair, Signature
from ..nouns.outcome import CompileFailed, Crashed, Failure, Hazard, LaunchFailed, Outcome, Timed, TimedOut, WrongResult
from ..nouns.profile import Profile
from ..sources.arguments import Array, dtype_name
from .accuracy import Errors, ErrorsSoFar, too_inaccurate
from .build import Builder
from .compare import compare, drift, tolerance, too_much_drift
from .execute import LaunchPlan, execute
from .limits import Confinement, ProcessLimits, Stopped, run_confined
from .outputs import shared_arrays
from .protocol import (
    ArrayArgument,
    ArrayFile,
    EvaluateRequest,
    EvaluationResult,
    GateTrial,
    Habits,
    Launchable,
    Tiled,
    load_arrays,
    save_array,
)
from .sandbox import system_folders
from .symbolize import demangled
from .timeline import FILE_BYTES, add_sources
from .verdict import failure_of, least_us, profile_of, slack_of

T = TypeVar("T")

_TENSOR_COPIES = 4  # of every tensor, in the confined process: mapped input, device, another launch's, comparison
_INPUT_LIMIT = 1 << 20  # bytes of value-depend inputs that are read for the tiling function


class _Failed(Exception):
    """Ends an evaluation with an outcome that is not Timed."""

    def __init__(self, outcome: Failure, hazards: Sequence[Mapping[str, object]] = ()) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome
        self.hazards = tuple(hazards)


@dataclass
class Worker:
    """Serves requests of one toolkit. ``work`` is an empty folder for this request alone."""

    toolkit: Toolkit
    limits: ProcessLimits
    build_dir: Path
    work: Path
    timings: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("compile", "tiling"), 0.0))

    #: Whether this process may still hold values that are expected: no other candidate's may be forked from it then.
    knows_expected: bool = False

    def __post_init__(self) -> None:
        self._builder = Builder(self.toolkit, self.build_dir, self.limits, self.work)
        self._trace_path: str | None = None
        self._printed = ""
        self._first: list[Array] = []

    # -- requests -----------------------------------------------------------------------------------------------------

    def describe(self, operator: Operator, pair: Pair, chip: str) -> HostDescription:
        """The operator definition of the pair. Raises HostProgramError, also when the program crashes."""
        program = self._program(operator, pair)
        return self._ask(lambda: program.describe(_short_soc(chip)), "the operator definition", program)

    def infer_outputs(
        self, operator: Operator, inputs: tuple[Argument, ...], attrs: tuple[tuple[str, AttrValue], ...]
    ) -> tuple[Argument, ...]:
        """The outputs by the baseline's own shape function. Raises HostProgramError or CaseError."""
        program = self._program(operator, operator.baseline)
        return tuple(self._ask(lambda: program.infer_shape(inputs, dict(attrs)), "the shape function", program))

    def tile(self, request: EvaluateRequest) -> Tiled:
        """The host program's answer. Raises HostProgramError when it has none."""
        program = self._program(request.operator, request.pair)
        task = functools.partial(_describe_and_tile, program, request)
        return self._ask(task, "the tiling function", program, request.trials)

    def evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        """Everything; what fails becomes the outcome.

        Raises:
            CaseError: the case doesn't fit the operator (for a candidate's own definition: an outcome).
        """
        result = EvaluationResult(LaunchFailed("not evaluated"))
        try:
            return self._evaluate(request)
        except _Failed as failed:
            result = replace(result, outcome=failed.outcome, hazards=failed.hazards)
        except CaseError as error:
            if request.pair.hash == request.operator.baseline.hash:
                raise
            result = replace(result, outcome=LaunchFailed(str(error)))
        return replace(
            result,
            timings_s=self.timings,
            reused=tuple(self._builder.reused),
            trace_path=self._trace_path,
            printed=self._printed,
        )

    # -- stages -------------------------------------------------------------------------------------------------------

    def _evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        _check_paths(request.pair)
        tiled = self._tile(request)
        description, tiling = _launchable(tiled) if tiled is not None else (None, None)
        signature = description.signature if description is not None else request.signature
        binary, entry = self._kernel(request, description, tiling)
        kept_variables = self._variables(binary, tiled, request)
        direct = request.operator.direct
        block_dim = tiling.block_dim if tiling is not None else direct.block_dim if direct is not None else 0
        names = _names(request, signature)
        launchable = Launchable(str(binary), entry, tiling, block_dim)
        bare = _bare(request, tiling, binary)
        folder = self.work / "launches"
        folder.mkdir()
        plan = LaunchPlan(
            toolkit=self.toolkit,
            chip=request.chip,
            operator=request.operator,
            case=request.case,
            names=names,
            launchable=launchable,
            trials=request.trials,
            measure=request.measure,
            incumbent=request.incumbent,
            folder=folder,
            outputs=shared_arrays(request.case.outputs) if request.trials else (),
            trace=request.trace,
            clocks=request.clocks if request.measure else (),
            state=request.state,
            bare=request.allowed is None or request.allowed.bare,
        )
        done: list[dict[str, Any]] = []
        kept: list[tuple[ArrayArgument, ...]] = []
        checks = 0
        repeats = True
        seen = ErrorsSoFar()
        parameters = (*names[0], *names[1][: len(names[1]) - len(request.operator.in_place)], "the workspace", "tiling")

        def hear(trial: dict[str, Any]) -> None:
            nonlocal checks, repeats
            trial["names"] = parameters if direct is None else [name for name, _ in direct.parameters]
            if trial.get("timed"):
                self._check(request, plan, 0, trial, names[1], seen)
                return
            i = len(done)
            done.append(trial)
            if i == 0:
                self._printed = trial.get("printed", "")
            checks += self._stage("check", lambda: self._check(request, plan, i, trial, names[1], seen))
            if self.toolkit.kind == "virtual" and any(t.again for t in request.trials):
                repeats &= self._stage("check", lambda: self._repeated(request, plan, i))
            if request.keep_outputs:
                kept.append(tuple(_save(self.work / f"output-{i}.{k}", a) for k, a in enumerate(plan.outputs)))

        try:
            measured = self._stage("execute", lambda: self._execute(plan, hear))
        finally:
            self.timings["execute"] -= self.timings.get("check", 0.0)
            for i, name in enumerate(("launch", "launch_cpu")):
                self.timings[name] = sum(t["launch_s"][i] for t in done)
            if request.trace and add_sources(plan.timeline, self.work / "trace.json", binary, self._foreign):
                self._trace_path = str(self.work / "trace.json")
            shutil.rmtree(folder, ignore_errors=True)
        if request.measure and request.trials:
            outcome: Outcome = Timed(profile_of({"trials": done, "measured": measured}, block_dim), checks)
        else:
            outcome = Timed(Profile(0.0, block_dim=block_dim), checks)  # launched, not measured
        _check_time(outcome, request)
        return EvaluationResult(
            outcome=outcome,
            outputs=tuple(kept),
            tiling=tiling,
            block_dim=block_dim,
            entry=entry,
            timings_s=self.timings,
            reused=tuple(self._builder.reused),
            checks=checks,
            habits=replace(_habits(done, seen.drifts, kept_variables, repeats), bare=bare),
            binary_path=str(binary),
            tiling_path=self._keep_tiling(tiling),
            trace_path=self._trace_path,
            replayed=tuple(done[0].get("replayed", ())) if done else (),
            printed=self._printed,
        )

    def _stage(self, name: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        try:
            return work()
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - started

    def _tile(self, request: EvaluateRequest) -> Tiled | None:
        if request.operator.direct is not None:
            return None
        if request.tiled is not None:
            self._builder.reused.append("tiling")
            return request.tiled
        try:
            program = self._stage("compile", lambda: self._builder.host(request.operator, request.pair))
        except HostProgramError as error:
            raise _Failed(CompileFailed(error.message, str(error), "tiling")) from None
        if isinstance(program, Stopped):
            raise _Failed(CompileFailed(program.reason, "", "tiling"))
        how = self._host_confinement(program, request.trials)
        task = functools.partial(_describe_and_tile, program, request)
        try:
            answer = self._stage("tiling", lambda: run_confined(task, how, "the tiling function"))
        except HostProgramError as error:
            raise _Failed(LaunchFailed(f"the tiling function refused the case: {error.message}")) from None
        if isinstance(answer, Stopped):
            raise _Failed(_stopped(answer))
        tiled: Tiled = answer
        return tiled

    def _kernel(
        self, request: EvaluateRequest, description: HostDescription | None, tiling: TilingResult | None
    ) -> tuple[Path, str]:
        signature = description.signature if description is not None else None
        try:
            built = self._stage(
                "compile",
                lambda: self._builder.kernel(
                    request.operator, request.pair, signature, request.case, tiling, description
                ),
            )
        except KernelCompileError as error:
            raise _Failed(CompileFailed(error.message, error.log, "kernel")) from None
        if isinstance(built, Stopped):
            raise _Failed(CompileFailed(built.reason, "", "kernel"))
        return built

    def _variables(self, binary: Path, tiled: Tiled | None, request: EvaluateRequest) -> tuple[str, ...]:
        """Variables that keep a value from one call to the next; raises _Failed for those the baseline hasn't."""
        own = {v.name: f"{demangled(v.name)} ({v.size} bytes)" for v in variables(binary.read_bytes())}
        changed = {name: demangled(name) for name in (tiled.variables if tiled is not None else ())}
        if request.allowed is not None:
            for found, where in ((own, "the kernel"), (changed, "the tiling function, whose calls change it")):
                more = [text for name, text in found.items() if name not in request.allowed.variables]
                if more:
                    text = f"a static or global variable of {where}: {', '.join(more[:5])}"
                    why = "what it holds goes from launch to launch, and from core to core in no order"
                    raise _Failed(Hazard(f"{text}: {why}"))
        return (*own, *changed)

    def _repeated(self, request: EvaluateRequest, plan: LaunchPlan, number: int) -> bool:
        """Whether the outputs of trial ``number``, where it repeats the first one, are that one's bits.

        Raises _Failed where the baseline's are and these aren't.
        """
        outputs = [a for arrays in plan.outputs for a in as_tuple(arrays)]
        if number == 0:
            self._first = [a.copy() for a in outputs]
        if not request.trials[number].again or all(map(same_bytes, self._first, outputs)):
            return True
        if request.allowed is None or not request.allowed.repeats:
            return False
        text = "launched again on the same inputs, at other addresses, the kernel leaves other results: something"
        raise _Failed(Hazard(f"{text} decides them that nobody wrote in this launch (its stack, an earlier launch)"))

    def _execute(self, plan: LaunchPlan, hear: Callable[[dict[str, Any]], None]) -> dict[str, float] | None:
        """Launches; ``hear`` is given every trial as it ends (see execute.execute)."""
        tensors = sum(t.nbytes for t in flatten((*plan.case.inputs, *plan.case.outputs)))
        binaries = [Path(plan.launchable.binary_path)]
        if plan.incumbent is not None:
            binaries.append(Path(plan.incumbent.binary_path))
        how = self._run_confinement(
            plan.folder,
            [*binaries, *_input_files(plan.trials)],
            memory=_TENSOR_COPIES * tensors * max(1, len(plan.trials)),
            file_bytes=FILE_BYTES if plan.trace else 0,
        )
        answer = run_confined(functools.partial(execute, plan), how, "the kernel", hear)
        if isinstance(answer, Stopped):
            raise _Failed(_stopped(answer))
        return dict(answer) if answer is not None else None

    def _check(
        self,
        request: EvaluateRequest,
        plan: LaunchPlan,
        number: int,
        done: Mapping[str, Any],
        outputs: Sequence[str],
        seen: ErrorsSoFar,
    ) -> int:
        """Number of outputs compared of trial ``number`` (from 0), noted in ``seen``; raises _Failed when it doesn't
        hold."""
        trial = request.trials[number]
        label = f"trial {number + 1} of {len(request.trials)}: {trial}"
        failure = failure_of(done, Path(plan.launchable.binary_path), self._foreign, label, request.allowed)
        if failure is not None:
            raise _Failed(failure, getattr(failure, "reports", ()))
        if trial.expected is None:
            return 0
        checks = 0
        limits = dict(trial.limits)
        leeways = map(load_arrays, trial.leeway or (None,) * len(trial.expected))
        expectations = map(load_arrays, trial.expected)
        for name, got, expected, leeway in zip(outputs, plan.outputs, expectations, leeways, strict=True):
            listed = isinstance(expected, tuple)
            free = as_tuple(leeway) or (None,) * len(as_tuple(expected))
            for k, (a, b, more) in enumerate(zip(as_tuple(got), as_tuple(expected), free, strict=True)):
                checks += 1
                full = f"{name}.{k}" if listed else name
                limit = limits.get(full)
                if same_bytes(a, b):
                    seen.note(name, (number, k), Errors(), limit)
                    continue
                self.knows_expected = True  # in freed memory
                allowed = tolerance(dtype_name(b.dtype), request.operator.settings)
                there = functools.partial(_inputs_at, plan.names[0], trial, k, b.shape)
                text, errors = compare(full, a, b, allowed, trial.poison, more, there)
                seen.note(name, (number, k), errors, limit)
                if text is None and limit is not None and request.allowed is not None:
                    text = too_inaccurate(full, errors, limit.most)
                seen.drifts[full] = max(seen.drifts.get(full, 0.0), drift(a, b, more), key=abs)
                if text is None and request.allowed is not None:
                    text = too_much_drift(full, seen.drifts[full], request.allowed.drift.get(full, 0.0))
                if text is not None:
                    raise _Failed(WrongResult(f"{text} [{label}]"))
            if number == len(request.trials) - 1 and request.allowed is not None and as_tuple(expected):
                text = seen.together(name, dtype_name(as_tuple(expected)[0].dtype))
                if text is not None:
                    raise _Failed(WrongResult(text))
        return checks

    @functools.cached_property
    def _foreign(self) -> list[Path]:
        """Folders whose source lines are not the user's."""
        return [self.toolkit.include, self.toolkit.include.resolve(), self.work, self.work.resolve()]

    def _keep_tiling(self, tiling: TilingResult | None) -> str | None:
        if tiling is None:
            return None
        path = self.work / "tiling.bin"
        path.write_bytes(tiling.data)
        return str(path)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _program(self, operator: Operator, pair: Pair) -> HostProgram:
        if operator.direct is not None:
            raise HostProgramError(f"{operator.name} is a kernel for direct launch: it has no host program.")
        program = self._builder.host(operator, pair)
        if isinstance(program, Stopped):
            raise HostProgramError(program.reason)
        return program

    def _ask(self, task: Callable[[], T], what: str, program: HostProgram, trials: Sequence[GateTrial] = ()) -> T:
        answer = run_confined(task, self._host_confinement(program, trials), what)
        if isinstance(answer, Stopped):
            kind = HostProgramStuck if answer.kind == "timeout" else HostProgramError
            raise kind(answer.reason, "The host program has to be repaired first.")
        value: T = answer
        return value

    def _host_confinement(self, program: HostProgram, trials: Sequence[GateTrial]) -> Confinement:
        """A tiling function may depend on the values of inputs: those of the first trial."""
        folder = self.work / "host"
        folder.mkdir(exist_ok=True)
        read = [program.path.parent, *_input_files(trials[:1])]
        return replace(self._run_confinement(folder, read), read_only=self.toolkit.kind == "virtual")

    def _run_confinement(self, folder: Path, read: Sequence[Path], memory: int = 0, file_bytes: int = 0) -> Confinement:
        device = self.toolkit.kind != "virtual"
        system = [Path("/")] if device else system_folders()  # a driver reads where it likes
        return Confinement(
            folder=folder,
            timeout_s=self.limits.run_s,
            memory_bytes=self.limits.memory_bytes + memory,
            open_files=self.limits.open_files,
            file_bytes=file_bytes,
            read=[*system, self.toolkit.prefix, self.build_dir, kept_folder(), *read],
            write=[Path("/dev") if device else Path(os.devnull)],
            device=device,
        )


def _check_paths(pair: Pair) -> None:
    """A candidate's files have to stay below the folder they are written to."""
    for part, files in (("tiling", pair.tiling), ("kernel", pair.kernel)):
        for path in map(PurePosixPath, files):
            if path.is_absolute() or ".." in path.parts:
                raise _Failed(CompileFailed(f"the source path {path} leads out of the operator's folder.", "", part))


def _launchable(tiled: Tiled) -> tuple[HostDescription, TilingResult]:
    """Both answers; raises _Failed for a launch that can't be."""
    block_dim = tiled.result.block_dim
    if not 1 <= block_dim <= 65535:
        raise _Failed(LaunchFailed(f"the tiling function set block dim {block_dim}; it has to be 1..65535"))
    return tiled.description, tiled.result


def _describe_and_tile(program: HostProgram, request: EvaluateRequest) -> Tiled:
    chip = load_chip(request.chip)
    description = program.describe(_short_soc(request.chip))
    values: dict[int, Array] = {}
    for i, param in enumerate(description.signature.inputs):
        given = request.trials[0].inputs[i] if request.trials else None
        if param.value_depend and isinstance(given, ArrayFile):
            array = given.load()
            if array.nbytes <= _INPUT_LIMIT:
                values[i] = np.array(array)
    case = replace(request.case, outputs=request.case.outputs[: len(description.signature.outputs)])
    tiling = program.tiling(case, chip, values)
    changed = _changed_by_a_call(program, lambda: program.tiling(case, chip, values), tiling)
    initial = request.operator.settings.get("initial", {})
    if initial:
        defined = itertools.zip_longest(description.signature.outputs, tiling.initial_values)
        tiling = replace(tiling, initial_values=tuple(initial.get(p.name, value) for p, value in defined))
    return Tiled(description, tiling, program.ran(), changed)


def _changed_by_a_call(program: HostProgram, call: Callable[[], TilingResult], first: TilingResult) -> tuple[str, ...]:
    """Static variables that another call of the tiling function changes, or what else it decides the second time."""
    before = program.state()
    try:
        same = call() == first
    except HostProgramError:
        same = False
    after = program.state()
    changed = tuple(name for name in before if before[name] != after[name])
    return changed if changed or same else ("what an earlier call left",)


def _habits(
    trials: Sequence[Mapping[str, Any]], drifts: Mapping[str, float], kept: tuple[str, ...], repeats: bool
) -> Habits:
    slack: dict[str, int] = {}
    for trial in trials:
        for place, count in slack_of(trial["report"], trial["names"]).items():
            slack[place] = max(slack.get(place, 0), count)
    return Habits(
        relies_on=tuple(sorted({r for t in trials for r in t["report"].get("relies_on", ())})),
        slack=slack,
        drift=drifts,
        variables=kept,
        repeats=repeats,
    )


def _bare(request: EvaluateRequest, tiling: TilingResult | None, binary: Path) -> bool:
    """Whether the tiling function asks for less than the system's part of the workspace.

    Raises _Failed where the original doesn't and the kernel needs that part: on the device it would have other memory.
    """
    bare = tiling is not None and tiling.workspace_bytes < SYSTEM_WORKSPACE
    if bare and request.allowed is not None and not request.allowed.bare and uses_system_workspace(binary.read_bytes()):
        text = f"the kernel needs the system's part of the workspace, {SYSTEM_WORKSPACE} bytes, and the tiling function"
        raise _Failed(LaunchFailed(f"{text} asks for {tiling.workspace_bytes if tiling is not None else 0} in all"))
    return bare


def _check_time(outcome: Outcome, request: EvaluateRequest) -> None:
    """Raises _Failed for a time in which the chip can't even write the outputs."""
    if not isinstance(outcome, Timed) or not request.measure or not request.trials:
        return
    written = request.case.outputs[: len(request.case.outputs) - len(request.operator.in_place)]
    count = sum(t.nbytes for t in flatten(written))
    least = least_us(load_chip(request.chip), count)
    if outcome.profile.task_duration_us < least:
        raise _Failed(
            LaunchFailed(
                f"a time of {outcome.profile.task_duration_us:.3g} us is impossible: an empty launch, and writing the "
                f"{count} bytes of the outputs at the chip's largest bandwidth, take {least:.3g} us"
            )
        )


def _short_soc(chip: str) -> str:
    return str(load_chip(chip).values.get("chip.short_soc", "ascend910b"))


def _names(request: EvaluateRequest, signature: Signature | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of inputs and outputs. Without signature: a direct kernel's pointers, inputs before outputs."""
    if signature is not None:
        outputs = (*(p.name for p in signature.outputs), *request.operator.in_place)
        return tuple(p.name for p in signature.inputs), outputs
    case, direct = request.case, request.operator.direct
    attrs = dict(case.attrs)
    pointers = [n for n, _ in direct.parameters if n not in attrs and n != "workspace"] if direct is not None else []
    if len(pointers) != len(case.inputs) + len(case.outputs):
        raise CaseError(
            f"{request.operator.entry} has the tensor parameters {', '.join(pointers)}; the case has "
            f"{len(case.inputs)} inputs and {len(case.outputs)} outputs.",
            "Name every tensor parameter once, as input or output.",
        )
    return tuple(pointers[: len(case.inputs)]), tuple(pointers[len(case.inputs) :])


def _stopped(stopped: Stopped) -> Failure:
    return TimedOut(stopped.reason) if stopped.kind == "timeout" else Crashed(stopped.reason)


def _save(path: Path, arrays: Arrays) -> ArrayArgument:
    if arrays is None:
        return None
    if isinstance(arrays, tuple):
        return tuple(save_array(path.with_name(f"{path.name}.{i}"), a) for i, a in enumerate(arrays))
    return save_array(path, arrays)


def _inputs_at(
    names: Sequence[str], trial: GateTrial, number: int, shape: tuple[int, ...], index: tuple[int, ...]
) -> str:
    """What inputs of an output's shape hold where that is wrong: ``; there x is -32768``. ``number``: within lists."""
    found = []
    for name, argument in zip(names, map(load_arrays, trial.inputs), strict=False):
        listed = isinstance(argument, tuple)
        array = as_tuple(argument)[number] if listed and number < len(as_tuple(argument)) else argument
        if isinstance(array, np.ndarray) and array.shape == shape:
            found.append(f"{name}.{number} is {array[index]}" if listed else f"{name} is {array[index]}")
    return f"; there {', '.join(found[:4])}" if found else ""


def _files(argument: ArrayArgument) -> tuple[ArrayFile, ...]:
    if argument is None:
        return ()
    return argument if isinstance(argument, tuple) else (argument,)


def _input_files(trials: Sequence[GateTrial]) -> list[Path]:
    return [Path(f.path) for t in trials for a in t.inputs for f in _files(a)]
