"""What bounds a kernel, in one paragraph of plain words, by rules from its profile.

The paragraph is what ``run --profile`` prints and what Stage II looks experience up with: it names the bottleneck, the
numbers that show it, and what usually helps. Rules look at shares of time only; no operator has a name here. A profile
that knows less (msprof doesn't tell who waited for whom) leads to fewer findings, never to invented ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..nouns.chip import Chip
from ..nouns.profile import Profile
from .bound import paying_cores
from .cores import cores_there, cores_used, turn_us, turns

# Shares from which on something counts as the bound. Chosen so that the kernels of tests/vnpu/test_diagnosis.py, each
# built around one bottleneck, are told apart with room on both sides.
_LAUNCH, _IMBALANCE, _SYNC, _BUSY, _WAITS, _BANDWIDTH, _PART = 0.5, 0.25, 0.25, 0.65, 0.2, 0.6, 0.25
_FEW_CORES = 0.5  # of the chip's cores
_IN_TURN = 0.75, 1.1  # of a core's time: what pipes fill that work one after another (a guess; more is overlap)
_PAYS = 0.1  # of the task: what splitting the work over more cores has to save, their start paid
_SMALL_COPY = 4096  # bytes; a copy of less can't reach a core's bandwidth (issue cost against bytes per cycle)
_PIPES = {"vec": "the vector pipe", "scalar": "the scalar unit", "mte2": "MTE2 (in)", "mte3": "MTE3 (out)",
          "mac": "the matrix unit", "mte1": "MTE1 (L1 to L0)", "fixpipe": "FIXP (out)"}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One thing that holds the kernel back. ``bound``: a keyword; ``text``: the evidence; ``advice``: what to try."""

    bound: str
    text: str
    advice: str


@dataclass(frozen=True)
class Diagnosis:
    """``findings``: the most important one first; empty when nothing stands out, or the profile is too poor to tell."""

    findings: tuple[Finding, ...]
    paragraph: str

    @property
    def bound(self) -> str:
        """The keyword of the most important finding, or ``none``."""
        return self.findings[0].bound if self.findings else "none"


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per microsecond (1e-3 GB/s) of one memory: what the task moved, and the chip's peak."""

    name: str
    achieved: float
    peak: float

    @property
    def share(self) -> float:
        return self.achieved / self.peak if self.peak else 0.0


def bandwidths(profile: Profile, chip: Chip) -> tuple[Bandwidth, ...]:
    """Traffic of all cores over the time they ran: everything through L2, and the part that L2 didn't hold from HBM.

    Only of those memories whose bytes the profile tells.
    """
    counters, us = profile.counters, _active(profile)
    moved = {}
    ways = [f"{pipe}_bytes" for pipe in ("mte2", "mte3", "fixpipe")]
    parts = [part.counters for part in profile.parts.values()]
    through_l2 = [of_kind[way] for of_kind in parts for way in ways if way in of_kind]
    if through_l2:
        moved["L2"] = sum(through_l2)
    if "l2_miss_bytes" in counters:
        moved["HBM"] = counters["l2_miss_bytes"]
    if us <= 0:
        return ()
    peaks = {"L2": chip.values["memory.l2_gb_per_s"], "HBM": chip.values["memory.hbm_gb_per_s"]}
    return tuple(Bandwidth(name, count / us, 1e3 * float(peaks[name])) for name, count in moved.items())


def _active(profile: Profile) -> float:
    """Microseconds from the first core's first instruction to the last core's end, or what comes nearest to it."""
    if profile.kind == "mix":
        return max(_active(part) for part in profile.parts.values())
    counters = profile.counters
    return counters.get("cores_active_us", counters.get("block_time_max_us", profile.core_time_us))


def _busiest_memory(profile: Profile, chip: Chip) -> Bandwidth:
    """The memory nearest to its peak; of nothing, where the profile doesn't tell bytes."""
    return max(bandwidths(profile, chip), key=lambda b: b.share, default=Bandwidth("", 0.0, 0.0))


