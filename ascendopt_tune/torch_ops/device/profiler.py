"""torch's own profiler on the virtual NPU: its sessions find the runtime's activity records (``runtime/mspti.cpp``).

torch_npu asks for them only where ``$ASCEND_HOME_PATH/lib64/libmspti.so`` is. On the virtual NPU the variable isn't
set, as every process that is started from here would take its folder for a CANN. So it is there while a session
begins, which is when torch_npu looks.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

_NAME = "ASCEND_HOME_PATH"


def take_over(toolkit: Path) -> None:
    """Sessions of ``torch.profiler`` have a look for the library below ``toolkit``. Harmless when repeated."""
    import torch

    profiler: Any = torch.autograd.profiler
    begin = profiler._enable_profiler
    if hasattr(begin, "__wrapped__"):
        return

    @functools.wraps(begin)
    def with_records(*args: Any) -> Any:
        before = os.environ.get(_NAME)
        os.environ[_NAME] = str(toolkit)
        try:
            return begin(*args)
        finally:
            if before is None:
                os.environ.pop(_NAME, None)
            else:
                os.environ[_NAME] = before

    profiler._enable_profiler = with_records
