"""One call of a solution's module with the task's inputs, followed to the operator's arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import OperatorError
from ..evaluate.reference import to_array
from ..sources.arguments import Array
from .binding import Binding, BindingLaunch
from .definition import OpDefinition
from .module import Module
from .solution import Solution
from .task import SEED, Task
from .values import CONSTANT, Origin, Tracked


@dataclass(frozen=True)
class Followed:
    """``launch`` is the operator's call, ``module_inputs`` are the names of forward's parameters, ``results`` what
    ModelNew returns (``single``: not in a list or tuple), ``parameters`` those of ModelNew that the operator gets, by
    the name that the task's model has for them."""

    solution: Solution
    definition: OpDefinition
    task: Task
    launch: BindingLaunch
    module_inputs: tuple[str, ...]
    results: list[Any]
    single: bool
    parameters: dict[str, str] = field(default_factory=dict)

    def origin(self, value: Tracked) -> Origin:
        """Where a value comes from; a parameter that the task's model doesn't have is a constant."""
        if value.origin.kind == "parameter" and value.origin.name not in self.parameters:
            return CONSTANT
        return value.origin

    def drawn(self, value: Tracked) -> torch.Tensor | None:
        """The task's own tensor behind an input of the operator."""
        found = dict(zip(self.module_inputs, self.task.inputs, strict=False)).get(value.origin.name)
        return found if value.origin.kind == "input" and isinstance(found, torch.Tensor) else None

    def arrays(self) -> dict[str, Array]:
        """The operator's inputs in this call, by name; those of a list as ``x.0``, ``x.1``."""
        found = {}
        for name, value in self.launch.inputs.items():
            listed = value if isinstance(value, (list, tuple)) else [value]
            for i, one in enumerate(listed):
                if one is not None:
                    found[name if listed is not value else f"{name}.{i}"] = to_array(one.tensor)
        return found


def follow(solution: Solution, definition: OpDefinition, task: Task) -> Followed:
    """Builds and calls ModelNew over its syntax tree.

    Raises:
        OperatorError: module or binding do something that isn't followed, or the operator isn't called.
    """
    binding = Binding(solution.texts["python_bind_src"], definition, solution.file)
    module = Module(solution.texts["model_src"], solution.file, binding.call)
    torch.manual_seed(SEED)
    module.build(task.init)
    result = module.forward(task.inputs)
    if binding.launch is None:
        raise OperatorError(
            f"{solution.file}: ModelNew never calls aclnn{definition.op_type}.",
            "Its result comes from somewhere else, so there is nothing to check the kernel by.",
        )
    single = not isinstance(result, (tuple, list))
    results = [result] if single else list(result)
    parameters = _matched(binding.launch, task)
    return Followed(solution, definition, task, binding.launch, module.inputs, results, single, parameters)


def _matched(launch: BindingLaunch, task: Task) -> dict[str, str]:
    """ModelNew's parameters that the operator gets -> the model's: of one name, else of equal values."""
    own = {n: t.detach() for n, t in task.model.state_dict().items()}
    found: dict[str, str] = {}
    for value in launch.inputs.values():
        if not isinstance(value, Tracked) or value.origin.kind != "parameter":
            continue
        tensor = undone(value)
        free = {n: t for n, t in own.items() if n not in found.values() and t.numel() == tensor.numel()}
        same = [n for n, t in free.items() if t.dtype == tensor.dtype and torch.equal(t.reshape(tensor.shape), tensor)]
        chosen = value.origin.name if value.origin.name in same else next(iter(same), None)
        if chosen is not None:
            found[value.origin.name] = chosen
    return found


def undone(value: Tracked) -> torch.Tensor:
    """The tensor of the value's origin."""
    found: torch.Tensor = eval(value.told("tensor"), {"torch": torch, "tensor": value.tensor})
    return found
