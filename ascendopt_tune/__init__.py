"""ascendopt_tune: a compiler-integrated autotuner for custom AscendC operators in torch-npu.

Import it before torch: on a machine without CANN it is what lets the unmodified torch_npu run, on the virtual NPU.
Nothing heavy is imported here; torch only when a tuned function is called.
"""

from .errors import AscendOptError
from .evaluate.joint import WeightedCase
from .nouns.case import Case, TensorSpec
from .nouns.run_options import RunOptions
from .service.policy import policy
from .store.cache import Cache
from .torch_ops.compile.backend import NAME as _NAME
from .torch_ops.compile.backend import backend as _backend
from .torch_ops.device.activate import watch_imports as _watch_imports
from .torch_ops.device.dynamo import watch as _watch
from .torch_ops.device.runtime import is_virtual
from .torch_ops.public import compile_pass, generate, install, intercept, record, registry_ops, warmup
from .torch_ops.serving.decorator import tune
from .torch_ops.serving.status import Status, not_modelled, restore, rollback, stats, status
from .tuner import TuneRecord, tune_case, tune_cases

__all__ = [
    "AscendOptError",
    "Cache",
    "Case",
    "RunOptions",
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

_watch(_NAME, _backend)
_watch_imports()
