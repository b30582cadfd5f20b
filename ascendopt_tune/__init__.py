"""ascendopt_tune: a compiler-integrated autotuner for custom AscendC operators in torch-npu.

Import it before torch: on a machine without CANN it is what lets the unmodified torch_npu run, on the virtual NPU.
"""

from .torch_ops.activate import install as _install

_install()