def stalls(profile: Profile) -> list[tuple[str, float]]:
    """(who waited for what, microseconds: mean over the cores), the longest first; no zeros."""
    names = {
        "stall_gm_bandwidth_us": "copies, for GM bandwidth that other cores used",
        "stall_scalar_on_full_queue_us": "scalar unit, for room in an instruction queue",
        "stall_scalar_on_all_pipes_us": "scalar unit, for all pipes (PipeBarrier<PIPE_ALL>)",
        "stall_sync_all_us": "cores, for each other (SyncAll)",
        "stall_between_cores_us": "cores, for each other (CrossCoreWaitFlag, SyncAll)",
    }
    pipes = {"vec": "V", "scalar": "scalar unit", "mte1": "MTE1", "mte2": "MTE2", "mte3": "MTE3",
             "cube": "matrix unit", "fixpipe": "FIXP"}  # fmt: skip
    if profile.kind == "mix":
        both = [(f"{kind.upper()}: {n}", us) for kind, part in profile.parts.items() for n, us in stalls(part)]
        return sorted(both, key=lambda item: -item[1])
    found = []
    for key, us in profile.counters.items():
        waiting, _, awaited = key.removeprefix("stall_").removesuffix("_us").partition("_on_")
        if key in names:
            found.append((names[key], us))
        elif key.startswith("stall_") and waiting in pipes and awaited in pipes:
            own = "its own earlier instructions" if waiting == awaited else pipes[awaited]
            found.append((f"{pipes[waiting]}, for {own}", us))
    return sorted(((n, us) for n, us in found if us > 0), key=lambda item: -item[1])


def diagnose(profile: Profile, chip: Chip) -> Diagnosis:
    """The findings and the paragraph. ``chip`` is the one the profile was taken on.

    Of a device's time with a modelled profile beside it the modelled one is diagnosed, and the paragraph says so.
    """
    if profile.modelled is not None:
        told = diagnose(profile.modelled, chip)
        return replace(told, paragraph=f"By the virtual NPU's model, not measured: {told.paragraph}")
    if not profile.core_time_us or not profile.block_dim:
        text = "Only the task's duration is known, not where it went."
        return Diagnosis((), f"{text} Take the profile on the virtual NPU, or with msprof.")
    if profile.kind == "mix":
        return _of_both(profile, chip)
    findings = tuple(_findings(profile, chip)) if working(profile) > 0 else (_empty(profile, chip),)
    if not findings:
        return Diagnosis((), f"Nothing stands out: {_shares(profile)}, and waits are spread over several causes.")
    first = findings[0]
    sentences = [f"{first.text}. {first.advice}."]
    if working(profile) <= 0:
        return Diagnosis(findings, sentences[0])
    if len(findings) > 1:
        sentences.append(f"Then: {findings[1].text[0].lower()}{findings[1].text[1:]}. {findings[1].advice}.")
    sentences.append(f"In all, {_shares(profile)}.")
    return Diagnosis(findings, " ".join(sentences))


def _of_both(profile: Profile, chip: Chip) -> Diagnosis:
    """Of a mixed kernel: what its cube cores do and what its vector cores do, those first that wait less."""
    names = {"aic": "cube cores", "aiv": "vector cores"}
    order = sorted(profile.parts.items(), key=lambda item: item[1].counters.get("stall_between_cores_us", 0.0))
    told = [(names[kind], diagnose(part, chip)) for kind, part in order]
    findings = tuple(replace(f, text=f"On the {name}: {f.text}") for name, d in told for f in d.findings)
    return Diagnosis(findings, " ".join(f"On the {name}: {d.paragraph}" for name, d in told))


def _shares(profile: Profile) -> str:
    core = working(profile)
    parts = (f"{_PIPES[pipe]} is busy {_percent(busy(profile, pipe) / core)}" for pipe in profile.pipes)
    return f"of {core:.1f} us that a core works, " + ", ".join(parts)


def working(profile: Profile) -> float:
    """Microseconds a core worked: its time without its start. Mean over the cores; of two kinds the longer."""
    if profile.kind == "mix":
        return max(working(part) for part in profile.parts.values())
    return profile.core_time_us - profile.counters.get("core_start_us", 0.0)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def busy(profile: Profile, pipe: str) -> float:
    """Microseconds a pipe was busy while its core worked.

    A profile counts a core's start as well: to MTE2 while the tiling data come, to the scalar unit otherwise.
    """
    start, loading = (profile.counters.get(f"core_{key}_us", 0.0) for key in ("start", "loading"))
    before = {"scalar": start - loading, "mte2": loading}
    return max(0.0, profile.pipe_us(pipe) - before.get(pipe, 0.0))


def _empty(profile: Profile, chip: Chip) -> Finding:
    return Finding(
        "launch",
        f"Launch bound: the task takes {profile.task_duration_us:.1f} us, all of it launching the task and starting "
        f"{cores_used(profile, chip)} cores, which then have nothing to do",
        "Start fewer cores, or don't launch it",
    )


