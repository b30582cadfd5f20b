"""Profile: where the time of one kernel execution went, under msprof's names.

Every time is in microseconds of the *target's* clock: modelled for target ``virtual``, measured for ``npu``. What the
virtual NPU says of a launch that a device timed by events is kept apart, in ``modelled``, and is never a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

PIPES = {"aiv": ("vec", "scalar", "mte2", "mte3"), "aic": ("mac", "scalar", "mte1", "mte2", "fixpipe")}


@dataclass(frozen=True)
class Profile:
    """Times are means over the cores that ran (as msprof reports them), ``task_duration_us`` is the whole task.

    ``aiv_...`` are those of a kernel on vector cores, ``aic_...`` of one on cube cores; the others are 0.

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
    aic_time_us: float = 0.0
    aic_mac_time_us: float = 0.0
    aic_scalar_time_us: float = 0.0
    aic_mte1_time_us: float = 0.0
    aic_mte2_time_us: float = 0.0
    aic_fixpipe_time_us: float = 0.0

    @property
    def detail(self) -> Profile:
        """The profile that tells where the time went: this one, or the modelled one of a device's time."""
        return self.modelled or self

    @property
    def kind(self) -> str:
        """Which cores it ran on, as msprof writes it: ``aiv``, or ``aic`` for cube cores."""
        return "aic" if self.aic_time_us else "aiv"

    @property
    def core_time_us(self) -> float:
        """What a core took, mean over the cores."""
        return self.aic_time_us or self.aiv_time_us

    @property
    def pipes(self) -> tuple[str, ...]:
        """The pipes that its cores have, under msprof's names."""
        return PIPES[self.kind]

    def pipe_us(self, pipe: str) -> float:
        """How long one of ``pipes`` was busy."""
        if self.kind == "aiv":
            vector = self.aiv_vec_time_us, self.aiv_scalar_time_us, self.aiv_mte2_time_us, self.aiv_mte3_time_us
            return vector[PIPES["aiv"].index(pipe)]
        cube = (self.aic_mac_time_us, self.aic_scalar_time_us, self.aic_mte1_time_us, self.aic_mte2_time_us,
                self.aic_fixpipe_time_us)  # fmt: skip
        return cube[PIPES["aic"].index(pipe)]

    def to_json(self) -> dict[str, object]:
        """Flat JSON document of the cores that ran, with msprof's ``*_ratio`` columns; ``modelled`` likewise."""
        other = "aiv_" if self.kind == "aic" else "aic_"
        out: dict[str, object] = {
            k: v for k, v in asdict(self).items() if k not in ("counters", "modelled") and not k.startswith(other)
        }
        for pipe in self.pipes:
            out[f"{self.kind}_{pipe}_ratio"] = self.pipe_us(pipe) / self.core_time_us if self.core_time_us else 0.0
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
