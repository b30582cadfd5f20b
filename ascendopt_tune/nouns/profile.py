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

    ``aiv_...`` are those of a kernel on vector cores, ``aic_...`` of one on cube cores; the others are 0. A mixed
    kernel has both, ``block_dim`` groups of a cube core and ``vectors_per_block`` vector cores, and what its counters
    tell of the cores of one kind begins with ``aic_`` or ``aiv_``.

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
    vectors_per_block: int = 0

    @property
    def detail(self) -> Profile:
        """The profile that tells where the time went: this one, or the modelled one of a device's time."""
        return self.modelled or self

    @property
    def kind(self) -> str:
        """Which cores it ran on, as msprof writes it: ``aiv``, ``aic`` for cube cores, ``mix`` for both."""
        if self.aic_time_us and self.aiv_time_us:
            return "mix"
        return "aic" if self.aic_time_us else "aiv"

    @property
    def parts(self) -> dict[str, Profile]:
        """By kind of cores, ``aic`` first, the profile of those alone; itself where they are of one kind."""
        if self.kind != "mix":
            return {self.kind: self}
        common = {k: v for k, v in self.counters.items() if not k.startswith(("aic_", "aiv_"))}
        found = {}
        for kind, blocks in (("aic", self.block_dim), ("aiv", self.block_dim * self.vectors_per_block)):
            own = {k.removeprefix(f"{kind}_"): v for k, v in self.counters.items() if k.startswith(f"{kind}_")}
            times = {k: v for k, v in vars(self).items() if k.startswith(f"{kind}_")}
            found[kind] = Profile(self.task_duration_us, block_dim=blocks, counters={**own, **common}, **times)
        return found

    @property
    def core_time_us(self) -> float:
        """What a core took, mean over the cores; of two kinds those that took longer."""
        return max(self.aic_time_us, self.aiv_time_us)

    @property
    def pipes(self) -> tuple[str, ...]:
        """The pipes that its cores have, under msprof's names; of two kinds with ``aic_`` or ``aiv_`` in front."""
        if self.kind == "mix":
            return tuple(f"{kind}_{pipe}" for kind in self.parts for pipe in PIPES[kind])
        return PIPES[self.kind]

    def pipe_us(self, pipe: str) -> float:
        """How long one of ``pipes`` was busy."""
        kind, _, name = pipe.rpartition("_")
        kind = kind or self.kind
        vector = self.aiv_vec_time_us, self.aiv_scalar_time_us, self.aiv_mte2_time_us, self.aiv_mte3_time_us
        cube = (self.aic_mac_time_us, self.aic_scalar_time_us, self.aic_mte1_time_us, self.aic_mte2_time_us,
                self.aic_fixpipe_time_us)  # fmt: skip
        return (vector if kind == "aiv" else cube)[PIPES[kind].index(name)]

    def to_json(self) -> dict[str, object]:
        """Flat JSON document of the cores that ran, with msprof's ``*_ratio`` columns; ``modelled`` likewise."""
        left_out = tuple(f"{kind}_" for kind in PIPES if kind not in self.parts)
        left_out += () if self.vectors_per_block else ("vectors_per_block",)
        out: dict[str, object] = {
            k: v for k, v in asdict(self).items() if k not in ("counters", "modelled") and not k.startswith(left_out)
        }
        for kind, part in self.parts.items():
            for pipe in PIPES[kind]:
                out[f"{kind}_{pipe}_ratio"] = part.pipe_us(pipe) / part.core_time_us if part.core_time_us else 0.0
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
