"""What a failure's words add to what the virtual NPU reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.device.launch import SYSTEM_WORKSPACE
from ascendopt_tune.evaluate.verdict import failure_of
from ascendopt_tune.nouns.outcome import OutOfBounds


@pytest.mark.parametrize(
    ("size", "names", "told"),
    [
        (SYSTEM_WORKSPACE, ("x", "workspace"), True),
        (SYSTEM_WORKSPACE, ("x",), False),
        (4096, ("x", "workspace"), False),
    ],
)
def test_an_access_behind_a_kernel_files_own_workspace_says_how_to_give_one(
    size: int, names: tuple[str, ...], told: bool
) -> None:
    message = f"DataCopy: the destination covers bytes [{size}, {size + 64}) of a tensor of {size} B"
    report = {"errors": [{"message": message, "kind": "out_of_bounds", "api": "DataCopy", "pc": 0}], "hazards": []}
    trial = {"report": report, "error": "", "damage": [], "names": names}
    failure = failure_of(trial, Path("kernel.o"), [], "trial")
    assert isinstance(failure, OutOfBounds)
    assert failure.reason.startswith(message)
    assert ("--input workspace=uint8[BYTES] --in-place workspace" in failure.reason) == told
