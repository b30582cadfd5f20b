"""How far the intervals over plausible clocks are to be trusted: how many published values and ratios they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..nouns.clocks import interval, speedups
from .compare import rows_of
from .measured import PublishedValue
from .ranking import pairs
from .runner import Modelled
from .table import Family


@dataclass(frozen=True)
class Coverage:
    """Of published values, how many the interval over plausible clocks (5th to 95th percentile) holds.

    ``inside`` of ``rows`` with a limit. Of ``pairs`` of variants, one of which was measured faster: ``pairs_inside``,
    whose measured ratio lies in the interval of the modelled one; ``accepted``, whose faster one is faster under nearly
    all clocks, as a tuned pair has to be; ``reversed``, whose slower one is.
    """

    inside: int
    rows: int
    pairs_inside: int
    pairs: int
    accepted: int
    reversed: int

    def lines(self) -> Iterator[str]:
        """The same in words."""
        share, of_pairs = (100 * a / max(1, b) for a, b in ((self.inside, self.rows), (self.pairs_inside, self.pairs)))
        yield f"{self.inside} of {self.rows} published values ({share:.0f} %) lie in the 90 % interval"
        yield (
            f"{self.pairs_inside} of {self.pairs} published ratios of two variants ({of_pairs:.0f} %) lie in the 90 % "
            f"interval of the modelled one; {self.accepted} of the faster ones would be accepted, and {self.reversed} "
            f"of the slower ones"
        )


def coverage(modelled: Sequence[Modelled], measured: Iterable[PublishedValue], families: Sequence[Family]) -> Coverage:
    """``modelled`` were run with the clocks of :func:`ascendopt_tune.nouns.clocks.plausible`."""
    by_name = {m.scenario.name: m for m in modelled}
    rows = rows_of(modelled, measured)
    held = []
    for row in rows:
        found = interval(_under(by_name[row.scenario], row.measured.metric))
        if row.verdict and found:
            ends, rounding = row.measured.ends, row.measured.half_digit
            held.append(found.low - rounding <= ends[1] and ends[0] <= found.high + rounding)
    of_pairs = []
    for pair in pairs(rows, families):
        slow, fast = (_under(by_name[name], pair.metric) for name in (pair.slow, pair.fast))
        gain, loss = interval(speedups(slow, fast)), interval(speedups(fast, slow))
        if gain and loss:
            of_pairs.append((gain.low <= pair.measured <= gain.high, gain.survives, loss.survives))
    inside, accepted, reversed_ = (sum(column) for column in zip(*of_pairs, strict=True)) if of_pairs else (0, 0, 0)
    return Coverage(sum(held), len(held), inside, len(of_pairs), accepted, reversed_)


def _under(modelled: Modelled, metric: str) -> Sequence[float]:
    """Its times (us) under each clock; none for a metric that a replay doesn't tell."""
    times = modelled.under_other_clocks(metric)
    return () if times is None else times.tolist()
