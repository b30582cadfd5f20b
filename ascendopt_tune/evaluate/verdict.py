"""From the virtual NPU's report of a launch to an Outcome, in words that tell what to change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..device.launch import SYSTEM_WORKSPACE
from ..nouns.chip import Chip
from ..nouns.outcome import Deadlock, Failure, Hazard, LaunchFailed, OutOfBounds
from ..nouns.profile import Profile
from .protocol import Habits
from .symbolize import locate

#: What to do about a core that waits for ever, by the call it waits in.
_DEADLOCK_ADVICE = {
    "WaitFlag": "Set the flag before every wait for it, with the same event and id, on every path that leads there: "
    "the first pass of a loop has nothing to wait for unless it was set before the loop.",
    "PipeBarrier": "Wait for a flag once between two settings of it, or use two ids.",
    "SyncAll": "Let every block call it equally often, those without work included, and launch no more blocks than the "
    "chip has cores.",
    "CrossCoreWaitFlag": "Let every block set the flag as often as it is waited for, those without work included (of a "
    "group: its cube core, or all its vector cores), and launch no more blocks than the chip has cores.",
}
_ANY_DEADLOCK = "Every wait needs its signal on a pipe that doesn't itself wait for this one."

#: What a kernel may take from automatic synchronization (asc-devkit, synchronization within a core).
_DOCUMENTED = (
    "Automatic synchronization is documented to order vector instructions with each other, and scalar accesses with "
    "every pipe; whatever else the original leaves to queues, flags and barriers, a candidate has to, too."
)

_SHOWN = 3  # hazards that are written out in a reason; all are in the outcome's reports


class Failed(Exception):
    """Ends an evaluation with an outcome that is not Timed."""

    def __init__(self, outcome: Failure, hazards: Sequence[Mapping[str, object]] = ()) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome
        self.hazards = tuple(hazards)


def failure_of(
    trial: Mapping[str, Any],
    binary: Path,
    foreign: Sequence[Path],
    label: str,
    allowed: Habits | None = None,
) -> Failure | None:
    """Why the launch of one trial doesn't count, or None when it does (its results are not looked at here).

    Args:
        trial: what execute.execute tells of it.
        foreign: folders whose source lines are not the user's.
        label: the trial, in words.
        allowed: see protocol.EvaluateRequest.
    """
    report: Mapping[str, Any] = trial["report"]
    errors, hazards, unwritten = _placed(report, binary, foreign)
    if errors:
        return _error(errors, label, trial.get("names", ()))
    if trial["error"]:
        return LaunchFailed(f"{trial['error']} [{label}]")
    if trial["damage"]:
        text = f"the kernel changed bytes that are not its output: {'; '.join(trial['damage'])} [{label}]"
        return OutOfBounds(text, tuple({"kind": "damage", "message": d} for d in trial["damage"]))
    if hazards:
        return Hazard(_text(list(map(hazard_text, hazards)), label), tuple(hazards))
    if unwritten:
        return Hazard(_text(list(map(unwritten_text, unwritten)), label), tuple(unwritten))
    if allowed is None:
        return None
    return _more_slack(report, trial.get("names", ()), allowed, label) or _more_trust(
        report, binary, foreign, allowed, label
    )


_NO_WORKSPACE = (
    "If that is the workspace, it is empty where a kernel file alone is launched: give it its size by "
    "--input workspace=uint8[BYTES] --in-place workspace"
)
_Reports = list[dict[str, Any]]


def _placed(report: Mapping[str, Any], binary: Path, foreign: Sequence[Path]) -> tuple[_Reports, _Reports, _Reports]:
    """Errors, hazards and reads of what nobody wrote, each with the source line it happened at."""
    errors: _Reports = [dict(e) for e in report.get("errors", ())]
    hazards: _Reports = [dict(h) for h in report.get("hazards", ())]
    unwritten: _Reports = [dict(u) for u in report.get("unwritten", ())]
    _place([*errors, *hazards, *unwritten], binary, foreign)
    return errors, hazards, unwritten


def _place(reports: _Reports, binary: Path, foreign: Sequence[Path]) -> None:
    """Adds to each report's sites (an error is one itself) the source line."""
    for report in reports:
        report.update({side: dict(report[side]) for side in ("first", "second", "sink") if side in report})
    sites = [r[side] for r in reports for side in ("first", "second", "sink") if side in r]
    sites += [r for r in reports if "first" not in r]
    places = locate(binary, [int(s["pc"]) for s in sites if s.get("pc") is not None], foreign)
    for s in sites:
        s["place"] = places.get(s.get("pc") or -1, "")


def _error(errors: _Reports, label: str, names: Sequence[str]) -> Failure:
    first = errors[0]
    told = f"{first['message']}{_at(first['place'])}"
    if first["kind"] == "out_of_bounds":
        # A kernel file's own workspace is as long as the system's part, of which it gets the end; so may a tensor be.
        if "workspace" in names and f"of a tensor of {SYSTEM_WORKSPACE} B" in told:
            told += f". {_NO_WORKSPACE}"
        return OutOfBounds(f"{told} [{label}]", tuple(errors))
    if first["kind"] == "deadlock":
        advice = _DEADLOCK_ADVICE.get(first["api"], _ANY_DEADLOCK)
        return Deadlock(f"{told}. {advice} [{label}]", advice)
    return LaunchFailed(f"{told} [{label}]")


