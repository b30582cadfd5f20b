"""Profile: where the time of one kernel execution went, under msprof's names.

Every time is in microseconds of the *target's* clock: modelled for target ``virtual``, measured for ``npu``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Profile:
    """Times are means over the cores that ran (as msprof reports them), ``task_duration_us`` is the whole task.

    ``counters`` holds the toolkit's extra numbers by name, e.g. ``mte2_bytes``, ``mte3_bytes``,
    ``bank_conflict_cycles``, ``instructions``, ``stall_*_us`` (means over the cores); empty on hardware that was
    timed by events only.
    """

    task_duration_us: float
    aiv_time_us: float = 0.0
    aiv_vec_time_us: float = 0.0
    aiv_scalar_time_us: float = 0.0
    aiv_mte2_time_us: float = 0.0
    aiv_mte3_time_us: float = 0.0
    block_dim: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Flat JSON document, with msprof's ``*_ratio`` columns derived from the times."""
        out: dict[str, object] = {k: v for k, v in asdict(self).items() if k != "counters"}
        for pipe in ("vec", "scalar", "mte2", "mte3"):
            out[f"aiv_{pipe}_ratio"] = (
                getattr(self, f"aiv_{pipe}_time_us") / self.aiv_time_us if self.aiv_time_us else 0.0
            )
        out["counters"] = dict(self.counters)
        return out

    @staticmethod
    def from_json(doc: Mapping[str, object]) -> Profile:
        names = set(Profile.__dataclass_fields__)
        return Profile(**{k: v for k, v in doc.items() if k in names})  # type: ignore[arg-type]
