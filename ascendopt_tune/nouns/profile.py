"""Profile: where the time of one kernel execution went, under msprof's names.

Every time is in microseconds of the *target's* clock: modelled for target ``virtual``, measured for ``npu``. What the
virtual NPU says of a launch that a device timed by events is kept apart, in ``modelled``, and is never a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Profile:
    """Times are means over the cores that ran (as msprof reports them), ``task_duration_us`` is the whole task.

    ``counters`` holds the toolkit's extra numbers by name, e.g. ``mte2_bytes``, ``mte3_bytes``,
    ``bank_conflict_cycles``, ``instructions``, ``stall_*_us`` (means over the cores); of a device's events only the
    spread. ``modelled``: the virtual NPU's own profile of the same launch, where a device gave a time and no pipes
    (evaluate/screen.py); its ``task_duration_us`` is the model's, too.
    """

    task_duration_us: float
    aiv_time_us: float = 0.0
    aiv_vec_time_us: float = 0.0
    aiv_scalar_time_us: float = 0.0
    aiv_mte2_time_us: float = 0.0
    aiv_mte3_time_us: float = 0.0
    block_dim: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    modelled: Profile | None = None

    @property
    def detail(self) -> Profile:
        """The profile that tells where the time went: this one, or the modelled one of a device's time."""
        return self.modelled or self

    def to_json(self) -> dict[str, object]:
        """Flat JSON document, with msprof's ``*_ratio`` columns derived from the times; ``modelled`` likewise."""
        out: dict[str, object] = {k: v for k, v in asdict(self).items() if k not in ("counters", "modelled")}
        for pipe in ("vec", "scalar", "mte2", "mte3"):
            out[f"aiv_{pipe}_ratio"] = (
                getattr(self, f"aiv_{pipe}_time_us") / self.aiv_time_us if self.aiv_time_us else 0.0
            )
        out["counters"] = dict(self.counters)
        if self.modelled is not None:
            out["modelled"] = self.modelled.to_json()
        return out

    @staticmethod
    def from_json(doc: Mapping[str, object]) -> Profile:
        values: dict[str, Any] = {k: v for k, v in doc.items() if k in Profile.__dataclass_fields__}
        if values.get("modelled") is not None:
            values["modelled"] = Profile.from_json(values["modelled"])
        return Profile(**values)