def _more_slack(report: Mapping[str, Any], names: Sequence[str], allowed: Habits, label: str) -> Failure | None:
    """Where the kernel goes past a tensor and the original doesn't."""
    for place, slack in slack_of(report, names).items():
        usual = allowed.slack.get(place, 0)
        if slack > usual:
            text = f"the kernel {place}, up to byte {slack} past its end, inside the blocks its memory is rounded up to"
            return OutOfBounds(f"{text}; the original {_goes(usual)} [{label}]")
    return None


def _more_trust(
    report: Mapping[str, Any], binary: Path, foreign: Sequence[Path], allowed: Habits, label: str
) -> Failure | None:
    """What the kernel relies on that no rule allows and the original doesn't, and where it does."""
    more = sorted(set(report.get("relies_on", ())) - set(allowed.relies_on))
    if not more:
        return None
    text = f"the kernel relies on more than the original does, none of it documented: {', '.join(more)}"
    orders = [
        dict(order)
        for order in report.get("leaned_on", ())
        if f"{order['first']['pipe']}_{order['second']['pipe']} order" in more
    ]
    _place(orders, binary, foreign)
    if orders:
        told = [hazard_text(order) for order in orders[:_SHOWN]]
        text = " ".join([f"{text}.", *(t[:1].upper() + t[1:] for t in told), _DOCUMENTED])
    return Hazard(f"{text} [{label}]", tuple({"kind": "relies_on", "message": m} for m in more))


def slack_of(report: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Bytes past tensors that a launch accessed, by place: protocol.Habits.slack.

    Args:
        names: of the kernel's parameters, in their order.
    """
    found: dict[str, int] = {}
    for use in report.get("slack", ()):
        parameter = re.search(r"kernel parameter (\d+)$", use["buffer"])
        number = int(parameter[1]) if parameter else len(names)
        what = names[number] if number < len(names) else use["buffer"]
        place = f"{'writes' if use['write'] else 'reads'} behind {what}"
        found[place] = max(found.get(place, 0), int(use["bytes"]))
    return found


def _goes(usual: int) -> str:
    return f"goes up to byte {usual}" if usual else "doesn't go there"


def hazard_text(hazard: Mapping[str, Any]) -> str:
    """Both accesses and the edge that is missing between them."""
    first, second = hazard["first"], hazard["second"]
    same = first["core"] == second["core"]
    cores = f"core {first['core']}" if same else f"cores {first['core']} and {second['core']}"
    both = f"{_access(second)} is not ordered after {_access(first)}"
    return f"{both}: both touch {_bytes(hazard, '')} on {cores}. Missing: {hazard['missing']}."


def unwritten_text(use: Mapping[str, Any]) -> str:
    """Who read bytes that nobody wrote, and what they decided."""
    first, sink = use["first"], use["sink"]
    text = f"{_access(first)} on core {first['core']} gets {_bytes(use, '')}, which nobody has written"
    if not use["sink_end"]:
        return f"{text}; {_access(sink)} takes a value from there."
    return f"{text}; {_access(sink)} carries them to the output: {_bytes(use, 'sink_', 'GM')}."


def _bytes(item: Mapping[str, Any], prefix: str, memory: str = "") -> str:
    span = f"{memory or item['memory']} bytes [{item[prefix + 'begin']}, {item[prefix + 'end']})"
    buffer = item.get(prefix + "buffer")
    return (
        f"{span} of {buffer}"
        if buffer and "GM" in (memory, item["memory"])
        else f"{span} ({buffer})"
        if buffer
        else span
    )


def _access(site: Mapping[str, Any]) -> str:
    return f"the {site['access']} by {site['api'] or 'an access'} on pipe {site['pipe']}{_at(site['place'])}"


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _text(sentences: Sequence[str], label: str) -> str:
    text = " ".join(s[:1].upper() + s[1:] for s in sentences[:_SHOWN])
    more = f" {len(sentences) - _SHOWN} more." if len(sentences) > _SHOWN else ""
    return f"{text}{more} [{label}]"


def least_us(chip: Chip, written_bytes: int) -> float:
    """Microseconds that no launch that writes so many bytes can fall below, by the chip's most optimistic numbers."""

    def most(key: str, end: str) -> float:
        constant = chip.constants.get(key)
        return float(getattr(constant, end)) if constant is not None else float(chip.values.get(key, 0.0))

    bandwidth = max(most("memory.l2_gb_per_s", "high"), most("memory.hbm_gb_per_s", "high"))
    return most("launch.base_us", "low") + (written_bytes / (bandwidth * 1e3) if bandwidth else 0.0)


def profile_of(result: Mapping[str, Any], block_dim: int) -> Profile:
    """The profile of a measured execution: modelled by the virtual NPU, or timed by events on a real one."""
    measured = result["measured"]
    if measured is None:
        return Profile.from_json(result["trials"][0]["report"]["profile"])
    counters = {k: v for k, v in measured.items() if k != "candidate_us"}
    return Profile(measured["candidate_us"], block_dim=block_dim, counters=counters)
