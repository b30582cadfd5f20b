"""What a model has to know, in words: the chip, the code, where the time went, what was tried."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

from ..evaluate.compare import tolerance
from ..evaluate.diagnosis import bandwidths, diagnose, stalls
from ..nouns.case import Case, flatten
from ..nouns.chip import Chip
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import CompileFailed, Timed
from ..nouns.places import without_paths
from ..nouns.profile import Profile
from ..nouns.trial import Trial
from ..search.proposer import SearchState
from ..search.tiling.slice import Template
from .listings import in_order

# Characters of code that may be changed, and of code to read only: with all the rest below 12,000 tokens.
CODE, CONTEXT = 17_000, 4_000
TOKENS = 11_900  # of a question; where there is more to tell, less code is shown
_DIFF, _REASON, _LOG = 700, 400, 2_000  # characters
_RECENT, _BEST, _SITES = 10, 3, 16  # trials, programs and places that are listed
#: Rows of the chip's table that count repeats, and what kernels call them.
_PLAIN = ("Add", "Mul", "Max", "Adds", "Muls", "Cast", "MulAddDst", "Div", "Exp", "Ln", "Sqrt", "Rsqrt",
          "Reciprocal", "Relu")  # fmt: skip
_COSTS = {
    **dict(zip(_PLAIN, _PLAIN, strict=True)),
    "Duplicate": "Duplicate",
    "Brcb": "Brcb",
    "Copy": "Copy",
    "ReduceDataBlock": "BlockReduceMax/Min",
    "ReduceDataBlockSum": "BlockReduceSum",
    "ReduceRepeat": "WholeReduceMax/Min",
    "ReduceRepeatSum": "WholeReduceSum",
    "ReducePairElem": "PairReduceSum",
    "GatherMask": "GatherMask",
}
#: Rows that count elements (the chip files say so).
_BY_ELEMENT = ("Gather", "Sort32", "MrgSort")
_READS_TILING = re.compile(r"\b(GET_TILING_DATA\w*|GetBlockNum|TILING_KEY_IS|GetTiling\w*)\b")
_PIPES = {"vec": "vector", "scalar": "scalar", "mte2": "MTE2 (in)", "mte3": "MTE3 (out)",
          "mac": "matrix unit", "mte1": "MTE1 (L1 to L0)", "fixpipe": "FIXP (out)"}  # fmt: skip


def kernel_first(operator: Operator) -> list[str]:
    kernel = operator.baseline.kernel
    return in_order(kernel, [operator.kernel_main]) if operator.kernel_main in kernel else []


def places(trial: Trial, files: Mapping[str, str]) -> dict[str, list[int]]:
    """By path, the lines (from 0) of ``files`` that the reason of a failure names."""
    text = failure_text(trial)
    found: dict[str, list[int]] = {}
    for path in files:
        lines = re.findall(rf"{re.escape(path)}:(\d+)", text)
        if lines:
            found[path] = sorted({max(0, int(line) - 1) for line in lines})
    return found


def kind_of_cores(state: SearchState) -> str:
    """Which cores the pair as written ran on: ``aiv``, ``aic`` for cube cores, ``mix`` for both."""
    outcome = state.baseline.outcome
    return outcome.profile.detail.kind if isinstance(outcome, Timed) else "aiv"


def reads_tiling(kernel: Iterable[str]) -> bool:
    """Whether a kernel reads tiling data, or asks how many blocks there are. In doubt it does."""
    text = "\n".join(kernel)
    return bool(_READS_TILING.search(text)) or len(re.findall(r"\btiling\b", text)) > 1


def chip_facts(chip: Chip) -> dict[str, object]:
    """Numbers of the chip under the names the prompts use."""
    values = chip.values
    numbers = {key: float(value) for key, value in values.items() if not isinstance(value, str)}
    usable = int(values["memory.ub_bytes"]) - int(values.get("memory.ub_reserved_bytes", 0))
    return {
        "name": chip.name,
        "cores": int(values["core.aiv"]),
        "clock_mhz": int(values["core.clock_mhz"]),
        "ub_bytes": usable,
        "l2_mib": int(values["memory.l2_bytes"]) >> 20,
        "hbm": int(values["memory.hbm_gb_per_s"]),
        "l2": int(values["memory.l2_gb_per_s"]),
        "first_us": round(numbers["launch.base_us"] + numbers["launch.core_head_us"], 2),
        "apart_us": round(numbers["launch.dispatch_us"] + numbers["launch.fetch_us"], 3),
        "reading_us": round(numbers["launch.operator_head_us"], 2),
        "reading_apart_us": round(numbers["launch.tiling_us"], 3),
        "copy_issue": round(numbers["mte2.issue_cycles"]),
        "copy_out_issue": round(numbers["mte3.issue_cycles"]),
        "copy_piece": round(numbers["mte2.request_cycles"]),
        "copy_latency": round(numbers["mte2.latency_cycles"]),
        "copy_bytes": round(numbers["mte2.bytes_per_cycle"]),
        "vector_head": round(numbers["vector.head_cycles"]),
        "scalar_issue": round(numbers["scalar.issue_cycles"]),
        "scalar_queue": round(numbers["scalar.queue_cycles"]),
        "scalar_buffer": round(numbers["scalar.buffer_cycles"]),
        "bank_groups": int(values["memory.ub_bank_groups"]),
        "events": int(values["sync.event_ids"]),
        "transposition_head": round(numbers["instructions.TransDataTo5HD.any.head"]),
        "sync_all": int(values["sync.sync_all_cycles"]),
        "cube_cores": int(values["core.aic"]),
        "l1_bytes": int(values["memory.l1_bytes"]),
        "l0a_bytes": int(values["memory.l0a_bytes"]),
        "l0b_bytes": int(values["memory.l0b_bytes"]),
        "l0c_bytes": int(values["memory.l0c_bytes"]),
        "nd2nz_row": numbers["nd2nz.l2_request_cycles"],
        "nd2nz_bytes": round(numbers["nd2nz.bytes_per_cycle"]),
        "nd2nz_crossing": numbers["nd2nz.crossing_cycles"],
        "load_latency": round(numbers["mte1.result_cycles"]),
        "mmad_head": round(numbers["cube_instructions.Mmad.any.head"]),
        "mmad_latency": round(numbers["mac.result_cycles"]),
        "fixpipe_issue": round(numbers["fixpipe.issue_cycles"]),
        "fixpipe_row": numbers["fixpipe.request_cycles"],
        "fixpipe_partial": round(numbers["fixpipe.partial_cycles"]),
    }


def instruction_costs(chip: Chip) -> str:
    """Cycles of vector instructions, to start and for a repeat or an element: ``Add 22 + 1, Exp 29 + 2 (half 4)``."""
    told = []
    for name, called in _COSTS.items():
        table = {
            dtype: (chip.values[f"instructions.{name}.{dtype}.head"], chip.values[f"instructions.{name}.{dtype}.pace"])
            for dtype in ("any", "float", "half")
            if f"instructions.{name}.{dtype}.pace" in chip.values
        }
        if table:
            (head, pace), *others = table.values()
            half = f" (half {table['half'][1]})" if others else ""
            told.append(f"{called} {head} + {pace}{half}")
    one_by_one = [
        f"{name} {chip.values[f'instructions.{name}.any.head']} + {chip.values[f'instructions.{name}.any.pace']}"
        for name in _BY_ELEMENT
        if f"instructions.{name}.any.pace" in chip.values
    ]
    return ", ".join(told) + (f"; for each element: {', '.join(one_by_one)}" if one_by_one else "")


def checks(operator: Operator, case: Case) -> str:
    """What results are compared with, how closely, and which values inputs have."""
    against = (
        "a formula computed in float64 (its reference.py)"
        if operator.reference is not None
        else "the results of the pair as written, so keep the order of operations where it decides rounding, and what "
        "it does where it overflows or errs"
    )
    dtypes = dict.fromkeys(spec.dtype for spec in flatten(case.outputs))
    limits = []
    for dtype in dtypes:
        allowed = tolerance(dtype, operator.settings)
        limits.append(f"{dtype} within rtol {allowed.rtol:g}, atol {allowed.atol:g}")
    text = f"Results are compared with {against}: {'; '.join(limits)}, and no further off than the pair as written."
    bounds = []
    for name, domain in operator.settings.get("domain", {}).items():
        words = [f"{key} {domain[key]}" for key in ("low", "high", "index", "axis") if key in domain]
        if "values" in domain:
            words.append(f"always {shortened(str(domain['values']), 200)}, which the kernel reads all the same")
        bounds.append(f"{name} ({', '.join(words)})")
    text += " Inputs are drawn in many ways: normal, uniform, large (up to the largest number of the type), tiny, "
    text += "constant, sorted, with outliers"
    text += ", with infinities and NaN." if operator.settings.get("specials") else "; no infinities, no NaN."
    return text + (f" Bounds of inputs: {'; '.join(bounds)}." if bounds else "")


def _pipe_name(pipe: str) -> str:
    """For people; of a mixed kernel's with the kind of core."""
    kind, _, name = pipe.rpartition("_")
    return f"{kind.upper()} {_PIPES[name]}".strip()


