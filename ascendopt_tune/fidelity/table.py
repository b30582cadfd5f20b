"""Tables: the scenarios there are kernels for, in families, and which published values can't be repeated."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import CaseError, did_you_mean
from ..nouns.chip import STATES, WARM
from .measured import CHIPS_2201, PublishedValue

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Scenario:
    """One thing that was measured, as a kernel of ours: ``kernels/<kernel>.cpp`` with macros ``define``.

    ``buffers`` are bytes, one per kernel argument; with ``tiling`` there is one argument more, the last, that holds
    these 32-bit words as an operator's tiling data, filled up with zeros to ``tiling_bytes``. ``inputs`` are words at
    the start of a buffer, by its index; where nothing is given the content doesn't matter. ``ticks`` is the index of
    the buffer in which the kernel leaves ``GetSystemCycle()`` before and after what was measured, two 64-bit numbers.

    ``points`` are ids of rows in ``silicon.csv``; a row of ``measurements.csv`` belongs to the scenario when ``source``
    is in its source path and ``match`` in its scenario column. ``state`` is one of STATES. ``missing`` names the
    mechanism the model lacks where it is known to miss; ``left_out`` says of a metric why its value means nothing here.
    """

    name: str
    kernel: str
    blocks: int
    chip: str
    define: tuple[str, ...] = ()
    buffers: tuple[int, ...] = ()
    tiling: tuple[int, ...] | None = None
    tiling_bytes: int = 0
    inputs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    auto_sync: bool = True
    state: str = WARM
    slow: bool = False
    ticks: int | None = None
    points: tuple[str, ...] = ()
    source: str = ""
    match: str = ""
    missing: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """Scenarios of one family are ranked against each other."""
        return self.name.split("/")[0]


@dataclass(frozen=True)
class PublishedGain:
    """A published gain: what makes scenario ``fast`` faster than scenario ``slow`` of the same family."""

    what: str
    slow: str
    fast: str


@dataclass(frozen=True)
class Family:
    """Scenarios that belong together.

    ``ranked``: all of them do the same work, so which is the faster one must come out; otherwise they are the same
    kernel at different work, of which only the rank correlation is asked.
    """

    name: str
    ranked: bool
    scenarios: tuple[Scenario, ...]
    gains: tuple[PublishedGain, ...]


@dataclass(frozen=True)
class OmittedScenario:
    """Rows that can't be done again, and why: by source and scenario text, or by patterns of ids."""

    reason: str
    source: str = ""
    match: str = ""
    points: tuple[str, ...] = ()

    def fits(self, row: PublishedValue) -> bool:
        """Whether ``row`` is one of them."""
        if self.points:
            return any(fnmatchcase(row.id, pattern) for pattern in self.points)
        return self.source in row.source and self.match in row.scenario


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}


def _family(entry: Mapping[str, Any]) -> Family:
    common = {k: v for k, v in entry.items() if k not in ("name", "ranked", "gain", "scenario")}
    name, made = entry["name"], []
    for own in entry["scenario"]:
        values = common | own
        values["name"] = f"{name}/{own['name']}" if "name" in own else name
        values["define"] = [*common.get("define", []), *own.get("define", [])]
        made.append(Scenario(**_tuples(values)))
        if made[-1].state not in STATES:
            raise ValueError(f"{values['name']}: state {made[-1].state!r}")
    gains = tuple(PublishedGain(g["what"], f"{name}/{g['slow']}", f"{name}/{g['fast']}") for g in entry.get("gain", []))
    return Family(name, entry.get("ranked", True), tuple(made), gains)


@cache
def _documents() -> tuple[Mapping[str, Any], ...]:
    return tuple(
        tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "scenarios").glob("*.toml"))
    )


@cache
def families() -> tuple[Family, ...]:
    """Every family, in the order of the files' names."""
    return tuple(_family(entry) for document in _documents() for entry in document.get("family", []))


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Every scenario there is a kernel for, those without a published row too."""
    return tuple(s for f in families() for s in f.scenarios)


@cache
def left_out() -> tuple[OmittedScenario, ...]:
    """Which published rows are not done again."""
    return tuple(
        OmittedScenario(**_tuples(entry)) for document in _documents() for entry in document.get("left_out", [])
    )


@cache
def _listed(kind: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(entry for document in _documents() for entry in document.get(kind, []))


def why_missed(scenario: str, metric: str) -> str:
    """Why the model misses this metric of a scenario, as far as it is known (missed.toml); "" for what isn't listed."""
    return next(
        (
            str(entry["reason"])
            for entry in _listed("missed")
            if any(fnmatchcase(scenario, p) for p in entry["rows"])
            and any(fnmatchcase(metric, p) for p in entry["metrics"])
        ),
        "",
    )


def why_turned(family: str) -> str:
    """Why the model turns orders of a family around (missed.toml); "" for what isn't listed."""
    return next((str(entry["reason"]) for entry in _listed("turned") if entry["family"] == family), "")


def why_gain(slow: str, fast: str) -> str:
    """Why the model misses a published gain (missed.toml); "" for what isn't listed."""
    text = f"{slow} > {fast}"
    return next((str(e["reason"]) for e in _listed("gain") if any(fnmatchcase(text, p) for p in e["gains"])), "")


def why_tau(family: str) -> str:
    """Why a family's rank correlation is low (missed.toml); "" for what isn't listed."""
    return next((str(entry["reason"]) for entry in _listed("tau") if family in entry["families"]), "")


def chosen(names: Sequence[str], slow: bool = False, cold: bool = False) -> tuple[Scenario, ...]:
    """The scenarios whose name is, or begins with, one of ``names``; without names all, slow ones if ``slow``.

    ``cold``: those measured at a first launch instead of the others.

    Raises:
        CaseError: nothing has such a name.
    """
    asked = tuple(s for s in scenarios() if (s.state == "cold") == cold)
    if not names:
        return tuple(s for s in asked if slow or not s.slow)
    for name in names:
        if not any(_called(s, name) for s in asked):
            known = ", ".join(dict.fromkeys(s.family for s in asked))
            near = did_you_mean(name, dict.fromkeys(n for s in asked for n in (s.family, s.name)))
            raise CaseError(
                f"no scenario is called {name!r}.{near}", f"Give a family ({known}), or one of its scenarios."
            )
    return tuple(s for s in asked if any(_called(s, name) for name in names))


def _called(scenario: Scenario, name: str) -> bool:
    return scenario.name == name or scenario.name.startswith(f"{name}/")


def scenario_of(row: PublishedValue) -> Scenario | None:
    """The scenario that does again what ``row`` measured."""
    if row.wide:
        return next((s for s in scenarios() if row.id in s.points), None)
    if row.chip not in CHIPS_2201:
        return None
    return next((s for s in scenarios() if s.source and s.source in row.source and s.match in row.scenario), None)


def reason_of(row: PublishedValue) -> str:
    """Why there is no scenario for ``row``; "" when nothing is known about it."""
    if not row.wide and row.chip not in CHIPS_2201:
        return f"measured on {row.chip}, another architecture than 2201"
    return next((x.reason for x in left_out() if bool(x.points) == row.wide and x.fits(row)), "")
