"""The side of the project that PyTorch sees: torch_npu on the virtual NPU, the decorator, the dispatch of tuned ops.

Importing this package imports neither torch nor numpy.
"""

from __future__ import annotations
