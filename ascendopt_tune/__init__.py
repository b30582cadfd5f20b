"""ascendopt_tune: a compiler-integrated autotuner for custom AscendC operators in torch-npu.

Import it before torch: on a machine without CANN it is what lets the unmodified torch_npu run, on the virtual NPU.
Nothing heavy is imported here; torch only when a tuned function is called.
"""

from .cache import Cache
from .case import Case, TensorSpec
from .errors import AscendOptError
from .search.joint import WeightedCase
from .torch_ops.activate import install as _install
from .torch_ops.activate import is_virtual
from .torch_ops.decorator import tune
from .torch_ops.policy import policy
from .torch_ops.public import compile_pass, generate, install, intercept, record, registry_ops, warmup
from .torch_ops.status import Status, not_modelled, restore, rollback, stats, status
from .tuner import TuneRecord, tune_case, tune_cases

__all__ = [
    "AscendOptError",
    "Cache",
    "Case",
    "Status",
    "TensorSpec",
    "TuneRecord",
    "WeightedCase",
    "compile_pass",
    "generate",
    "install",
    "intercept",
    "is_virtual",
    "not_modelled",
    "policy",
    "record",
    "registry_ops",
    "restore",
    "rollback",
    "stats",
    "status",
    "tune",
    "tune_case",
    "tune_cases",
    "warmup",
]

_install()
