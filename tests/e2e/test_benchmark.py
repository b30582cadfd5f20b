"""The benchmark runs and prints its ratios; how good they are is for an idle machine to tell, not for a test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_quick_benchmark_prints_every_ratio() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/vnpu.py", "--quick"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for dtype in ("float32", "float16"):
        assert f"add {dtype}[512,512] on 48 cores" in done.stdout
    assert len(re.findall(r"/ numpy x \+ y +[\d.]+ x$", done.stdout, re.MULTILINE)) == 4
    assert re.search(r"instructions simulated +[\d.]+ million/s", done.stdout)
    assert done.stdout.count("modelled task duration") == 2
    assert len(re.findall(r"/ numpy float32 a @ b +[\d.]+ x$", done.stdout, re.MULTILINE)) == 3
    assert re.search(r"flash_attention .*\n +function and time, hazards on +[\d.]+ s", done.stdout)
    # Numbers of a tiling program compile nothing, its logic the one source and never the kernel.
    found = re.findall(r"evaluations compiled (\d+) host sources and (\d+) kernels", done.stdout)
    assert found == [("0", "0"), ("1", "0")]