def profile_facts(profile: Profile, chip: Chip) -> str:
    """Where the time went, and what bounds the kernel. Times in us."""
    lines = []
    if profile.modelled is not None:
        lines.append(f"task {profile.task_duration_us:.2f} us measured; all that follows is the virtual NPU's model:")
        profile = profile.modelled
    # Only the virtual NPU knows since when which core worked; a device is timed by events.
    target = "modelled" if "cores_active_us" in profile.counters else "measured"
    lines += [
        f"task {profile.task_duration_us:.2f} us {target} on {profile.block_dim} blocks; mean over cores "
        f"{profile.core_time_us:.2f} us, of it "
        + ", ".join(f"{_pipe_name(pipe)} {profile.pipe_us(pipe):.2f}" for pipe in profile.pipes)
        + " us"
    ]
    waits = [f"{who}: {us:.2f} us" for who, us in stalls(profile)[:5]]
    if waits:
        lines.append(f"waits: {'; '.join(waits)}")
    traffic = [
        f"{b.name} {b.achieved / 1e3:.0f} GB/s ({100 * b.share:.0f} % of peak)" for b in bandwidths(profile, chip)
    ]
    if traffic:
        lines.append(f"traffic: {', '.join(traffic)}")
    counters = profile.counters
    names = ("instructions", "vec_instructions", "mte2_copies", "mte2_bytes", "mte3_copies", "bank_conflict_cycles")
    counted = [f"{n} {counters[n]:.0f}" for n in names if n in counters]
    if counted:
        lines.append(f"counts: {', '.join(counted)}")
    lines.append(f"diagnosis: {diagnose(profile, chip).paragraph}")
    return "\n".join(lines)


