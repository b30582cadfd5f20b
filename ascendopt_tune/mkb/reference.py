"""reference.py of an imported operator: the task's model, asked with the operator's inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..errors import OperatorError
from ..sources.registry import LazyReference
from .follow import Followed, undone
from .task import SEED
from .values import CONSTANT, Origin, Tracked


def reference_text(call: Followed) -> str:
    """The task's text and ``reference``, which asks its model."""
    inputs, attrs = call.launch.inputs, call.launch.attrs
    given = ", ".join([*inputs, *(f"{n}={_python(v)}" for n, v in attrs.items())])
    lines = [f"def reference({given}):"]
    built, constants = _built(call)
    for name, value in constants.items():
        text = f"this solution gives {name} = {value!r} only"
        lines += [f"    if {name} != {_python(value)}:", f"        raise ValueError({text!r})"]
    arguments = f"{built}, ({_forward_arguments(call)})"
    lines += [f"    found = _run({arguments}, {{{_state(call)}}})", f"    return {_returned(call)}"]
    return _REFERENCE.format(
        file=call.task.file.name,
        solution=call.solution.file.name,
        task=call.task.text.rstrip(),
        seed=SEED,
        reference="\n".join(lines),
    )


def _built(call: Followed) -> tuple[str, dict[str, Any]]:
    """(how the model is built from the attributes, attributes that must have the value they have here)."""
    own = call.task.init_names
    arguments, constants = {}, {}
    for name, value in call.launch.attrs.items():
        origin = getattr(value, "origin", CONSTANT)
        if origin.kind == "constructor" and origin.name in own:
            arguments[origin.name] = name
        elif value is not None:
            constants[name] = value
    return f"_built({', '.join(f'{k}={v}' for k, v in arguments.items())})", constants


def _forward_arguments(call: Followed) -> str:
    """Texts of the model's arguments, from those of the operator."""
    told: dict[str, str] = {}
    for name, value in call.launch.inputs.items():
        if isinstance(value, (list, tuple)):
            for i, one in enumerate(value):
                if one.origin.kind == "input":
                    told.setdefault(one.origin.name, one.told(f"{name}[{i}]"))
        elif value is not None and value.origin.kind == "input":
            told.setdefault(value.origin.name, value.told(name))
    texts = []
    for name, drawn in zip(call.module_inputs, call.task.inputs, strict=False):
        if name in told:
            texts.append(told[name])
        elif f"{name}.0" in told:
            texts.append("[" + ", ".join(told[f"{name}.{i}"] for i in range(len(drawn))) + "]")
        elif isinstance(drawn, torch.Tensor):
            raise OperatorError(
                f"{call.solution.file}: the operator gets nothing of the module's input {name}.",
                "What is right depends on it, so results could not be checked.",
            )
        else:
            texts.append(repr(drawn))
    return "".join(f"{t}, " for t in texts).rstrip() if len(texts) < 2 else ", ".join(texts)


def _state(call: Followed) -> str:
    parts = []
    for name, value in call.launch.inputs.items():
        if isinstance(value, Tracked) and (path := call.parameters.get(value.origin.name)) is not None:
            shape = tuple(call.task.model.state_dict()[path].shape)
            reshaped = "" if tuple(undone(value).shape) == shape else f".reshape({shape})"
            parts.append(f'"{path}": {value.told(name)}{reshaped}')
    return ", ".join(parts)


def _returned(call: Followed) -> str:
    texts = []
    for name, value in call.launch.outputs.items():
        if isinstance(value, list):
            texts.append("[" + ", ".join(_told(call, v.origin.name) for v in value) + "]")
        else:
            texts.append(_told(call, name))
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _told(call: Followed, output: str) -> str:
    """Text of one output, from what the model returns."""
    for place, value in enumerate(call.results):
        if isinstance(value, Tracked) and value.origin == Origin("output", output):
            return value.told("found" if call.single else f"found[{place}]")
    raise OperatorError(
        f"{call.solution.file}: ModelNew doesn't return the operator's output {output} (or not by itself), so the "
        "task doesn't say what is right for it."
    )


def check(call: Followed, file: Path) -> None:
    """Whether the reference in ``file`` gives, from the operator's inputs, what the model gives from its own.

    Raises:
        OperatorError: it doesn't, or the solution's outputs have other shapes.
    """
    expected = call.task.run()
    listed = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    for value, model in zip(call.results, listed, strict=False):
        if len(listed) != len(call.results) or tuple(value.shape) != tuple(model.shape):
            raise OperatorError(
                f"{call.solution.file}: ModelNew returns {len(call.results)} of shape {list(value.shape)}; the "
                f"task's model {len(listed)} of shape {list(model.shape)}."
            )
    inputs = [_map(torch.clone, _map(_tensor, v)) for v in call.launch.inputs.values()]
    try:
        found = LazyReference(file)(*inputs, **call.launch.attrs)
    except Exception as e:
        raise OperatorError(
            f"{call.solution.file}: the task's model fails on the operator's inputs: {type(e).__name__}: {e}."
        ) from e
    wanted = eval(_returned(call), {"torch": torch, "found": expected})
    for name, one, other in zip(call.launch.outputs, _outputs(found), _outputs(wanted), strict=True):
        for a, b in zip(_listed(one), _listed(other), strict=True):
            if a.shape != b.shape or not torch.allclose(a.double(), b.double(), 1e-3, 1e-3, equal_nan=True):
                raise OperatorError(
                    f"{call.solution.file}: from the operator's inputs the task's model gives another {name} than "
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


def _python(value: Any) -> str:
    return repr(list(value)) if isinstance(value, (list, tuple)) else repr(value)


_REFERENCE = '''\
# What is right, from the task {file!r} (its text stands first) for the operator of {solution!r}.
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
