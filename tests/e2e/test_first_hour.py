"""The first hour, shortened: the package at hand, two evaluations (`make first-hour` does all of it)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from first_hour import first_hour, linked

from ascendopt_tune.paths import shipped


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="torch or torch_npu is not installed")
def test_zero_to_tuned_to_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_BUDGET", "2")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    assert not (shipped("registry") / "softcap").exists()
    first_hour(tmp_path, linked(tmp_path))
