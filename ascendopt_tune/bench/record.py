"""What is kept of one run of one method on one operator."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """A pair on the way from the baseline (``stage`` 0) to the best one, each the parent of the next.

    ``stage``: 1 changed the tiling program, 2 the kernel, 3 both. Modelled: ``task_us``, the task; ``launch_us``, what
    of it is no core's work (gain.py).
    """

    stage: int
    change: str
    task_us: float
    launch_us: float


@dataclass(frozen=True)
class RunRecord:
    """``trace``: the time of each evaluation in us, modelled, None for what failed the gate. ``key``: of the subject.

    ``best_us``: of the fastest pair that was confirmed, the baseline's if none was; ``refused``: why faster ones were
    not; ``best_pair``: its hash; ``steps``: the way to it. ``speedup_low``, ``speedup_high``, ``wins``: the interval
    of the speedup over plausible clocks, and the share of them in which the best pair is faster than the baseline;
    None where nobody asked. ``over_clocks``: the speedup under each of them, the same ones in the same order for all
    runs on a chip; nothing where the baseline is kept. ``bound_us``: the hardware's bound (evaluate/bound.py) by what
    the baseline and the best pair need, None in records of older versions. ``elements``: of the largest tensor.
    ``proposer_s``: seconds of the wall clock that the method itself took. ``code``: which version of the search.
    """

    key: str
    operator: str
    method: str
    seed: int
    budget: int
    code: str
    list: str
    level: int
    size: str
    elements: int
    chip: str
    toolkit: str
    baseline_us: float
    best_us: float
    best_at: int
    trace: tuple[float | None, ...]
    outcomes: dict[str, int]
    repeats: int
    refused: tuple[str, ...] = ()
    best_pair: str = ""
    steps: tuple[Step, ...] = ()
    speedup_low: float | None = None
    speedup_high: float | None = None
    wins: float | None = None
    over_clocks: tuple[float, ...] = ()
    bound_us: float | None = None
    proposer_s: float = 0.0
    evaluate_s: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[object, ...]:
        return self.key, self.method, self.seed, self.budget, self.code

    @property
    def case(self) -> tuple[str, str]:
        """(operator, size): what is compared between methods."""
        return self.operator, self.size

    @property
    def changes(self) -> tuple[str, ...]:
        """What the best pair changed, in order."""
        return tuple(step.change for step in self.steps[1:])

    @property
    def speedup(self) -> float:
        """Baseline time over the best confirmed time; 1.0 where nothing faster was confirmed."""
        return self.baseline_us / self.best_us

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(document: dict[str, Any]) -> RunRecord:
        given = dict(document)
        for name in ("trace", "refused", "over_clocks"):
            given[name] = tuple(given.get(name, ()))
        given["steps"] = tuple(Step(**step) for step in given["steps"])
        return RunRecord(**given)