def _worth(profile: Profile, chip: Chip) -> str:
    """How many cores the launch's bytes and instructions pay for, where that is fewer than it has."""
    cores = paying_cores(profile, chip)
    return f" (what there is to do pays for about {cores})" if cores and cores < cores_used(profile, chip) else ""


def _findings(profile: Profile, chip: Chip) -> Iterator[Finding]:
    task, core, counters = profile.task_duration_us, working(profile), profile.counters
    longest = counters.get("block_time_max_us", profile.core_time_us)
    used, there = cores_used(profile, chip), cores_there(profile, chip)
    one_wave = profile.block_dim <= there  # with several, a block's time is not a core's
    works = longest if one_wave else counters.get("cores_active_us", task)  # nobody tells: all of it
    if (task - works) / task > _LAUNCH:  # also: cores start one after another
        yield Finding(
            "launch",
            f"Launch bound: the task takes {task:.1f} us, of which a core works {core:.1f} us; the rest is launching "
            f"the task and starting {used} cores",
            f"Start fewer cores{_worth(profile, chip)}, or do more in one launch (fuse operators, take larger inputs)",
        )
    elif used <= _FEW_CORES * there:
        more, saved = more_cores(profile, chip)
        if saved > _PAYS * task:
            yield Finding(
                "few cores",
                f"Few cores: {used} of {there} cores work; {more} would save about {saved:.1f} us, their start paid",
                "Split the work over more blocks, along another axis if the first is too short",
            )
    if (sync := counters.get("stall_sync_all_us", 0.0)) / core > _SYNC:
        yield Finding(
            "synchronization",
            f"Bound by meetings of all cores: SyncAll takes {_percent(sync / core)} of a core's time",
            "Meet less often: let each core finish its own part, reduce across cores once",
        )
    elif (between := counters.get("stall_between_cores_us", 0.0)) / core > _SYNC:
        yield Finding(
            "waits between cores",
            f"Cores wait for each other: flags of the other cores of its group, or meetings, take "
            f"{_percent(between / core)} of a core's time",
            "Let both kinds work at the same time: two or more slots of workspace between them with a flag each, the "
            "next step's work issued before the wait, steps of equal length, the other ratio of cores",
        )
    elif one_wave and used > 1 and (longest - core) / longest > _IMBALANCE:
        yield Finding(
            "imbalance",
            f"Load imbalance: the longest block takes {longest:.1f} us, the mean is {core:.1f} us, the shortest "
            f"{counters.get('block_time_min_us', 0.0):.1f} us",
            "Give every core the same amount of work: spread the remainder over all cores, cut finer",
        )
    yield from _on_one_core(profile, chip)


def more_cores(profile: Profile, chip: Chip) -> tuple[int, float]:
    """How many cores would end soonest if the same work were split over them evenly, and the microseconds that saves.

    Cores start in turns, each later by what fetching their first instructions takes; and memory needs its time for the
    bytes however many cores ask for them.
    """
    used = cores_used(profile, chip)
    turn = turn_us(profile, chip)
    memory = _busiest_memory(profile, chip).share * _active(profile)
    work = working(profile) * used

    def ends(cores: int) -> float:
        return turn * turns(cores, chip) + max(work / cores, memory)

    best = min(range(used, cores_there(profile, chip) + 1), key=ends)
    return best, ends(used) - ends(best)


