"""The launches of one evaluation. Runs in the confined process, beside the candidate's own code."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..build.toolkit import Toolkit
from ..device.acl import Acl
from ..device.launch import Arrays, DeviceLaunch
from ..device.options import LaunchOptions
from ..errors import CaseError, DeviceError
from ..nouns.case import AttrValue, Case
from ..nouns.chip import WARM, load_chip
from ..nouns.operator import Operator
from ..sources.by_value import ByValue, by_value, takes_value
from .protocol import GateTrial, Launchable, load_arrays

_FILL, _OTHER_FILL = 0xFF, 0x4B  # bytes of local memory that nobody wrote: NaN and -1; then large and positive
# For the launch that repeats the first one (0.01 as a float): of local memory, and of a kernel's stack, else 0.
_AGAIN_FILL, _AGAIN_STACK = 0x3C, 0x4D
# Bytes by which the repeated launch's tensors begin behind a multiple of 512, as those that are a part of another do.
_SHIFT = 32
_SPACER = 4096 + 512  # bytes that are taken between two launches, so that addresses differ
_FFLUSH = ctypes.CDLL(None).fflush
_PRINTED_BYTES = 1 << 16  # of what a kernel prints in a launch that are kept
_WARM_UP, _REPEATS = 3, 21  # launches before and in a measurement with events

#: In ``relies_on``: what a kernel decides by it, launches with other values there need not show.
_LOADS = "bytes of {} that nobody has written, loaded by the scalar unit"

Run = Callable[..., None]  # launches the candidate, with ``options``


@dataclass(frozen=True)
class LaunchPlan:
    """What to launch. ``names``: (input names, output names) in the case's order.

    ``outputs``: where a trial leaves its outputs (see outputs.py), until the next one. ``bare``: whether the
    tiling function may leave the system's part of the workspace out (protocol.Habits).
    """

    toolkit: Toolkit
    chip: str
    operator: Operator
    case: Case
    names: tuple[tuple[str, ...], tuple[str, ...]]
    launchable: Launchable
    trials: tuple[GateTrial, ...]
    measure: bool
    incumbent: Launchable | None
    folder: Path
    outputs: tuple[Arrays, ...]
    trace: bool = False
    clocks: tuple[Mapping[str, float], ...] = ()
    state: str = WARM
    bare: bool = True

    @property
    def timeline(self) -> Path:
        """Where the timeline of the first trial is written, with ``trace``."""
        return self.folder / "timeline.json"


def execute(plan: LaunchPlan, tell: Callable[[dict[str, Any]], None]) -> dict[str, float] | None:
    """Launches every trial, up to the first that fails; measures on the first one.

    Args:
        tell: told of every trial, with its outputs in ``plan.outputs``: ``report``, ``error`` ("" or the device's
            text), ``damage``, ``launch_s`` (wall clock, processor time), ``printed`` (by the kernel), ``replayed`` (the
            first, with ``clocks``); and, with ``timed``, of what the launches left that events timed.

    Returns:
        The event measurement on a real NPU, else None.
    """
    acl = Acl(plan.toolkit)
    try:
        loaded = acl.load(Path(plan.launchable.binary_path).read_bytes())
    except DeviceError as error:  # more than the process may hold
        tell(_unlaunched(error))
        return None
    with loaded as binary:
        passed = _every(acl, binary.function(plan.launchable.entry), plan, tell)
    return measure(plan, tell) if passed and plan.measure and not acl.virtual and plan.trials else None


def _unlaunched(error: DeviceError) -> dict[str, Any]:
    """What is told of a trial that came to no launch."""
    return {"report": {}, "error": str(error), "damage": [], "launch_s": (0.0, 0.0)}


def _every(acl: Acl, function: int, plan: LaunchPlan, tell: Callable[[dict[str, Any]], None]) -> bool:
    """Every trial, up to the first that fails; whether none did."""
    chip = load_chip(plan.chip).option
    candidate = plan.launchable
    with ExitStack() as spacers:
        for i, trial in enumerate(plan.trials):
            options = LaunchOptions(
                chip=chip,
                timing=plan.measure and i == 0,
                trace=plan.trace and i == 0,
                state=plan.state,
                fill=_AGAIN_FILL if trial.again else _FILL,
                stack=_AGAIN_STACK if trial.again else 0,
            )
            inputs = [load_arrays(a) for a in trial.inputs]
            clocks = plan.clocks if i == 0 else ()
            try:
                opened = _launch(acl, plan, candidate, _SHIFT if trial.again else 0)
            except DeviceError as error:  # a workspace that there is no memory for
                tell(_unlaunched(error))
                return False
            with opened as launch:
                run = partial(launch.run, function, candidate.block_dim)
                done = _one(acl, launch, run, options, inputs, trial, plan.outputs, clocks)
            spacers.callback(acl.free, acl.malloc(_SPACER << i % 8))
            if plan.trace and i == 0:
                acl.write_trace(plan.timeline)
            tell(done)
            if done["error"] or done["damage"]:
                return False
    return True


def _one(
    acl: Acl,
    launch: DeviceLaunch,
    run: Run,
    options: LaunchOptions,
    inputs: Sequence[Arrays],
    trial: GateTrial,
    outputs: tuple[Arrays, ...],
    clocks: Sequence[Mapping[str, float]],
) -> dict[str, Any]:
    launch.load(inputs, trial.poison)
    error = ""
    before = os.fstat(1).st_size
    started, worked = time.perf_counter(), _processor_time()
    try:
        run(options=options)
        acl.synchronize()
    except DeviceError as e:
        error = str(e)
    took = time.perf_counter() - started, _processor_time() - worked
    result: dict[str, Any] = {"report": acl.report(), "error": error, "damage": [], "launch_s": took}
    result["printed"] = _printed(before)
    if not error:
        if clocks:  # before another launch
            result["replayed"] = acl.replay(clocks)
        result["damage"] = launch.damage(inputs)
        launch.read(outputs)
        if _only_cores_write_to_the_same(result["report"]):
            result["report"]["hazards"] = _hazards_of_other_values(acl, launch, run, options, inputs, trial)
        garbage = (acl, launch, run, options, inputs, trial.poison, outputs)
        unwritten = result["report"].get("unwritten")
        if unwritten and _same_with_other_garbage(*garbage):
            loaded = sorted({_LOADS.format(u["memory"]) for u in unwritten if _loads_it_itself(u)})
            result["report"]["relies_on"] = [*result["report"].get("relies_on", ()), *loaded]
            result["report"]["unwritten"] = []
    return result


def _processor_time() -> float:
    """Seconds of this process. Not ``time.process_time``: under a limit on processor time that clock stands still
    between ticks, and what a launch took would be counted to whatever waits next."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _printed(start: int) -> str:
    """What has come to standard output, a file that only this process writes, since it had ``start`` bytes."""
    _FFLUSH(None)
    more = os.fstat(1).st_size - start - _PRINTED_BYTES
    text = os.pread(1, _PRINTED_BYTES, start).decode(errors="replace")
    return f"{text}\n... and {more} bytes more\n" if more > 0 else text


