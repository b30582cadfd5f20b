"""asc-devkit's samples of the normalizing APIs: whole programs, as they are, which compare their results themselves.

The sources are found through ``ASCENDOPT_ASC_DEVKIT``; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_programs import EXAMPLES, SEEDED, build

from ascendopt_tune.settings import settings

FOLDER = f"{EXAMPLES}/04_advanced_api/02_normalization"
BARRIER = "PipeBarrier<PIPE_V>"
TO_SCALAR = "SetFlag<HardEvent::V_S> / WaitFlag<HardEvent::V_S>"
FROM_SCALAR = "SetFlag<HardEvent::S_V> / WaitFlag<HardEvent::S_V>"
#: Samples, and what their own code (between the calls of the APIs) forgot to order.
TABLE: dict[str, set[str]] = {
    "layernorm": set(),
    "layernorm_v2": {BARRIER},
    "welford": {BARRIER, TO_SCALAR, FROM_SCALAR},
    "deepnorm": set(),
}


@pytest.mark.parametrize("name", TABLE)
def test_samples_of_normalization(name: str, tmp_path: Path) -> None:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / FOLDER / name).is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no such sample")
    folder = checkout / FOLDER / name
    build(folder, tmp_path)
    fill = [sys.executable, "-c", SEEDED, str(folder / "scripts/gen_data.py")]
    subprocess.run(fill, cwd=tmp_path, check=True, capture_output=True)
    environment = {**os.environ, "AOT_BINARY": str(tmp_path / "kernels.o"), "AOT_REPORTS": str(tmp_path / "reports")}
    done = subprocess.run(
        [str(tmp_path / "program")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "test pass" in done.stdout.lower(), done.stdout[-400:]
    for line in (tmp_path / "reports").read_text().splitlines():
        report = json.loads(line)
        assert {h["missing"] for h in report["hazards"]} == TABLE[name]
        assert not report["unwritten"]
