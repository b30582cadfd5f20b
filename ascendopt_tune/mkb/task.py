"""A task of MultiKernelBench: a Python file with ``Model``, ``get_inputs`` and ``get_init_inputs``. It is executed."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping
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
    def init_names(self) -> tuple[str, ...]:
        return _parameters(type(self.model).__init__)[1:]

    def run(self, changed: Mapping[int, torch.Tensor] | None = None) -> Any:
        """What the model returns for ``inputs`` (``changed``: others in their places), which stay as they are.

        Raises:
            OperatorError: it fails.
        """
        inputs = [(changed or {}).get(i, given) for i, given in enumerate(self.inputs)]
        copies = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
        try:
            with torch.no_grad():
                return self.model(*copies)
        except Exception as e:  # a user's code has its own errors
            raise OperatorError(f"the model of {self.file} fails: {type(e).__name__}: {e}.") from e

    def lowest(self, place: int) -> float | None:
        """The lowest value that input number ``place`` may have, where the model gives no number for lower ones.

        None: there is no bound; such as the task draws none below 0, and the model has no NaN for negative values.
        """
        drawn = self.inputs[place]
        least = drawn.min().item() if drawn.numel() else 0.0
        if least < 0 or not self._undefined(place, -drawn - 0.25):
            return None
        return least if self._undefined(place, torch.zeros_like(drawn)) else 0.0

    def _undefined(self, place: int, values: torch.Tensor) -> bool:
        """Whether the model gives what is no number for these values of one input."""
        found = self.run({place: values})
        listed = found if isinstance(found, (tuple, list)) else [found]
        return any(t.is_floating_point() and not bool(t.isfinite().all()) for t in listed)


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
    return Task(file, file.read_text(encoding="utf-8"), model, init, inputs)


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
