"""The fit on models that are formulas: what is determined, what is not, and what outliers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from ascendopt_tune.calibrate.fit import fit
from ascendopt_tune.calibrate.measure import Measured
from ascendopt_tune.nouns.chip import Chip, Constant

Clock = Mapping[str, float]
NOMINAL = {"launch.base_us": 0.5, "vector.head_cycles": 22.0, "vector.barrier_cycles": 4.0, "scalar.issue_cycles": 0.0}
TRUTH = {"launch.base_us": 0.8, "vector.head_cycles": 14.0, "vector.barrier_cycles": 4.0, "scalar.issue_cycles": 1.5}


def chip() -> Chip:
    constants = {k: Constant(v, v / 1.3, v * 1.3, "a guess") for k, v in NOMINAL.items()}
    constants["scalar.issue_cycles"] = Constant(0, 0, 4, "a guess")
    return Chip("nominal", dict(NOMINAL), constants)


class Formulas:
    """A model of a few formulas by name."""

    def __init__(self, formulas: Mapping[str, Callable[[Clock], float]]) -> None:
        self.formulas = formulas

    def times_us(self, name: str, clocks: Sequence[Clock]) -> list[float]:
        return [self.formulas[name]({**NOMINAL, **clock}) for clock in clocks]

    def measured(self, noise: float = 0.0, seed: int = 0) -> list[Measured]:
        random = np.random.default_rng(seed)
        return [
            Measured(name, "", formula(TRUTH) * (1 + noise * random.standard_normal()), noise, 10)
            for name, formula in self.formulas.items()
        ]


def launches(n: int) -> dict[str, Callable[[Clock], float]]:
    out: dict[str, Callable[[Clock], float]] = {"empty": lambda c: c["launch.base_us"]}
    for i in range(1, n):
        out[f"vector/{i}"] = lambda c, i=i: c["launch.base_us"] + 0.01 * i * c["vector.head_cycles"]  # type: ignore[misc]
        out[f"scalar/{i}"] = lambda c, i=i: c["launch.base_us"] + i * c["scalar.issue_cycles"]  # type: ignore[misc]
    return out


def test_constants_come_back_with_honest_errors() -> None:
    model = Formulas(launches(20))
    found = fit(model, model.measured(0.01), chip())
    for key in ("launch.base_us", "vector.head_cycles", "scalar.issue_cycles"):
        one = found.determined[key]
        assert one.value == pytest.approx(TRUTH[key], rel=0.02)
        assert one.low < one.value < one.high
        assert abs(one.value / TRUTH[key] - 1) < 4 * one.error < 0.1


def test_what_nothing_sees_keeps_its_value_and_is_said() -> None:
    found = fit(Formulas(launches(5)), Formulas(launches(5)).measured(), chip())
    assert found.undetermined["vector.barrier_cycles"] == "no microbenchmark sees it"
    assert "vector.barrier_cycles" not in found.clock


def test_of_two_that_are_only_seen_together_one_is_held() -> None:
    model = Formulas({
        f"{i}": lambda c, i=i: (c["vector.head_cycles"] + c["vector.barrier_cycles"]) * i for i in range(1, 9)  # type: ignore[misc]
    })  # fmt: skip
    found = fit(model, model.measured(0.001), chip())
    assert "seen together with" in found.undetermined["vector.barrier_cycles"]
    head, held = found.determined["vector.head_cycles"], chip().constants["vector.barrier_cycles"]
    total = head.value + NOMINAL["vector.barrier_cycles"]
    assert total == pytest.approx(TRUTH["vector.head_cycles"] + TRUTH["vector.barrier_cycles"], rel=0.01)
    assert head.high - head.low == pytest.approx(held.high - held.low, rel=0.1), "as wide as the held one's"


def test_an_outlier_is_not_believed() -> None:
    model = Formulas(launches(20))
    measured = model.measured(0.005)
    wrong = measured[7]
    measured[7] = Measured(wrong.name, "", wrong.us * 3, wrong.error, 10)
    found = fit(model, measured, chip())
    assert found.clock["vector.head_cycles"] == pytest.approx(TRUTH["vector.head_cycles"], rel=0.03)
    assert max(found.residuals, key=lambda r: abs(r.percent)).name == wrong.name


def test_what_the_model_leaves_out_widens_the_intervals() -> None:
    """Times that are off by 5 %, each in its own way, though measured to 0.2 %."""
    model, random = Formulas(launches(20)), np.random.default_rng(3)
    exact = model.measured()
    wrong = [Measured(m.name, "", m.us * (1 + 0.05 * random.standard_normal()), 0.002, 10) for m in exact]
    good = fit(model, [Measured(m.name, "", m.us, 0.002, 10) for m in exact], chip())
    bad = fit(model, wrong, chip())
    assert good.scatter == 1
    assert bad.scatter > 8
    for key, one in bad.determined.items():
        assert one.error > 8 * good.determined[key].error
        assert one.low <= TRUTH[key] <= one.high
