"""Which AscendCL runtime this process has loaded."""

from __future__ import annotations

import ctypes
import os


def loaded_runtime() -> ctypes.CDLL | None:
    """The libascendcl.so this process has loaded, or None."""
    try:
        return ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def is_virtual() -> bool:
    """Whether the AscendCL runtime of this process is the virtual NPU; False when none is loaded."""
    runtime = loaded_runtime()
    return runtime is not None and hasattr(runtime, "vnpu_last_report")