def one_line(trial: Trial, baseline_us: float | None, pipes: bool = False) -> str:
    """``#7 from #3: tile doubled -> 4.51 us (1.20x)``, or why it counts for nothing.

    ``pipes``: with the mean time of each pipe over cores, and the cycles lost to bank conflicts on all of them.
    """
    c = trial.candidate
    head = f"#{c.id}" + (f" from #{c.parent}" if c.parent is not None else "") + f": {c.change}"
    if isinstance(trial.outcome, Timed):
        us = trial.outcome.profile.task_duration_us
        gain = f" ({baseline_us / us:.2f}x)" if baseline_us and us else ""
        if trial.duplicate_of is not None:
            return f"{head} -> the same launch as #{trial.duplicate_of}: nothing is different"
        return f"{head} -> {us:.2f} us{gain}" + (f"; {_pipes(trial.outcome.profile)}" if pipes else "")
    reason = " ".join(without_paths(trial.outcome.reason).split())
    return f"{head} -> {type(trial.outcome).__name__}: {shortened(reason, _REASON)}"


def _pipes(profile: Profile) -> str:
    profile = profile.detail
    told = [f"{pipe.rpartition('_')[2]} {profile.pipe_us(pipe):.2f}" for pipe in profile.pipes]
    if conflicts := profile.counters.get("bank_conflict_cycles", 0.0):
        told.append(f"conflicts {conflicts:.0f}")
    return f"{profile.block_dim} blocks, {', '.join(told)}"


