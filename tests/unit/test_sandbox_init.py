"""A namespace's first process ends with whoever made the namespace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

ASKS = "from ascendopt_tune.evaluate import sandbox; sandbox.protections()"
IS_GONE = "from ascendopt_tune.evaluate import sandbox; sandbox.isolate()"


@pytest.mark.parametrize("code", [ASKS, IS_GONE], ids=["confined", "gone at once"])
def test_nothing_is_left_of_a_namespace(code: str) -> None:
    mark = uuid.uuid4().hex
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "MARK_OF_THIS_TEST": mark})
    deadline = time.monotonic() + 60
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def _marked(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found
