"""From a solution and its task to an operator folder: sources, op.toml with the task's case, reference.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import OperatorError
from ..files import write_whole
from ..registry import LazyReference
from .binding import Binding, Launch
from .definition import Definition, read_definition
from .module import Module
from .solution import Solution, read_solution
from .task import SEED, Task, load_task
from .values import CONSTANT, Origin, Tracked

#: Where a folder keeps what an operator project has no place for; `export` writes it back.
KEPT = {"project_json_src": "op.json", "python_bind_src": "op.cpp", "model_src": "model.py"}
KEPT_FOLDER = "multikernelbench"
_VALUES = 1 << 16  # elements of an input whose values op.toml lists


@dataclass
class Imported:
    """``files`` of the folder by path, and ``notes``: what was decided, a sentence each."""

    name: str
    files: dict[str, str]
    notes: list[str] = field(default_factory=list)


def import_solution(file: Path, task: Path | None, out: Path) -> Imported:
    """Writes the solution in ``file`` as an operator folder ``out``.

    Args:
        task: the task's file, which says what is right and for which inputs; without it the folder has neither
            reference.py nor a case.

    Raises:
        OperatorError: the solution can't be read or followed, or computes another shape than the task; ``out`` exists.
        OSError: the folder can't be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OperatorError(f"{out} exists and isn't empty.", "Name a new folder.")
    solution = read_solution(file)
    definition = read_definition(solution.texts["host_operator_src"], file)
    name = solution.name
    found = Imported(name, _sources(solution))
    settings: list[str] = [f'name = "{name}"', f'entry = "{solution.entry}"']
    if solution.kernel_options:
        settings += ["", "[options]", f"kernel = {_toml(list(solution.kernel_options))}"]
    reference = None
    if task is None:
        found.notes.append("No task was given: there is no reference.py, and results are compared with themselves.")
    else:
        follower = _Follower(solution, definition, load_task(task), found.notes)
        settings += follower.settings()
        reference = follower.reference()
        found.files["reference.py"] = reference
    found.files["op.toml"] = "\n".join(settings) + "\n"
    for path, text in found.files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(out / path, text)
    if reference is not None:
        follower.check(LazyReference((out / "reference.py").resolve()))
    return found


def _sources(solution: Solution) -> dict[str, str]:
    texts, name = solution.texts, solution.name
    return {
        f"op_host/{name}_tiling.h": texts["host_tiling_src"],
        f"op_host/{name}.cpp": texts["host_operator_src"],
        f"op_kernel/{name}.cpp": texts["kernel_src"],
        **{f"{KEPT_FOLDER}/{path}": texts[key] for key, path in KEPT.items()},
    }


