"""Outcome: what became of one candidate. A sum type; a failed candidate has a reason, never a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .profile import Profile


@dataclass(frozen=True)
class Timed:
    """Passed the gate and was timed; ``checks`` is how many output comparisons were made."""

    profile: Profile
    checks: int = 0


@dataclass(frozen=True)
class CompileFailed:
    reason: str
    log: str = ""
    part: str = "kernel"  # "tiling" or "kernel"


@dataclass(frozen=True)
class LaunchFailed:
    """The tiling program refused the case, or the launch was refused (queue misuse, UB overflow, ...)."""

    reason: str


@dataclass(frozen=True)
class Deadlock:
    """A core would wait for ever. ``advice``: what to do about this kind of wait; the reason ends with it."""

    reason: str
    advice: str = ""


@dataclass(frozen=True)
class WrongResult:
    reason: str


@dataclass(frozen=True)
class Hazard:
    reason: str
    reports: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class OutOfBounds:
    reason: str
    reports: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class TimedOut:
    reason: str


@dataclass(frozen=True)
class Crashed:
    reason: str


Failure = CompileFailed | LaunchFailed | Deadlock | WrongResult | Hazard | OutOfBounds | TimedOut | Crashed
Outcome = Timed | Failure

KINDS: tuple[type[Outcome], ...] = (
    Timed,
    CompileFailed,
    LaunchFailed,
    Deadlock,
    WrongResult,
    Hazard,
    OutOfBounds,
    TimedOut,
    Crashed,
)
_BY_NAME = {kind.__name__: kind for kind in KINDS}


def reason_of(outcome: Outcome) -> str:
    """Why it doesn't count; nothing of one that does."""
    return "" if isinstance(outcome, Timed) else outcome.reason


def outcome_to_json(outcome: Outcome) -> dict[str, object]:
    """JSON document with the kind under ``outcome``; inverse of :func:`outcome_from_json`."""
    doc: dict[str, object] = {"outcome": type(outcome).__name__}
    for name in outcome.__dataclass_fields__:
        value = getattr(outcome, name)
        doc[name] = (
            value.to_json() if isinstance(value, Profile) else list(value) if isinstance(value, tuple) else value
        )
    return doc


def outcome_from_json(doc: Mapping[str, object]) -> Outcome:
    fields = {k: v for k, v in doc.items() if k != "outcome"}
    if "profile" in fields:
        fields["profile"] = Profile.from_json(fields["profile"])  # type: ignore[arg-type]
    if "reports" in fields:
        fields["reports"] = tuple(fields["reports"])  # type: ignore[arg-type]
    return _BY_NAME[str(doc["outcome"])](**fields)  # type: ignore[arg-type]
