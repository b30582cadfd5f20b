"""Unmodified operators of CANN at shapes whose times on silicon are published: ``operators.csv``.

The times are cann-bench's (hicann/cann-bench@d59d44c: ``tasks/metadata/910b2.json``, cases beside the operators
there), task durations of CANN's own kernels on a 910B2, each launch behind a kernel that reads as many bytes as L2
holds (``src/kernel_eval/eval/perf_eval.py`` there). Taken were all cases that CANN answers by one kernel of its open
repositories and whose time is not the cap of ten times the hardware's bound that the table publishes instead of slower
ones; up to 50 million elements of inputs. Of all that is in the clock they had a part in one law, that of pages
(``flushed.page_us``; docs/fidelity_evidence.md says how).
"""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..build.toolkit import virtual
from ..errors import AscendOptError, SettingsError
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..nouns.case import Case
from ..nouns.chip import FLUSHED, WARM, load_chip
from ..nouns.clocks import interval, plausible
from ..nouns.outcome import Timed
from ..nouns.profile import Profile
from ..settings import settings, variable
from ..sources.project import load_project

PUBLISHED = Path(__file__).with_name("operators.csv")
#: Rows of operators on cube cores, of the same source by the same rule: another clock, so they are asked for by name.
ON_CUBES = Path(__file__).with_name("operators_cube.csv")
#: Rows of other sources, of operators that others wrote and measured, in launches that follow each other: `warm` is
#: their state. They are asked for by name, and no constant was taken from them.
OF_OTHERS = Path(__file__).with_name("operators_others.csv")
#: In which a row is modelled: what the published launches found, and what `run` and `tune` show.
STATES = (FLUSHED, WARM)


@dataclass(frozen=True)
class PublishedOperator:
    """A published time. ``operator``: its folder in a checkout of ``repository``; ``domain``: what an input may hold,
    by its position, as op.toml says it; ``task_duration_us``: on silicon; ``in_place``: inputs that the kernel changes
    without the definition having an output for them."""

    id: str
    chip: str
    repository: str
    operator: str
    case: Case
    domain: Mapping[int, Mapping[str, Any]]
    task_duration_us: float
    in_place: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        return self.id.partition("/")[0]


@dataclass(frozen=True)
class ModelledOperator:
    """``profiles`` by state; ``replayed``: task durations (us) by state, under plausible clocks; ``reason``: why there
    is neither."""

    published: PublishedOperator
    profiles: Mapping[str, Profile]
    replayed: Mapping[str, Sequence[float]] = field(default_factory=dict)
    reason: str = ""

    def error_percent(self, state: str) -> float | None:
        """Of the modelled task duration."""
        if state not in self.profiles:
            return None
        return 100 * (self.profiles[state].task_duration_us / self.published.task_duration_us - 1)

    def is_inside(self, state: str) -> bool:
        """Whether the published time lies where nine of ten plausible clocks see the task duration."""
        found = interval(self.replayed[state])
        return found is not None and found.low <= self.published.task_duration_us <= found.high


@dataclass(frozen=True)
class FamilyErrors:
    """Of a family's rows in one state: how many, the median of the errors and of their sizes, and the worst, in per
    cent; ``inside``: share of the published times in the interval over plausible clocks; ``ordered``: share of the
    pairs whose published times differ by 5 % and more that are modelled in that order (None: there is no such pair)."""

    family: str
    rows: int
    bias: float
    median: float
    worst: float
    inside: float
    ordered: float | None


