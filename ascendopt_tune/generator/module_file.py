"""Reads a file with ``Model``, ``get_inputs`` and ``get_init_inputs``, the form of KernelBench and MultiKernelBench."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CaseError

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
        import torch

        torch.manual_seed(seed)
        with torch.no_grad():
            module = self.model(*self.init_inputs())
            return module, self.inputs()


def read(path: Path) -> ModuleFile:
    """Executes the file: it is the user's own, as any Python they import.

    Raises:
        CaseError: it isn't of that form.
        OSError: it can't be read.
    """
    text = path.read_text(encoding="utf-8")
    spec = importlib.util.spec_from_loader(f"ascendopt_module_{path.stem}", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise CaseError(f"{path} fails when it is imported: {type(error).__name__}: {error}.") from error
    missing = [n for n in ("Model", "get_inputs") if not hasattr(module, n)]
    if missing:
        hint = "The file defines Model, get_inputs() and get_init_inputs(); docs/generate.md has an example."
        raise CaseError(f"{path} has no {missing[0]}.", hint)
    init: Callable[[], list[Any]] = getattr(module, "get_init_inputs", lambda: [])
    return ModuleFile(path, path.stem, module.Model, init, module.get_inputs)