class _Follower:
    """One call of the module, followed to the operator's arguments, and what the folder says of it."""

    def __init__(self, solution: Solution, definition: Definition, task: Task, notes: list[str]) -> None:
        self.solution, self.definition, self.task, self.notes = solution, definition, task, notes
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
        self.launch: Launch = binding.launch
        self.module_inputs = module.inputs
        self.results: list[Any] = list(result) if isinstance(result, (tuple, list)) else [result]
        self.single = not isinstance(result, (tuple, list))
        self._parameters = self._matched()

    # -- op.toml -------------------------------------------------------------------------------------------------------

    def settings(self) -> list[str]:
        """Lines of op.toml: domains, initial values and the task's case."""
        lines: list[str] = []
        for name, value in self.launch.inputs.items():
            domain = self._domain(name, value) if isinstance(value, Tracked) else {}
            if domain:
                lines += ["", f"[domain.{name}]", *(f"{k} = {_toml(v)}" for k, v in domain.items())]
        firsts = {n: v[0] if isinstance(v, list) else v for n, v in self.launch.outputs.items()}
        fills = {n: v.fill for n, v in firsts.items() if v.fill is not None}
        if fills:
            lines += ["", "[initial]", *(f"{n} = {_toml(v)}" for n, v in fills.items())]
        lines += ["", f"[[case]]  # of the task {self.task.file.name}"]
        lines.append(f"inputs = {_table(self._tensors(self.launch.inputs))}")
        lines.append(f"outputs = {_table(self._tensors(self.launch.outputs))}")
        attrs = {n: v for n, v in self.launch.attrs.items() if v is not None}
        if attrs:
            lines.append(f"attrs = {_table(attrs)}")
        return lines

    @staticmethod
    def _tensors(values: Mapping[str, Any]) -> dict[str, str]:
        found = {}
        for name, value in values.items():
            listed = value if isinstance(value, (list, tuple)) else [value]
            for i, one in enumerate(listed):
                if one is not None:
                    key = name if listed is not value else f"{name}.{i}"
                    found[key] = f"{_dtype_name(one.tensor)}[{','.join(map(str, one.shape))}]"
        return found

    def _domain(self, name: str, value: Tracked) -> dict[str, Any]:
        """Values an input may have: as the task draws whole numbers; as they are where the module has no say."""
        tensor = value.tensor
        if self._origin(value) == CONSTANT:
            low, high = _bounds(tensor)
            if low == high:
                self.notes.append(f"The input {name} is {low:g} everywhere, as the solution makes it.")
                return {"low": low, "high": high}
            return self._values(name, value, "as the solution makes it")
        drawn = self._drawn(value)
        if drawn is None or drawn.is_floating_point():
            return {}
        if drawn.dtype == torch.bool:
            return {} if tensor.dtype == torch.bool else {"low": 0, "high": 1, "whole": True}
        if 1 < drawn.numel() == len(set(drawn.reshape(-1).tolist())) and drawn.numel() ** 2 > 64 * (
            int(drawn.max()) + 1
        ):
            return self._values(name, value, "all different in the task, which random ones would not be")
        domain: dict[str, Any] = dict(zip(("low", "high"), map(int, _bounds(drawn)), strict=True))
        return domain | ({"whole": True} if tensor.is_floating_point() else {})

    def _values(self, name: str, value: Tracked, why: str) -> dict[str, Any]:
        if value.tensor.numel() > _VALUES:
            raise OperatorError(
                f"{self.solution.file}: the values of the operator's input {name} are fixed ({why}), and it has "
                f"{value.tensor.numel()} elements; at most {_VALUES} can be listed in op.toml."
            )
        self.notes.append(f"The input {name} keeps its values ({why}).")
        return {"values": value.tensor.reshape(-1).tolist()}

    def _drawn(self, value: Tracked) -> torch.Tensor | None:
        """The task's own tensor behind an input of the operator."""
        found = dict(zip(self.module_inputs, self.task.inputs, strict=False)).get(value.origin.name)
        return found if value.origin.kind == "input" and isinstance(found, torch.Tensor) else None

    # -- reference.py --------------------------------------------------------------------------------------------------

    def reference(self) -> str:
        """The task's text and ``reference``, which asks its model."""
        inputs, attrs = self.launch.inputs, self.launch.attrs
        given = ", ".join([*inputs, *(f"{n}={_python(v)}" for n, v in attrs.items())])
        lines = [f"def reference({given}):"]
        built, constants = self._built()
        for name, value in constants.items():
            text = f"this solution gives {name} = {value!r} only"
            lines += [f"    if {name} != {_python(value)}:", f"        raise ValueError({text!r})"]
        call = f"{built}, ({self._forward_arguments()})"
        lines += [f"    found = _run({call}, {{{self._state()}}})", f"    return {self._returned()}"]
        return _REFERENCE.format(
            file=self.task.file.name,
            solution=self.solution.file.name,
            task=self.task.text.rstrip(),
            seed=SEED,
            reference="\n".join(lines),
        )

    def _built(self) -> tuple[str, dict[str, Any]]:
        """(how the model is built from the attributes, attributes that must have the value they have here)."""
        own = self.task.init_names
        arguments, constants = {}, {}
        for name, value in self.launch.attrs.items():
            origin = getattr(value, "origin", CONSTANT)
            if origin.kind == "constructor" and origin.name in own:
                arguments[origin.name] = name
            elif value is not None:
                constants[name] = value
        return f"_built({', '.join(f'{k}={v}' for k, v in arguments.items())})", constants

    def _forward_arguments(self) -> str:
        """Texts of the model's arguments, from those of the operator."""
        told: dict[str, str] = {}
        for name, value in self.launch.inputs.items():
            if isinstance(value, (list, tuple)):
                for i, one in enumerate(value):
                    if one.origin.kind == "input":
                        told.setdefault(one.origin.name, one.told(f"{name}[{i}]"))
            elif value is not None and value.origin.kind == "input":
                told.setdefault(value.origin.name, value.told(name))
        texts = []
        for name, drawn in zip(self.module_inputs, self.task.inputs, strict=False):
            if name in told:
                texts.append(told[name])
            elif f"{name}.0" in told:
                texts.append("[" + ", ".join(told[f"{name}.{i}"] for i in range(len(drawn))) + "]")
            elif isinstance(drawn, torch.Tensor):
                raise OperatorError(
                    f"{self.solution.file}: the operator gets nothing of the module's input {name}.",
                    "What is right depends on it, so results could not be checked.",
                )
            else:
                texts.append(repr(drawn))
        return "".join(f"{t}, " for t in texts).rstrip() if len(texts) < 2 else ", ".join(texts)

    def _state(self) -> str:
        parts = []
        for name, value in self.launch.inputs.items():
            if isinstance(value, Tracked) and (path := self._parameters.get(value.origin.name)) is not None:
                shape = tuple(self.task.model.state_dict()[path].shape)
                reshaped = "" if tuple(_undone(value).shape) == shape else f".reshape({shape})"
                parts.append(f'"{path}": {value.told(name)}{reshaped}')
        return ", ".join(parts)

    def _returned(self) -> str:
        texts = []
        for name, value in self.launch.outputs.items():
            if isinstance(value, list):
                texts.append("[" + ", ".join(self._told(v.origin.name) for v in value) + "]")
            else:
                texts.append(self._told(name))
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def _told(self, output: str) -> str:
        """Text of one output, from what the model returns."""
        for place, value in enumerate(self.results):
            if isinstance(value, Tracked) and value.origin == Origin("output", output):
                return value.told("found" if self.single else f"found[{place}]")
        raise OperatorError(
            f"{self.solution.file}: ModelNew doesn't return the operator's output {output} (or not by itself), so the "
            "task doesn't say what is right for it."
        )

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _matched(self) -> dict[str, str]:
        """ModelNew's parameters that the operator gets -> the model's: of one name, else of equal values."""
        own = {n: t.detach() for n, t in self.task.model.state_dict().items()}
        found: dict[str, str] = {}
        values = [v for v in self.launch.inputs.values() if isinstance(v, Tracked) and v.origin.kind == "parameter"]
        for value in values:
            tensor = _undone(value)
            free = {n: t for n, t in own.items() if n not in found.values() and t.numel() == tensor.numel()}
            same = [
                n for n, t in free.items() if t.dtype == tensor.dtype and torch.equal(t.reshape(tensor.shape), tensor)
            ]
            chosen = value.origin.name if value.origin.name in same else next(iter(same), None)
            if chosen is not None:
                found[value.origin.name] = chosen
        return found

    def _origin(self, value: Tracked) -> Origin:
        """A parameter that the task's model doesn't have is a constant."""
        if value.origin.kind == "parameter" and value.origin.name not in self._parameters:
            return CONSTANT
        return value.origin

    # -- does it hold? -------------------------------------------------------------------------------------------------

    def check(self, reference: LazyReference) -> None:
        """The reference gives, from the operator's inputs, what the model gives from its own.

        Raises:
            OperatorError: it doesn't, or the solution's outputs have other shapes.
        """
        expected = self.task.run()
        listed = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        for value, model in zip(self.results, listed, strict=False):
            if len(listed) != len(self.results) or tuple(value.shape) != tuple(model.shape):
                raise OperatorError(
                    f"{self.solution.file}: ModelNew returns {len(self.results)} of shape {list(value.shape)}; the "
                    f"task's model {len(listed)} of shape {list(model.shape)}."
                )
        inputs = [_map(torch.clone, _map(_tensor, v)) for v in self.launch.inputs.values()]
        try:
            found = reference(*inputs, **self.launch.attrs)
        except Exception as e:
            raise OperatorError(
                f"{self.solution.file}: the task's model fails on the operator's inputs: {type(e).__name__}: {e}."
            ) from e
        wanted = eval(self._returned(), {"torch": torch, "found": expected})
        for name, one, other in zip(self.launch.outputs, _outputs(found), _outputs(wanted), strict=True):
            for a, b in zip(_listed(one), _listed(other), strict=True):
                if a.shape != b.shape or not torch.allclose(a.double(), b.double(), 1e-3, 1e-3, equal_nan=True):
                    raise OperatorError(
                        f"{self.solution.file}: from the operator's inputs the task's model gives another {name} than "
                        "from its own, so they don't say the same."
                    )


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    if value is None:
        return None
    return [function(v) for v in value] if isinstance(value, (list, tuple)) else function(value)


