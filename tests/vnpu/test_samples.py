"""Samples of single instructions and copies of cube cores, of asc-devkit: whole programs, as they are.

The sources are found through ``ASCENDOPT_ASC_DEVKIT``; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sample_programs import EXAMPLES, Sample, run

from ascendopt_tune.settings import settings

FILES = ("output/output.bin", "output/golden.bin")
MOVES, OUT = "03_basic_api/00_data_movement/data_copy_gm2l1", "03_basic_api/00_data_movement/data_copy_l0c2gm"
MATMUL = "04_advanced_api/00_matmul"
SHARED = f"{MATMUL}/matmul_ibshareAB"
TO_L1 = "03_basic_api/03_matrix_compute/fixpipe_l0c2l1"
#: One file for each of the sample's two objects.
BOTH = ("output/output1.bin", "output/golden1.bin", "output/output2.bin", "output/golden2.bin")
#: The words of a requantization go to the Fixpipe buffer and are read there by the same pipe.
WORDS = ("PipeBarrier<PIPE_FIX>",)
#: Both vector cores of the group clear all of C.
CLEARED = ("CrossCoreSetFlag / CrossCoreWaitFlag between the cores of the group",)


def shared_right(work: Path) -> None:
    """What the sample's own script makes, which has TensorFlow multiply."""
    rng = np.random.default_rng(7)
    a, b = (rng.uniform(-1, 1, s).astype(np.float16) for s in ((64, 384), (384, 256)))
    a.tofile(work / "input/x1_gm.bin")
    b.tofile(work / "input/x2_gm.bin")
    (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32).tofile(work / "output/golden.bin")


TABLE = [
    Sample("00_introduction/02_matrix/matmul_basic_api"),
    Sample("03_basic_api/03_matrix_compute/batch_matmul"),
    Sample("01_utilities/00_printf/simple_printf"),
    Sample("01_utilities/01_assert"),
    Sample("01_utilities/02_dump/simple_dump"),
    *(Sample(f"06_compatibility_guide/{name}") for name in ("fill", "data_copy_l1togm")),
    *(Sample("06_compatibility_guide/pattern_transformation", n) for n in (1, 2)),
    *(Sample(MOVES, n, (f"-scenarioNum={n}",)) for n in (1, 2, 4, 5)),
    *(
        Sample(OUT, n, (f"-scenarioNum={n}",), (f"-scenarioNum={n}", *FILES), WORDS if n in (2, 4, 6) else ())
        for n in range(1, 7)
    ),
    *(
        Sample(TO_L1, n, (f"-scenarioNum={n}",), (*FILES, str(n)), defines=("-DASC_ARCHITECTURES=2201",))
        for n in range(1, 5)
    ),
    *(Sample(f"{MATMUL}/{name}") for name in ("matmul_sparse", "matmul_tscm")),
    Sample(f"{MATMUL}/matmul_a2b2_share", check=BOTH),
    *(Sample(f"{MATMUL}/matmul_ibshareB", n, inputs=shared_right) for n in (1, 2)),
    *(Sample(SHARED, n, hazards=CLEARED if n == 2 else (), defines=("-DCYCLENUMS=1",)) for n in (1, 2)),
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
        assert not report["unwritten"]
