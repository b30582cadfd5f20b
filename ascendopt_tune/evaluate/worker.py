"""One request, in a process forked for it: build -> tile -> launch -> check -> what came of it.

This process runs none of the candidate's code. What does (compilers apart: the tiling function and the kernel) runs in
confined processes it forks, and answers through a pipe.
"""

from __future__ import annotations

import functools
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from ..build.host import HostDescription, HostProgram, TilingResult
from ..build.missing import missing_in, where_it_is
from ..build.object import uses_system_workspace
from ..build.storage import variables
from ..build.toolkit import Toolkit
from ..device.launch import SYSTEM_WORKSPACE
from ..errors import CaseError, HostProgramError, HostProgramStuck, KernelCompileError
from ..nouns.case import Argument, AttrValue, flatten
from ..nouns.chip import kept_folder, load_chip
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import CompileFailed, Crashed, Failure, Hazard, LaunchFailed, Outcome, Timed, TimedOut
from ..nouns.profile import Profile
from .build import Builder
from .check import Checks
from .execute import LaunchPlan, execute
from .limits import Confinement, ProcessLimits, Stopped, run_confined
from .outputs import shared_arrays
from .protocol import (
    ArrayArgument,
    ArrayFile,
    EvaluateRequest,
    EvaluationResult,
    GateTrial,
    Launchable,
    Tiled,
)
from .sandbox import system_folders
from .symbolize import demangled
from .tile import describe_and_tile, launchable, names_of, short_soc
from .timeline import FILE_BYTES, add_sources
from .verdict import Failed, least_us, profile_of

T = TypeVar("T")