def _tensor(value: Tracked) -> torch.Tensor:
    return value.tensor


def _outputs(result: Any) -> tuple[Any, ...]:
    """One entry per output of the operator."""
    return result if isinstance(result, tuple) else (result,)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _undone(value: Tracked) -> torch.Tensor:
    """The tensor of the value's origin."""
    found: torch.Tensor = eval(value.told("tensor"), {"torch": torch, "tensor": value.tensor})
    return found


def _bounds(tensor: torch.Tensor) -> tuple[float, float]:
    if tensor.numel() == 0:
        return 0, 0
    return tensor.min().item(), tensor.max().item()


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _python(value: Any) -> str:
    return repr(list(value)) if isinstance(value, (list, tuple)) else repr(value)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def _table(values: Mapping[str, Any]) -> str:
    keys = {name: f'"{name}"' if "." in name else name for name in values}
    return "{ " + ", ".join(f"{keys[n]} = {_toml(v)}" for n, v in values.items()) + " }"


_REFERENCE = '''\
# What is right, from the task {file} (its text stands first) for the operator of {solution}.
{task}


# From here on by `ascendopt-tune import`.
import functools as _functools
import inspect as _inspect

import torch as _torch


@_functools.cache
def _built(**given):
    """The task's model, built as MultiKernelBench builds it; `given` are the operator's attributes."""
    _torch.manual_seed({seed})
    bound = _inspect.signature(Model.__init__).bind(None, *get_init_inputs())
    bound.arguments.update(given)
    return Model(*bound.args[1:], **bound.kwargs)


def _run(model, inputs, state):
    """The model's result in the inputs' precision, with the parameters in `state` instead of its own."""
    floats = [t.dtype for t in (*inputs, *state.values()) if _torch.is_tensor(t) and t.is_floating_point()]
    wide = floats[0] if floats else _torch.float32
    own = {{n: t.detach().to(wide) if t.is_floating_point() else t for n, t in model.state_dict().items()}}
    with _torch.no_grad():
        return _torch.func.functional_call(model, {{**own, **state}}, inputs) if own else model(*inputs)


{reference}
'''