def history(state: SearchState) -> list[str]:
    """The baseline, the best trials, and the last ones, in order."""
    best = state.history.fastest_first[:_BEST]
    shown = {t.candidate.id: t for t in [state.baseline, *best, *list(state.history)[-_RECENT:]]}
    return [one_line(shown[number], state.baseline.time_us, pipes=True) for number in sorted(shown)]


def inspirations(state: SearchState, part: Callable[[Pair], Mapping[str, str]]) -> list[tuple[str, str]]:
    """(one line, diff against the incumbent's ``part``) of other fast programs, the fastest first."""
    now = part(state.incumbent.candidate.pair)
    out = []
    for trial in state.history.fastest_first:
        other = part(trial.candidate.pair)
        if trial is not state.incumbent and other != now and trial.time_us < (state.baseline.time_us or 0.0):  # type: ignore[operator]
            out.append((one_line(trial, state.baseline.time_us), shortened(diff(now, other), _DIFF)))
    return out[: _BEST - 1]


def sites(template: Template, shown: Iterable[str]) -> list[str]:
    """The places that decide the launch, best first: ``op_host/x.cpp:34 TILE_LENGTH = 2048 (tile; feeds field)``."""
    paths = set(shown)
    out = []
    for s in template.sites:
        if s.path in paths:
            line = template.program.files[s.path].data[: s.start].count(b"\n") + 1
            text = shortened(" ".join(s.text.split()), 60)
            out.append(f"{s.path}:{line} {s.name}: `{text}` ({s.purpose}; decides {', '.join(sorted(s.reach))})")
    return out[:_SITES]


def failure(trial: Trial, operator: Operator) -> str:
    """Why a trial counts for nothing, with the compiler's own words where there are some, and no path of this machine.

    Files are named as in prompts, below the operator's folder; headers by their names alone.
    """
    return shortened(without_paths(failure_text(trial).replace(f"{operator.root}/", "")), _LOG)


def failure_text(trial: Trial) -> str:
    """The kind of failure, its reason, and the compiler's words."""
    outcome = trial.outcome
    assert not isinstance(outcome, Timed)
    text = f"{type(outcome).__name__}: {outcome.reason}"
    return f"{text}\n{_once(outcome.log)}" if isinstance(outcome, CompileFailed) and outcome.log else text


def _once(log: str) -> str:
    """A compiler's words without what it says again, and without what it says of our own macros."""
    lines = dict.fromkeys(line for line in log.splitlines() if "warning: poisoning existing macro" not in line)
    return "\n".join(lines)


def diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A unified diff of all files that differ."""
    out: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        one, two = before.get(path, "").splitlines(), after.get(path, "").splitlines()
        out += difflib.unified_diff(one, two, f"a/{path}", f"b/{path}", n=2, lineterm="")
    return "\n".join(out)


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length].rstrip() + " [...]"


def synchronization(operator: Operator) -> str:
    """What the kernel's build says about who orders the pipes."""
    if operator.auto_sync:
        return (
            "The kernel is built with the compiler's automatic synchronization: it orders vector instructions with "
            "each other, and scalar accesses with all pipes, and that order costs time. Copies and what uses their "
            "bytes need a queue (EnQue, DeQue), a flag (SetFlag, WaitFlag) or a barrier in the kernel's text, in both "
            "directions: a candidate that leaves such an order to the compiler where the original doesn't is refused. "
            "What runs on different cores is not ordered."
        )
    return (
        "The kernel is built without automatic synchronization (--cce-auto-sync=off): every access of one pipe to "
        "bytes that another pipe touches must be ordered by a queue (EnQue, DeQue), a flag (SetFlag, WaitFlag) or a "
        "PipeBarrier; a vector instruction that reads what an earlier one wrote needs PipeBarrier<PIPE_V>."
    )
