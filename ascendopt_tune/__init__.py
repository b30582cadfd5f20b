"""ascendopt_tune: a compiler-integrated autotuner for custom AscendC operators in torch-npu.

Import it before torch: on a machine without CANN it is what lets the unmodified torch_npu run, on the virtual NPU.
Nothing heavy is imported here; torch only when a tuned function is called.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if not os.path.isdir(os.path.dirname(__file__)):
    raise ImportError(
        f"ascendopt_tune can't run from an archive ({os.path.dirname(__file__)}): its C++ sources, operators and chips "
        "are files that compilers read. Install it with pip, or unpack the archive and name the folder in PYTHONPATH."
    )

from .torch_ops.compile.backend import NAME as _NAME
from .torch_ops.compile.backend import backend as _backend
from .torch_ops.device.activate import watch_imports as _watch_imports
from .torch_ops.device.dynamo import watch as _watch

if TYPE_CHECKING:
    from .errors import AscendOptError
    from .evaluate.joint import WeightedCase
    from .nouns.case import Case, TensorSpec
    from .nouns.run_options import RunOptions
    from .service.policy import policy
    from .store.cache import Cache
    from .torch_ops.device.runtime import is_virtual
    from .torch_ops.public import compile_pass, generate, install, intercept, record, registry_ops, subgraphs, warmup
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
    "subgraphs",
    "tune",
    "tune_case",
    "tune_cases",
    "warmup",
]

#: Where each of them is. Imported when it is first asked for: every command and every evaluation process imports this
#: package, and few need more of it than a part.
_PLACES = {
    "errors": ("AscendOptError",),
    "evaluate.joint": ("WeightedCase",),
    "nouns.case": ("Case", "TensorSpec"),
    "nouns.run_options": ("RunOptions",),
    "service.policy": ("policy",),
    "store.cache": ("Cache",),
    "torch_ops.device.runtime": ("is_virtual",),
    "torch_ops.public": (
        "compile_pass",
        "generate",
        "install",
        "intercept",
        "record",
        "registry_ops",
        "subgraphs",
        "warmup",
    ),
    "torch_ops.serving.decorator": ("tune",),
    "torch_ops.serving.status": ("Status", "not_modelled", "restore", "rollback", "stats", "status"),
    "tuner": ("TuneRecord", "tune_case", "tune_cases"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_watch(_NAME, _backend)
_watch_imports()