def read(path: Path = PUBLISHED) -> tuple[PublishedOperator, ...]:
    """The table, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedOperator(
                *(line["id"], line["chip"], line["repository"], line["operator"]),
                Case.from_json(json.loads(line["case"])),
                {int(i): domain for i, domain in json.loads(line["domain"] or "{}").items()},
                float(line["task_duration_us"]),
                tuple((line.get("in_place") or "").split()),
            )
            for line in csv.DictReader(file)
        )


def known(names: Sequence[str]) -> tuple[PublishedOperator, ...]:
    """The rows that ``names`` are chosen from: those on cube cores and of others, too, where there are any names."""
    return (*read(), *(read(ON_CUBES) + read(OF_OTHERS) if names else ()))


def chosen(names: Sequence[str], rows: Sequence[PublishedOperator]) -> tuple[PublishedOperator, ...]:
    """Those of these ids and families; all where none is named. Raises SettingsError for a name that nothing has."""
    told = {r.id for r in rows} | {r.family for r in rows}
    if unknown := sorted(set(names) - told):
        families = ", ".join(dict.fromkeys(r.family for r in rows))
        raise SettingsError(
            f"no published operator {', '.join(unknown)}.", f"Families: {families}; a row as swi_glu/2."
        )
    return tuple(r for r in rows if not names or r.id in names or r.family in names)


def run(rows: Sequence[PublishedOperator], chip: str | None = None) -> Iterator[ModelledOperator]:
    """Launches each operator as it is written, once in every state, on its part or on ``chip``.

    Raises:
        SettingsError: a repository of these rows has no checkout.
    """
    folders = {name: _checkout(name) for name in dict.fromkeys(row.repository for row in rows)}
    for row in rows:
        with Evaluator(virtual(), chip or row.chip, workers=1) as evaluator:
            try:
                yield _one(row, folders[row.repository] / row.operator, evaluator)
            except AscendOptError as error:
                yield ModelledOperator(row, {}, reason=error.message)


def checkouts() -> dict[str, Path | None]:
    """By repository, what the settings say of where a checkout is."""
    found = settings()
    return {
        "ops-nn": found.ops_nn,
        "ops-transformer": found.ops_transformer,
        "ops-math": found.ops_math,
        "s9-operators": found.s9_operators,
    }


def _checkout(repository: str) -> Path:
    checkout = checkouts()[repository]
    if checkout is None or not checkout.is_dir():
        name = variable(repository.replace("-", "_")).name
        raise SettingsError("published operators need their sources.", f"Set {name} to a checkout of {repository}.")
    return checkout


def _one(row: PublishedOperator, folder: Path, evaluator: Evaluator) -> ModelledOperator:
    operator = load_project(folder)
    operator = replace(operator, settings={**operator.settings, "in_place": list(row.in_place)})
    signature = evaluator.describe(operator).signature
    domain = {signature.inputs[i].name: dict(values) for i, values in row.domain.items()}
    operator = replace(operator, settings={**operator.settings, "domain": domain})
    clocks = plausible(load_chip(evaluator.chip))
    profiles: dict[str, Profile] = {}
    replayed: dict[str, Sequence[float]] = {}
    for state in STATES:
        gate = Gate(operator, row.case, evaluator, signature=signature, state=state)
        built = gate.build(operator.baseline, clocks)
        if not isinstance(built.outcome, Timed):
            return ModelledOperator(row, {}, reason=built.outcome.reason)
        profiles[state], replayed[state] = built.outcome.profile, built.result.replayed
    return ModelledOperator(row, profiles, replayed)


def summary(found: Sequence[ModelledOperator], state: str) -> list[FamilyErrors]:
    """Per family that has a row, in the order of the table, and ``all`` of them behind it."""
    timed = [one for one in found if one.profiles]
    families = dict.fromkeys(one.published.family for one in timed)
    by_name = {name: [one for one in timed if one.published.family == name] for name in families}
    return [_errors(name, of, [of], state) for name, of in by_name.items()] + (
        [_errors("all", timed, list(by_name.values()), state)] if timed else []
    )


def _errors(
    name: str, of: Sequence[ModelledOperator], groups: Sequence[Sequence[ModelledOperator]], state: str
) -> FamilyErrors:
    errors = [e for one in of if (e := one.error_percent(state)) is not None]
    pairs = [ordered for group in groups for ordered in _pairs(group, state)]
    return FamilyErrors(
        *(name, len(of), statistics.median(errors), statistics.median(map(abs, errors)), max(errors, key=abs)),
        statistics.fmean(one.is_inside(state) for one in of),
        statistics.fmean(pairs) if pairs else None,
    )


def _pairs(of: Sequence[ModelledOperator], state: str) -> Iterator[bool]:
    times = sorted((one.published.task_duration_us, one.profiles[state].task_duration_us) for one in of)
    for i, (short, first) in enumerate(times):
        yield from (first < second for long, second in times[i + 1 :] if long >= 1.05 * short)


def page(found: Sequence[ModelledOperator]) -> str:
    """What was found as Markdown: errors by family and state, then every row."""
    return "\n".join(_lines(found))


def _lines(found: Sequence[ModelledOperator]) -> Iterator[str]:
    timed = [one for one in found if one.profiles]
    yield f"{len(found)} published times, {len(timed)} modelled; the others are refused, with the reasons below.\n"
    yield "| operator | state | rows | median error | median of its size | worst | within the interval | in order |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for state in STATES:
        for e in summary(found, state):
            ordered = "" if e.ordered is None else f"{100 * e.ordered:.0f} %"
            errors = f"{e.bias:+.1f} % | {e.median:.1f} % | {e.worst:+.1f} %"
            yield f"| {e.family} | {state} | {e.rows} | {errors} | {100 * e.inside:.0f} % | {ordered} |"
    yield f"\n| row | inputs | published, us | {' | '.join(f'modelled {s}, us | error' for s in STATES)} |"
    yield f"|---|---|--:|{'--:|--:|' * len(STATES)}"
    for one in timed:
        times = (f"{one.profiles[s].task_duration_us:.1f} | {one.error_percent(s):+.1f} %" for s in STATES)
        row = one.published
        yield f"| {row.id} | {_inputs(row.case)} | {row.task_duration_us:g} | {' | '.join(times)} |"
    yield "\n| refused | why |\n|---|---|"
    for one in found:
        if not one.profiles:
            yield f"| {one.published.id} | {_short(one.reason)} |"


def _inputs(case: Case) -> str:
    """The first input, as ``2 x float16[8,1024]`` where it is a list."""
    first = case.inputs[0]
    return f"{len(first)} x {first[0]}" if isinstance(first, tuple) else str(first)


def _short(reason: str) -> str:
    """The first sentence of a reason, without the folders that sources lie in."""
    text = re.sub(r"/\S*/(?=[\w.]+:\d)", "", reason.partition(" [trial")[0])
    return text.partition("\n")[0].replace("|", "\\|")[:200]
