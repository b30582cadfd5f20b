"""What TorchDynamo is told as soon as it is there: backends, and functions that stay one node of its graphs.

TorchDynamo takes a second to import, so it is told when somebody imports it, not before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_DYNAMO = "torch._dynamo"
_functions: list[Callable[..., Any]] = []
_backends: dict[str, Callable[..., Any]] = {}


def keep_whole(function: Callable[..., Any]) -> None:
    """Has TorchDynamo put calls of ``function`` into graphs as they are, instead of looking into it."""
    _functions.append(function)
    if _loaded():
        sys.modules[_DYNAMO].allow_in_graph(function)


def watch(name: str, backend: Callable[..., Any]) -> None:
    """Tells TorchDynamo of ``torch.compile``'s backend ``name`` once it is there. Harmless when repeated."""
    _backends[name] = backend
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

    for name, backend in _backends.items():
        if name not in _BACKENDS:  # else the entry point of an installed package is about to be loaded, or was
            register_backend(backend, name)
    for function in _functions:
        allow_in_graph(function)  # type: ignore[no-untyped-call]
