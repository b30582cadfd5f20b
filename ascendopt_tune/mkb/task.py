"""A task of MultiKernelBench: a Python file with ``Model``, ``get_inputs`` and ``get_init_inputs``. It is executed."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import OperatorError

#: What MultiKernelBench seeds torch with before a model is built, so that two of them have the same parameters.
SEED = 1024


@dataclass(frozen=True)
class Task:
    """``init`` are the constructor's arguments, ``inputs`` one draw of those of forward."""

    file: Path
    text: str
    model: torch.nn.Module
    init: list[Any]
    inputs: list[Any]

    @property
    def forward_names(self) -> tuple[str, ...]:
        return _parameters(self.model.forward)

    @property
    def init_names(self) -> tuple[str, ...]:
        return _parameters(type(self.model).__init__)[1:]

    def run(self) -> Any:
        """What the model returns for ``inputs``, which stay as they are. Raises OperatorError: it fails."""
        copies = [i.clone() if isinstance(i, torch.Tensor) else i for i in self.inputs]
        try:
            with torch.no_grad():
                return self.model(*copies)
        except Exception as e:  # a user's code has its own errors
            raise OperatorError(f"the model of {self.file} fails: {type(e).__name__}: {e}.") from e


def load_task(file: Path) -> Task:
    """The task in ``file``, built with MultiKernelBench's seed.

    Raises:
        OperatorError: it can't be read or fails, or one of the three names is missing.
    """
    if not file.is_file():
        raise OperatorError(f"{file} is no file.", "--task names a task: Model, get_inputs, get_init_inputs.")
    spec = importlib.util.spec_from_file_location(f"ascendopt_tune_task_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise OperatorError(f"{file} is no Python file.", "--task names a task: Model, get_inputs, get_init_inputs.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise OperatorError(f"the task {file} can't be loaded: {type(e).__name__}: {e}.") from e
    missing = [n for n in ("Model", "get_inputs", "get_init_inputs") if not callable(getattr(module, n, None))]
    if missing:
        raise OperatorError(f"the task {file} defines no {', '.join(missing)}.", "It needs all three.")
    try:
        torch.manual_seed(SEED)
        init = list(module.get_init_inputs())
        model = module.Model(*init)
        torch.manual_seed(SEED)
        inputs = list(module.get_inputs())
    except Exception as e:
        raise OperatorError(f"the task {file} fails: {type(e).__name__}: {e}.") from e
    return Task(file, file.read_text(), model, init, inputs)


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
