"""torch's own profiler on the virtual NPU: its sessions find the runtime's activity records (``runtime/mspti.cpp``).

torch_npu looks once, where it first wants it, for ``$ASCEND_HOME_PATH/lib64/libmspti.so``, and remembers the answer. On
the virtual NPU the variable isn't set, as every process that is started from here would take its folder for a CANN. So
it is set for a moment, and torch_npu is made to look then: left alone it looks when a session of the profiler begins,
or in the first marked range, as around each batch of a DataLoader.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_NAME = "ASCEND_HOME_PATH"


def take_over(toolkit: Path) -> None:
    """Makes torch_npu, which is imported already, find the library below ``toolkit``."""
    mstx: Any = sys.modules["torch_npu"].npu.mstx
    before = os.environ.get(_NAME)
    os.environ[_NAME] = str(toolkit)
    try:
        mstx.range_end(mstx.range_start("ascendopt_tune"))
    finally:
        if before is None:
            del os.environ[_NAME]
        else:
            os.environ[_NAME] = before
