"""What a diagnosis says of a launch that moves more than L2 holds."""

from __future__ import annotations

from ascendopt_tune.evaluate.diagnosis import diagnose
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.profile import Profile

CHIP = load_chip("ascend910b4")


def moving(missed: float) -> Profile:
    """130 MB in 190 us on 40 cores, so much of it not in L2."""
    counters = {"mte2_bytes": 100e6, "mte3_bytes": 30e6, "l2_miss_bytes": missed, "cores_active_us": 190.0,
                "block_time_max_us": 190.0, "block_time_min_us": 189.0}  # fmt: skip
    return Profile(193.0, aiv_time_us=189.5, aiv_mte2_time_us=180.0, block_dim=40, counters=counters)


def test_bytes_that_l2_could_not_keep_are_told_with_what_helps() -> None:
    findings = {f.bound: f for f in diagnose(moving(120e6), CHIP).findings}
    assert list(findings)[:2] == ["memory bandwidth", "L2 misses"]
    assert "92 % of the bytes" in findings["L2 misses"].text
    assert "SetL2CacheHint" in findings["L2 misses"].advice


def test_bytes_in_l2_are_no_misses() -> None:
    assert "L2 misses" not in {f.bound for f in diagnose(moving(1e6), CHIP).findings}