def _on_one_core(profile: Profile, chip: Chip) -> Iterator[Finding]:
    core = working(profile)
    pipe = max(profile.pipes, key=lambda p: busy(profile, p))
    share = busy(profile, pipe) / core
    barriers = profile.counters.get("stall_vec_on_vec_us", 0.0) / core
    if pipe == "vec" and barriers > _PART:
        yield Finding(
            "vector barriers",
            f"Dependent vector instructions: the vector pipe is busy {_percent(share)} of the time and waits "
            f"{_percent(barriers)} of it for its own earlier results (PipeBarrier<PIPE_V> or the compiler's order)",
            "Put independent instructions between dependent ones, let one instruction handle more data, drop barriers "
            "between instructions that don't touch the same bytes",
        )
        return
    memory = _busiest_memory(profile, chip)
    stalled = profile.counters.get("stall_gm_bandwidth_us", 0.0) / core
    if memory.share > _BANDWIDTH or stalled > _PART:
        waiting = f"; copies wait {_percent(stalled)} of the time for bandwidth that other cores use" if stalled else ""
        yield Finding(
            "memory bandwidth",
            f"Memory bound: {memory.achieved / 1e3:.0f} GB/s from {memory.name}, {_percent(memory.share)} of its peak"
            f"{waiting}",
            "Move fewer bytes: keep what is used again in UB or L2, fuse with the operator before or behind, use a "
            "smaller dtype",
        )
    yield from _past_l2(profile, chip)
    if share < _BUSY:
        yield from _waiting(profile, _PIPES[pipe], share)
    elif pipe == "vec":
        yield _vector(profile, chip, share)
    elif pipe == "mac":
        yield Finding(
            "matrix unit",
            f"Bound by the matrix unit: it is busy {_percent(share)} of the time",
            "Use more cores, a smaller dtype, or base blocks whose sides are multiples of 16",
        )
    elif pipe == "scalar":
        yield Finding(
            "scalar",
            f"Scalar bound: the scalar unit is busy {_percent(share)} of the time, the pipes wait for instructions",
            "Replace element-wise GetValue/SetValue and address arithmetic by vector instructions (masks, Gather, "
            "Select), make each instruction handle more data, move invariant work out of loops",
        )
    elif memory.share <= _BANDWIDTH and stalled <= _PART:
        yield _copies(profile, chip, pipe, share)


def _past_l2(profile: Profile, chip: Chip) -> Iterator[Finding]:
    """What HBM has to give because L2 could not keep it."""
    moved = {b.name: b for b in bandwidths(profile, chip)}
    if "HBM" in moved and moved["HBM"].share > _BANDWIDTH:
        missed = moved["HBM"].achieved / max(moved["L2"].achieved, 1e-9) if "L2" in moved else 1.0
        yield Finding(
            "L2 misses",
            f"L2 doesn't hold it: {_percent(min(missed, 1.0))} of the bytes come from HBM or go there, at "
            f"{_percent(moved['HBM'].share)} of its peak",
            "Send what is used once past L2 (SetL2CacheHint with CACHE_MODE_DISABLE), so that it keeps what is used "
            "again",
        )


def _vector(profile: Profile, chip: Chip, share: float) -> Finding:
    counters, vec = profile.counters, profile.aiv_vec_time_us
    cycles = vec * float(chip.values["core.clock_mhz"]) * cores_used(profile, chip)  # of all cores
    conflicts = counters.get("bank_conflict_cycles", 0.0) / cycles
    count = counters.get("vec_instructions", 0.0)
    heads = count * float(chip.values["vector.head_cycles"]) / cycles
    if conflicts > _PART:
        return Finding(
            "bank conflicts",
            f"Bank conflicts in UB: the vector pipe is busy {_percent(share)} of the time, {_percent(conflicts)} of it "
            "waiting for banks that two operands of one instruction share",
            "Move one operand by 32 bytes or more (pad buffers so that sources and destination start in different bank "
            "groups), or change the stride between rows",
        )
    if heads > _BUSY:
        return Finding(
            "short vector instructions",
            f"Short vector instructions: the vector pipe is busy {_percent(share)} of the time, {_percent(heads)} of "
            f"it starting {count:.0f} instructions, not computing",
            "Let one instruction handle more data: several rows by repeats and strides, counts instead of loops",
        )
    starting = f", with {count:.0f} instructions, {_percent(heads)} of it starting them" if count else ""
    longer = "Let one instruction handle more data (repeats and strides instead of loops over rows), and compute less"
    return Finding(
        "vector",
        f"Vector bound: the vector pipe is busy {_percent(share)} of the time{starting}",
        f"{longer if heads > _PART else 'Compute less'}: fused instructions (Axpy, MulAddDst, FusedMulAdd), fewer "
        "passes over the data and fewer casts, lower precision where the result allows it",
    )


def _copies(profile: Profile, chip: Chip, pipe: str, share: float) -> Finding:
    counters = profile.counters
    count, moved = counters.get(f"{pipe}_copies", 0.0), counters.get(f"{pipe}_bytes", 0.0)
    if not count:
        return Finding(
            "copies",
            f"Bound by the copies of each core: {_PIPES[pipe]} is busy {_percent(share)} of the time",
            "Copy larger tiles in fewer instructions, use more cores, or keep data in UB between steps",
        )
    mean = moved / count
    rate = moved / max(busy(profile, pipe), 1e-9) / cores_used(profile, chip) / 1e3
    head = (
        f"{_PIPES[pipe]} is busy {_percent(share)} of the time with {count:.0f} copies of {mean:.0f} bytes in the mean"
    )
    if mean < _SMALL_COPY:
        return Finding(
            "small copies",
            f"Small copies: {head}; each costs more to start than to move, {rate:.1f} GB/s per core",
            "Copy larger tiles (16 KiB or more), many rows in one strided DataCopy, whole blocks of 512 bytes",
        )
    return Finding(
        "copies",
        f"Bound by the copies of each core: {head}, {rate:.1f} GB/s per core, while memory has bandwidth to spare",
        "Use more cores, or move fewer bytes per core: keep data in UB between steps, a smaller dtype",
    )


