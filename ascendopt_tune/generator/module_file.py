"""Reads a file with ``Model``, ``get_inputs`` and ``get_init_inputs``, the form of KernelBench and MultiKernelBench."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CaseError
from ..files import read_source

_FORM = "The file defines Model, get_inputs() and get_init_inputs(); docs/generate.md has an example."

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ModuleFile:
    """A file's module: ``make`` builds ``Model`` and draws new example inputs."""

    path: Path
    name: str
    model: Callable[..., torch.nn.Module]
    init_inputs: Callable[[], list[Any]]
    inputs: Callable[[], list[Any]]

    def make(self, seed: int = 1024) -> tuple[torch.nn.Module, list[Any]]:
        """The module and its inputs. Raises CaseError: the file's functions fail, or don't return lists."""
        import torch

        torch.manual_seed(seed)
        with torch.no_grad():
            given = self._asked("get_init_inputs", self.init_inputs)
            module: torch.nn.Module = self._called("Model", lambda: self.model(*given))
            return module, self._asked("get_inputs", self.inputs)

    def _asked(self, name: str, function: Callable[[], Any]) -> list[Any]:
        found = self._called(name, function)
        if not isinstance(found, (list, tuple)):
            raise CaseError(f"{name}() of {self.path} returns {type(found).__name__}, not a list.", _FORM)
        return list(found)

    def _called(self, name: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except (Exception, SystemExit) as error:
            raise CaseError(f"{name} of {self.path} fails: {type(error).__name__}: {error}.", _FORM) from error


def read(path: Path) -> ModuleFile:
    """Executes the file: it is the user's own, as any Python they import.

    Raises:
        CaseError: it isn't of that form, or can't be read.
    """
    try:
        text = read_source(path)
    except OSError as error:
        raise CaseError(f"{path} can't be read: {error.strerror}.", _FORM) from error
    spec = importlib.util.spec_from_loader(f"ascendopt_module_{path.stem}", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise CaseError(f"{path} fails when it is imported: {type(error).__name__}: {error}.") from error
    missing = [n for n in ("Model", "get_inputs") if not hasattr(module, n)]
    if missing:
        raise CaseError(f"{path} has no {missing[0]}.", _FORM)
    init: Callable[[], list[Any]] = getattr(module, "get_init_inputs", lambda: [])
    return ModuleFile(path, path.stem, module.Model, init, module.get_inputs)
