"""Calibration of a device that tells times and no more: two toolkits, two processes, `--target npu`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from events_device import events_device

from ascendopt_tune.nouns.chip import load_chip


def test_a_device_is_calibrated_by_events(tmp_path: Path) -> None:
    """The constants are those of the chip that plays the device, but for what its libraries don't let through."""
    file = tmp_path / "mine.toml"
    words = ["calibrate", "-o", str(file), "--target", "npu", "--chip", "ascend910b2", "--samples", "3", "--reduced"]
    command = [sys.executable, "-m", "ascendopt_tune", *words, "--json"]
    with events_device(tmp_path / "cann") as device:
        environment = {**os.environ, "ASCEND_HOME_PATH": str(device.prefix)}
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["time"] == "measured"
    assert document["device"]["toolkit"] == "cann-of-tests" or document["device"]["target"] == "npu"
    # Its libraries know of no state, so every launch is a warm one.
    states = ("flushed.", "cold.")
    for key, one in document["determined"].items():
        if not key.startswith(states):
            assert one["low"] * 0.9 <= one["nominal"] <= one["high"] * 1.1 + 0.05, (key, one)
    assert "measured" in file.read_text()
    assert load_chip(str(file)).constants["launch.base_us"].source.startswith("calibrated on Ascend910B2 (measured)")
