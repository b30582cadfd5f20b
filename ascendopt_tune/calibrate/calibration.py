"""From a device to a chip file: measure, fit, write."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..build import toolkit as toolkits
from ..device.acl import Acl
from ..files import write_whole
from ..nouns.chip import Chip, Constant, load_chip
from . import measuring
from .fit import Fit, Residual, fit
from .measure import Effort
from .microbenchmarks import Microbenchmark, microbenchmarks
from .model import Models
from .parameters import FOLDED, ClockModel
from .write import chip_text


@dataclass(frozen=True)
class Calibration:
    """What became of it; ``nominal`` is the chip it began from."""

    session: measuring.Session
    nominal: Chip
    fit: Fit
    held: tuple[Residual, ...] = ()  # microbenchmarks that were held out of the fit

    @property
    def kind(self) -> str:
        """What its times are: ``measured``, or ``modelled`` when the virtual NPU played the device."""
        return "measured" if self.session.device["target"] == "npu" else "modelled"

    def constants(self) -> dict[str, Constant]:
        """Of the new chip file: fitted ones with their intervals, the others as they were."""
        device, out = self.session.device, dict(self.nominal.constants)
        for key, found in self.fit.determined.items():
            source = f"calibrated on {device['soc']} ({self.kind}): standard error {100 * found.error:.2g} %"
            out[key] = Constant(found.value, found.low, found.high, source)
        for key, why in self.fit.undetermined.items():
            old = out[key]
            if key in FOLDED:  # known, now: its error is in what has been fitted
                out[key] = Constant(old.value, old.value, old.value, f"calibrated: {why}")
            else:
                out[key] = replace(old, source=f"{old.source}; not calibrated: {why}")
        return out

    def worst(self, n: int = 5) -> list[Residual]:
        """The microbenchmarks that the fitted clock explains least."""
        return sorted(self.fit.residuals, key=lambda r: -abs(r.percent))[:n]

    def median_percent(self) -> float:
        """Median distance of modelled from measured times of the microbenchmarks."""
        return statistics.median(abs(r.percent) for r in self.fit.residuals)

    def text(self) -> str:
        """The chip file."""
        device = self.session.device
        comments = [
            f"{device['soc']}, calibrated by `ascendopt-tune calibrate` from {self.nominal.name}.",
            f"Times are {self.kind} ({device['toolkit']}), by events: launch.base_us holds the gap between tasks too.",
            f"{len(self.fit.determined)} constants are fitted, {len(self.fit.undetermined)} are not determined.",
            f"Off by {self.median_percent():.2g} % (median) on its {len(self.fit.residuals)} microbenchmarks.",
            "Intervals hold nine times of ten, if the clock has the right form.",
            "",
            f"microbenchmark: {self.kind} us, fitted clock us, difference",
            *(f"  {r.name}: {r.measured_us:.5g}, {r.modelled_us:.5g}, {r.percent:+.2f} %" for r in self.fit.residuals),
            "held out of the fit:",
            *(f"  {r.name}: {r.measured_us:.5g}, {r.modelled_us:.5g}, {r.percent:+.2f} %" for r in self.held),
        ]
        return chip_text(self.nominal, self.constants(), comments)


def calibrate(
    output: Path,
    *,
    target: str = "auto",
    chip: str | None = None,
    effort: Effort | None = None,
    reduced: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measures the device, fits the constants of its clock and writes the chip file ``output``.

    Measurements are kept beside it and gone on from. On the virtual NPU, which has no noise, two samples of one launch
    are enough.

    Raises:
        CaseError: no chip file fits the device, or the measurements are another device's.
        DeviceError, ToolchainError: the device or its toolkit refuses.
    """
    if effort is None:
        virtual = toolkits.find(target).target == "virtual"
        effort = Effort(2, 0.0, 1) if virtual else Effort(5 if reduced else 100)
    path = str(output.with_suffix(".measurements.jsonl"))
    session = measuring.run(measuring.Orders(target, chip, path, reduced, effort), progress)
    nominal = load_chip(session.chip)
    progress("fitting the constants: the microbenchmarks run on the virtual NPU")
    benchmarks = microbenchmarks(nominal, reduced=reduced)
    with Models(Acl(toolkits.virtual()), nominal.option, benchmarks) as models:
        result = fitted(models, session, nominal, benchmarks)
    write_whole(output, result.text())
    return result


def fitted(
    model: ClockModel,
    session: measuring.Session,
    nominal: Chip,
    benchmarks: Sequence[Microbenchmark],
    seen: Mapping[str, Sequence[int]] | None = None,
) -> Calibration:
    """Fits to the measured microbenchmarks but those held out; of these says what the fitted clock does."""
    held = {b.name for b in benchmarks if b.held}
    found = fit(model, [m for m in session.measured if m.name not in held], nominal, seen)
    shown = [m for m in session.measured if m.name in held]
    residuals = (Residual(m.name, m.us, model.times_us(m.name, [found.clock])[0]) for m in shown)
    return Calibration(session, nominal, found, tuple(residuals))