def _cube_waiting(profile: Profile, busiest: str, share: float) -> Iterator[Finding]:
    """On a cube core every pipe works for the next one: MTE2, MTE1, the matrix unit, FIXP."""
    core, counters = working(profile), profile.counters
    pipes = {"cube" if p == "mac" else p: _PIPES[p] for p in ("mte1", "mte2", "mac", "fixpipe")}  # counters' names
    pairs = {(a, b): counters.get(f"stall_{a}_on_{b}_us", 0.0) / core for a in pipes for b in pipes if a != b}
    (waiting, awaited), most = max(pairs.items(), key=lambda item: item[1])
    if most < _WAITS:
        return
    yield Finding(
        "waits between pipes",
        f"Pipes wait for each other: {busiest} is the busiest pipe and works only {_percent(share)} of the time; "
        f"{pipes[waiting]} waits {_percent(most)} of it for {pipes[awaited]}",
        "Keep two base blocks in L1 and in L0 (double buffers), let one copy bring in more of K at once, set the flags "
        "of buffers that are free before the loop",
    )


def _waiting(profile: Profile, busiest: str, share: float) -> Iterator[Finding]:
    """No pipe is busy for long: somebody waits for somebody."""
    core, counters = working(profile), profile.counters
    if not any(name.startswith("stall_") for name in counters):
        yield from _taking_turns(profile, busiest, share)
        return

    def waits(*pairs: str) -> float:
        return sum(counters.get(f"stall_{pair}_us", 0.0) for pair in pairs) / core

    if profile.kind == "aic":
        yield from _cube_waiting(profile, busiest, share)
        return
    data = waits("vec_on_mte2", "vec_on_mte3", "mte2_on_vec", "mte2_on_mte3", "mte3_on_vec", "mte3_on_mte2") / 2
    scalar = waits("scalar_on_vec", "scalar_on_mte2", "scalar_on_mte3", "scalar_on_all_pipes")
    if max(data, scalar) < _WAITS:
        return
    idle = f"{busiest} is the busiest pipe and works only {_percent(share)} of the time"
    pairs = ("vec_on_mte2", "mte2_on_vec", "mte2_on_mte3", "mte3_on_vec")
    if scalar > 2 * data:
        yield Finding(
            "scalar round trips",
            f"Round trips through the scalar unit: {idle}; the scalar unit waits {_percent(scalar)} of it for results "
            "or barriers, and meanwhile issues nothing",
            "Keep results in vectors (Duplicate, Brcb, Broadcast of a reduction instead of GetValue), replace "
            "PipeBarrier<PIPE_ALL> by the one flag that is needed, issue the next tile's copy before waiting",
        )
    else:
        longest = max(pairs, key=lambda pair: waits(pair))
        waiting, _, awaited = longest.partition("_on_")
        yield Finding(
            "no overlap",
            f"Copies and computation take turns instead of overlapping: {idle}, and {_PIPES[waiting]} waits "
            f"{_percent(waits(longest))} of it for {_PIPES[awaited]}",
            "Double buffering: two buffers per queue (InitBuffer with 2), smaller tiles if UB is short, the next "
            "tile's copy issued before this tile is computed",
        )


def _taking_turns(profile: Profile, busiest: str, share: float) -> Iterator[Finding]:
    """Nobody told who waits; but pipes that fill the time one after another can't work beside each other."""
    pipes = ("mte2", "vec", "mte3")
    together = sum(busy(profile, pipe) for pipe in pipes) / working(profile)
    if _IN_TURN[0] < together < _IN_TURN[1]:
        yield Finding(
            "no overlap",
            f"Copies and computation seem to take turns: {busiest} is the busiest pipe and works only "
            f"{_percent(share)} of the time, while MTE2, the vector pipe and MTE3 together fill {_percent(together)}",
            "Double buffering: two buffers per queue (InitBuffer with 2), smaller tiles if UB is short, the next "
            "tile's copy issued before this tile is computed",
        )