_TENSOR_COPIES = 4  # of every tensor, in the confined process: mapped input, device, another launch's, comparison


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

    # -- requests -----------------------------------------------------------------------------------------------------

    def describe(self, operator: Operator, pair: Pair, chip: str) -> HostDescription:
        """The operator definition of the pair. Raises HostProgramError, also when the program crashes."""
        program = self._program(operator, pair)
        return self._ask(lambda: program.describe(short_soc(chip)), "the operator definition", program)

    def infer_outputs(
        self, operator: Operator, inputs: tuple[Argument, ...], attrs: tuple[tuple[str, AttrValue], ...]
    ) -> tuple[Argument, ...]:
        """The outputs by the baseline's own shape function. Raises HostProgramError or CaseError."""
        program = self._program(operator, operator.baseline)
        return tuple(self._ask(lambda: program.infer_shape(inputs, dict(attrs)), "the shape function", program))

    def tile(self, request: EvaluateRequest) -> Tiled:
        """The host program's answer. Raises HostProgramError when it has none."""
        program = self._program(request.operator, request.pair)
        task = functools.partial(describe_and_tile, program, request)
        return self._ask(task, "the tiling function", program, request.trials)

    def evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        """Everything; what fails becomes the outcome.

        Raises:
            CaseError: the case doesn't fit the operator (for a candidate's own definition: an outcome).
        """
        result = EvaluationResult(LaunchFailed("not evaluated"))
        try:
            return self._evaluate(request)
        except Failed as failed:
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
        description, tiling = launchable(tiled) if tiled is not None else (None, None)
        signature = description.signature if description is not None else request.signature
        binary, entry = self._kernel(request, description, tiling)
        kept_variables = self._variables(binary, tiled, request)
        direct = request.operator.direct
        block_dim = tiling.block_dim if tiling is not None else direct.block_dim if direct is not None else 0
        bare = _bare(request, tiling, binary)
        folder = self.work / "launches"
        folder.mkdir()
        plan = LaunchPlan(
            toolkit=self.toolkit,
            chip=request.chip,
            operator=request.operator,
            case=request.case,
            names=names_of(request, signature),
            launchable=Launchable(str(binary), entry, tiling, block_dim),
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
        again = self.toolkit.kind == "virtual" and any(t.again for t in request.trials)
        checks = Checks(request, plan, self._foreign, kept_in=self.work, again=again)

        def hear(trial: dict[str, Any]) -> None:
            self._stage("check", lambda: checks.hear(trial))

        try:
            measured = self._stage("execute", lambda: self._execute(plan, hear, request.run_s))
        finally:
            done = checks.done
            self.knows_expected |= checks.knows_expected
            self._printed = done[0].get("printed", "") if done else ""
            self.timings["execute"] -= self.timings.get("check", 0.0)
            for i, name in enumerate(("launch", "launch_cpu")):
                self.timings[name] = sum(t["launch_s"][i] for t in done)
            if request.trace and add_sources(plan.timeline, self.work / "trace.json", binary, self._foreign):
                self._trace_path = str(self.work / "trace.json")
            shutil.rmtree(folder, ignore_errors=True)
        if request.measure and request.trials:
            outcome: Outcome = Timed(profile_of({"trials": done, "measured": measured}, block_dim), checks.count)
        else:
            outcome = Timed(Profile(0.0, block_dim=block_dim), checks.count)  # launched, not measured
        _check_time(outcome, request)
        return EvaluationResult(
            outcome=outcome,
            outputs=tuple(checks.kept),
            tiling=tiling,
            block_dim=block_dim,
            entry=entry,
            timings_s=self.timings,
            reused=tuple(self._builder.reused),
            checks=checks.count,
            habits=checks.habits(kept_variables, bare),
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
            raise Failed(CompileFailed(error.message, str(error), "tiling")) from None
        if isinstance(program, Stopped):
            raise Failed(CompileFailed(program.reason, "", "tiling"))
        how = self._host_confinement(program, request.trials)
        task = functools.partial(describe_and_tile, program, request)
        try:
            answer = self._stage("tiling", lambda: run_confined(task, how, "the tiling function"))
        except HostProgramError as error:
            raise Failed(LaunchFailed(f"the tiling function refused the case: {error.message}")) from None
        if isinstance(answer, Stopped):
            raise Failed(_stopped(answer))
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
            message, header = error.message, missing_in(error.message)
            if header and request.pair == request.operator.baseline:  # the user's own, who may have it elsewhere
                message = f"{message.rstrip()} {where_it_is(request.operator.root, header)}"
            raise Failed(CompileFailed(message, error.log, "kernel")) from None
        if isinstance(built, Stopped):
            raise Failed(CompileFailed(built.reason, "", "kernel"))
        return built

    def _variables(self, binary: Path, tiled: Tiled | None, request: EvaluateRequest) -> tuple[str, ...]:
        """Variables that keep a value from one call to the next; raises Failed for those the baseline hasn't."""
        own = {v.name: f"{demangled(v.name)} ({v.size} bytes)" for v in variables(binary.read_bytes())}
        changed = {name: demangled(name) for name in (tiled.variables if tiled is not None else ())}
        if request.allowed is not None:
            for found, where in ((own, "the kernel"), (changed, "the tiling function, whose calls change it")):
                more = [text for name, text in found.items() if name not in request.allowed.variables]
                if more:
                    text = f"a static or global variable of {where}: {', '.join(more[:5])}"
                    why = "what it holds goes from launch to launch, and from core to core in no order"
                    raise Failed(Hazard(f"{text}: {why}"))
        return (*own, *changed)

    def _execute(
        self, plan: LaunchPlan, hear: Callable[[dict[str, Any]], None], run_s: float | None
    ) -> dict[str, float] | None:
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
        how = replace(how, timeout_s=min(how.timeout_s, run_s or how.timeout_s))
        answer = run_confined(functools.partial(execute, plan), how, "the kernel", hear)
        if isinstance(answer, Stopped):
            raise Failed(_stopped(answer))
        return dict(answer) if answer is not None else None

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
                raise Failed(CompileFailed(f"the source path {path} leads out of the operator's folder.", "", part))


def _bare(request: EvaluateRequest, tiling: TilingResult | None, binary: Path) -> bool:
    """Whether the tiling function asks for less than the system's part of the workspace.

    Raises Failed where the original doesn't and the kernel needs that part: on the device it would have other memory.
    """
    bare = tiling is not None and tiling.workspace_bytes < SYSTEM_WORKSPACE
    if bare and request.allowed is not None and not request.allowed.bare and uses_system_workspace(binary.read_bytes()):
        text = f"the kernel needs the system's part of the workspace, {SYSTEM_WORKSPACE} bytes, and the tiling function"
        raise Failed(LaunchFailed(f"{text} asks for {tiling.workspace_bytes if tiling is not None else 0} in all"))
    return bare


def _check_time(outcome: Outcome, request: EvaluateRequest) -> None:
    """Raises Failed for a time in which the chip can't even write the outputs."""
    if not isinstance(outcome, Timed) or not request.measure or not request.trials:
        return
    written = request.case.outputs[: len(request.case.outputs) - len(request.operator.in_place)]
    count = sum(t.nbytes for t in flatten(written))
    least = least_us(load_chip(request.chip), count)
    if outcome.profile.task_duration_us < least:
        raise Failed(
            LaunchFailed(
                f"a time of {outcome.profile.task_duration_us:.3g} us is impossible: an empty launch, and writing the "
                f"{count} bytes of the outputs at the chip's largest bandwidth, take {least:.3g} us"
            )
        )


def _stopped(stopped: Stopped) -> Failure:
    return TimedOut(stopped.reason) if stopped.kind == "timeout" else Crashed(stopped.reason)


def _files(argument: ArrayArgument) -> tuple[ArrayFile, ...]:
    if argument is None:
        return ()
    return argument if isinstance(argument, tuple) else (argument,)


def _input_files(trials: Sequence[GateTrial]) -> list[Path]:
    return [Path(f.path) for t in trials for a in t.inputs for f in _files(a)]