def _only_cores_write_to_the_same(report: Mapping[str, Any]) -> bool:
    """Whether all hazards are writes of two cores to the same global memory."""
    pairs = [(h["first"], h["second"]) for h in report.get("hazards", ())]  # a device reports nothing
    return bool(pairs) and all(a["core"] != b["core"] and a["access"] == b["access"] == "write" for a, b in pairs)


def _hazards_of_other_values(
    acl: Acl, launch: DeviceLaunch, run: Run, options: LaunchOptions, inputs: Sequence[Arrays], trial: GateTrial
) -> list[dict[str, Any]]:
    """The hazards of another launch that keeps what is written: cores that store the same bytes need no order.

    Many kernels let every core fill the same memory with the same values, or pieces of two cores overlap by values
    that both compute.
    """
    launch.load(inputs, trial.poison)
    run(options=replace(options, writes=True))
    acl.synchronize()
    hazards: list[dict[str, Any]] = acl.report()["hazards"]
    return hazards


def _loads_it_itself(use: Mapping[str, Any]) -> bool:
    """Whether the scalar unit loads what nobody wrote, with no instruction in between: it may decide by it."""
    return not use["sink_end"] and use["first"] == use["sink"]


def _same_with_other_garbage(
    acl: Acl,
    launch: DeviceLaunch,
    run: Run,
    options: LaunchOptions,
    inputs: Sequence[Arrays],
    poison: int,
    outputs: Any,
) -> bool:
    """Whether other launches, with other values where nobody has written, leave the same outputs.

    One has another byte there, one what the launch before left in local memory and workspace. The virtual NPU may claim
    that unwritten bytes decide something when they don't (core/unwritten.h); this settles it.
    """
    for keep in (False, True):
        launch.load(inputs, poison ^ 0x3C, workspace=not keep)
        try:
            run(options=replace(options, fill=_OTHER_FILL, keep=keep))
            acl.synchronize()
        except DeviceError:
            return False
        if not all(map(_equal_bytes, outputs, launch.outputs())):
            return False
    return True


