"""Samples of asc-devkit for vector cores: flags between cores, high-level APIs, registers; whole programs, as they are.

The sources are found through ``ASCENDOPT_ASC_DEVKIT``; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_programs import EXAMPLES, Sample, run

from ascendopt_tune.settings import settings

SYNC = "03_basic_api/05_sync_control"
HIGH = "04_advanced_api"
ROWS = (("SRC_ROWS", "1"), ("SRC_COLS", "20"), ("DST_COLS", "32"), ("DST_TOTAL_LENGTH", "32"))
#: The flag is a word that the kernel polls by itself: what it orders isn't followed.
POLLED = ("SyncAll (or another synchronization between cores), and DataCacheCleanAndInvalid: the scalar unit loads and "
          "writes back whole lines of 64 bytes, when it likes",)  # fmt: skip
#: H * W fills no whole tiles: what it is rounded up by is invalid data, as documented, made of what nobody wrote.
ROUNDED_UP = ("transdata-4",)
TABLE = [
    Sample(f"{SYNC}/ib_set_wait"),
    Sample(f"{SYNC}/sequential_block_sync"),
    Sample(f"{SYNC}/data_sync_barrier", hazards=POLLED, values=(("TOTAL_LENGTH", "8"),)),
    Sample("03_basic_api/00_data_movement/data_copy_pad_gm2ub_ub2gm", 1, ("-scenarioNum=1",), values=ROWS),
    Sample("03_basic_api/06_atomic/set_atomic_deterministic_computation", 2, ("-scenarioNum=2",)),
    Sample(f"{HIGH}/03_quantization/quant", make=("dav-2201",)),
    Sample(f"{HIGH}/06_index/arange"),
    Sample(f"{HIGH}/08_transpose/pad"),
    Sample(f"{HIGH}/08_transpose/unpad"),
    *(Sample(f"{HIGH}/08_transpose/transdata", n, ("--mode", str(n))) for n in (1, 2, 3, 4)),
]


@pytest.mark.parametrize("sample", TABLE, ids=lambda s: s.name)
def test_samples_of_asc_devkit(sample: Sample, tmp_path: Path) -> None:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / EXAMPLES / sample.folder).is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no such sample")
    reports = run(sample, checkout, tmp_path)
    assert reports
    for report in reports:
        assert {h["missing"] for h in report["hazards"]} == set(sample.hazards)
        assert bool(report["unwritten"]) == (sample.name in ROUNDED_UP)
