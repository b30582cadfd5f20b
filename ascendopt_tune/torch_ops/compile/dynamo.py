"""What torch.compile is told: the backend ``ascendopt``, and that decorated functions stay one node of its graphs.

TorchDynamo takes a second to import, so it is told when somebody imports it, not before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

BACKEND = "ascendopt"
_DYNAMO = "torch._dynamo"
_functions: list[Callable[..., Any]] = []


def backend(graph: Any, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """The entry of ``torch.compile(model, backend="ascendopt")``; see compile_pass.compile_graph."""
    from .compile_pass import compile_graph

    return compile_graph(graph, example_inputs, **kwargs)


def keep_whole(function: Callable[..., Any]) -> None:
    """Has TorchDynamo put calls of ``function`` into graphs as they are, instead of looking into it."""
    _functions.append(function)
    if _loaded():
        sys.modules[_DYNAMO].allow_in_graph(function)


def watch() -> None:
    """Tells TorchDynamo once it is there. Harmless when repeated."""
    if _loaded():
        _tell()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _loaded() -> bool:
    return hasattr(sys.modules.get(_DYNAMO), "register_backend")


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _DYNAMO:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _tell()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _tell() -> None:
    from torch._dynamo import allow_in_graph, register_backend
    from torch._dynamo.backends.registry import _BACKENDS

    if BACKEND not in _BACKENDS:  # else the entry point of an installed package is about to be loaded, or was
        register_backend(backend, BACKEND)
    for function in _functions:
        allow_in_graph(function)  # type: ignore[no-untyped-call]