def _equal_bytes(a: Arrays, b: Arrays) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, tuple) or isinstance(b, tuple):
        return all(map(_equal_bytes, a, b))
    return a.tobytes() == b.tobytes()


def _launch(acl: Acl, plan: LaunchPlan, what: Launchable, shift: int = 0) -> DeviceLaunch:
    if plan.operator.direct is not None:
        order = parameter_order(plan.operator, dict(plan.case.attrs), plan.names)
        return DeviceLaunch(acl, plan.case, plan.names, order=order, shift=shift)
    tiling = what.tiling
    assert tiling is not None
    unlisted = len(plan.operator.in_place)
    return DeviceLaunch(
        acl,
        plan.case,
        plan.names,
        tiling.data,
        tiling.workspace_bytes,
        unlisted=unlisted,
        tells_shapes=tiling.tells_shapes,
        initial_values=tiling.initial_values,
        shift=shift,
        bare=plan.bare,
    )


def parameter_order(
    operator: Operator, attrs: dict[str, AttrValue], names: tuple[tuple[str, ...], tuple[str, ...]]
) -> list[str | ByValue]:
    """The kernel's parameters in order: names of tensors, and what the kernel takes by value.

    A pointer that is given as the number 0 is null.
    """
    assert operator.direct is not None
    order: list[str | ByValue] = []
    files = operator.baseline.kernel
    for name, c_type in operator.direct.parameters:
        if name in names[0] and takes_value(c_type, files.values()):
            hint = f"Give its value: --attr {name}=..., of a struct the fields in their order."
            raise CaseError(f"{operator.entry} takes {name} by value ({c_type}); an input of that name is given.", hint)
        if name in names[0] or name in names[1] or name == "workspace":
            order.append(name)
        elif name in attrs and attrs[name] == 0 and (c_type.endswith("*") or c_type.split()[-1:] == ["GM_ADDR"]):
            order.append(ctypes.c_uint64(0))
        elif name in attrs:
            order.append(by_value(name, c_type, attrs[name], files.values()))
        else:
            raise CaseError(f"{operator.entry} needs {name}.", "Give it as an input, an output or an attribute.")
    return order


def measure(plan: LaunchPlan, tell: Callable[[dict[str, Any]], None]) -> dict[str, float]:
    """Times by events on the first trial's inputs, in turn with the incumbent's where there is one.

    What the candidate's timed launches left is told like a trial, unless each launch goes on from the last one's.

    Returns:
        ``candidate_us`` and ``candidate_spread_us``: median and half the interquartile range of ``repeats`` launches;
        ``incumbent_us`` and ``incumbent_spread_us`` likewise.
    """
    acl = Acl(plan.toolkit)
    inputs = [load_arrays(a) for a in plan.trials[0].inputs]
    with ExitStack() as stack:
        runs = []
        for name, what in (("candidate", plan.launchable), ("incumbent", plan.incumbent)):
            if what is not None:
                binary = stack.enter_context(acl.load(Path(what.binary_path).read_bytes()))
                launch = stack.enter_context(_launch(acl, plan, what))
                launch.load(inputs, plan.trials[0].poison)
                runs.append((name, launch, binary.function(what.entry), what.block_dim))
        times = _timed(acl, runs)
        launch = runs[0][1]
        if not any(shared is not None for shared in launch.in_place):
            launch.read(plan.outputs)
            done = {"report": {}, "error": "", "damage": launch.damage(inputs), "launch_s": (0.0, 0.0), "timed": True}
            tell(done)
        return times


def _timed(acl: Acl, runs: Sequence[tuple[str, DeviceLaunch, int, int]]) -> dict[str, float]:
    stream = acl.stream()
    begin, end = acl.create_event(), acl.create_event()
    times: dict[str, list[float]] = {name: [] for name, *_ in runs}
    for repeat in range(_WARM_UP + _REPEATS):
        for name, launch, function, block_dim in runs:
            acl.record(begin, stream)
            launch.run(function, block_dim, stream)
            acl.record(end, stream)
            elapsed = acl.elapsed_us(begin, end)
            if repeat >= _WARM_UP:
                times[name].append(elapsed)
    for event in (begin, end):
        acl.destroy_event(event)
    acl.destroy_stream(stream)
    result = {"repeats": float(_REPEATS)}
    for name, values in times.items():
        quarters = statistics.quantiles(values, n=4)
        result |= {f"{name}_us": statistics.median(values), f"{name}_spread_us": (quarters[2] - quarters[0]) / 2}
    return result
