"""The examples of the cache's own tests serve here, too; and an operator that starts fast."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from ascendopt_tune import paths

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """The registry's smallest operator. Without reference.py torch isn't needed, which is half of a process's start."""
    folder = tmp_path / "add"
    shutil.copytree(paths.shipped("registry") / "add", folder)
    (folder / "reference.py").unlink()
    return folder
