"""All that a run of the suite says: rows, limits, orders, gains, correlations, and what isn't repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import compare, cores, output, ranking, table
from .compare import ComparedRow
from .cores import CoreGains
from .measured import PublishedValue
from .ranking import ComparedGain, Inversion, Ranking
from .runner import Modelled


@dataclass(frozen=True)
class FidelitySummary:
    """``modelled`` beside the published values there are of it."""

    modelled: Sequence[Modelled]
    rows: Sequence[ComparedRow]
    inversions: Sequence[Inversion]
    gains: Sequence[ComparedGain]
    rankings: Sequence[Ranking]
    not_repeated: dict[str, int]  # reason: number of values

    @staticmethod
    def of(modelled: Sequence[Modelled], measured: Sequence[PublishedValue]) -> FidelitySummary:
        """Compares what was run with all its published values in ``measured``."""
        rows, families = compare.rows_of(modelled, measured), table.families()
        return FidelitySummary(
            *(modelled, rows, ranking.inversions(rows, families), ranking.gains(rows, families)),
            *(ranking.rankings(rows, families), compare.not_repeated(measured)),
        )

    @property
    def held(self) -> list[ComparedRow]:
        """Rows within their limit."""
        return [r for r in self.rows if r.verdict == "held"]

    @property
    def missed(self) -> list[ComparedRow]:
        """Rows outside."""
        return [r for r in self.rows if r.verdict == "missed"]

    @property
    def core_gains(self) -> list[CoreGains]:
        """What fewer and more cores are worth, by kernel."""
        return cores.core_gains(self.rows, table.families())

    @property
    def without_row(self) -> list[Modelled]:
        """What was run though no value of it is published."""
        return compare.without_row(self.modelled, self.rows)

    def lines(self) -> Iterator[str]:
        """The result in a few lines of text."""
        held, missed, middle = len(self.held), len(self.missed), compare.median_error(self.rows)
        yield f"{held} of {held + missed} rows with a limit are within it"
        yield f"median error of these rows: {middle:.1f} % (limit {compare.MEDIAN_PERCENT:g} %)"
        for i in self.inversions:
            yield f"wrong order: {i.faster} was measured faster than {i.slower} ({i.metric})"
        if not self.inversions:
            yield "no ranking within a family is inverted"
        for g in self.gains:
            yield (
                f"gain {g.slow} -> {g.fast} ({g.what}): measured {g.measured:.3g}, modelled {g.modelled:.3g}"
                f"{f', {g.verdict}' if g.verdict else ''}"
            )
        for r in self.rankings:
            yield f"Kendall's tau of {r.family} over {r.pairs} pairs: {r.tau:.2f}, {r.verdict}"

        for c in self.core_gains:
            yield (
                f"{'fewer' if c.fewer else 'more'} cores, {c.kernel}: {c.held} of {c.pairs} gains within a third, "
                f"together {c.share:.2f} of the measured logarithm"
            )

    def to_json(self) -> dict[str, object]:
        """JSON document; every time in it is modelled or published, as its name says."""
        return {
            "time": "modelled",
            "rows": [_row(r) for r in self.rows],
            "median_error_percent": compare.median_error(self.rows),
            "inversions": [vars(i) for i in self.inversions],
            "gains": [{**vars(g), "verdict": g.verdict} for g in self.gains],
            "rankings": [{**vars(r), "verdict": r.verdict} for r in self.rankings],
            "core_gains": [vars(c) for c in self.core_gains],
            "scenarios": {
                m.scenario.name: {**m.profile.to_json(), "ticks": m.ticks, "hazards": m.hazards} for m in self.modelled
            },
            "not_repeated": self.not_repeated,
        }


def _row(r: ComparedRow) -> dict[str, object]:
    m, limit = r.measured, output.limit_text(r)
    return {
        **{"id": m.id, "scenario": r.scenario, "chip": r.chip, "metric": m.metric, "unit": m.unit},
        **{"measured": m.value, "published": m.text, "modelled": r.modelled, "error_percent": r.error_percent},
        **{"limit_percent": float(limit) if limit else None, "verdict": r.verdict, "note": r.note},
    }
