"""A module as a language model is told of it: source, inputs and results, the signature of a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dsl import DslError, Program, launch_of
from .author import WantedProgram
from .capture import Captured
from .graph import Graph, Input

if TYPE_CHECKING:
    import torch


def described(
    captured: Captured, call: Callable[..., Any], module: torch.nn.Module, file: Path | None, refusal: str
) -> WantedProgram:
    """What is to be written.

    Args:
        call: the module on the program's inputs; it is run once, for its results' shapes.
        file: where the module was read from.
        refusal: why no rule fits.
    """
    graph = captured.graph
    found = call(captured.tensors)
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    names = _outputs(graph, len(results))
    lines = [_input(i) for i in graph.inputs]
    lines += [f"{n}: {_kind(r.dtype)}{list(r.shape) or [1]}, a result" for n, r in zip(names, results, strict=True)]
    source = file.read_text(encoding="utf-8") if file is not None else _source(module)
    return WantedProgram(graph.name, source, wanted_signature(graph, names), lines, refusal)


def wanted_signature(graph: Graph, outputs: list[str]) -> str:
    """The host function's first line."""
    tensors = [
        i.name if i.dtype == "float32" else f"{i.name}: tl.{i.dtype}" for i in graph.inputs if i.shape is not None
    ]
    numbers = [f"{i.name}={i.value!r}" for i in graph.inputs if i.shape is None]
    return f"def {graph.name}({', '.join([*tensors, *outputs, *numbers])}):"


def demand_signature(program: Program, graph: Graph) -> None:
    """The operator's inputs and attributes are the module's, and the example's shapes fit.

    Raises:
        DslError: they aren't, or don't.
    """
    host = program.host
    wanted = [(i.name, i.dtype) for i in graph.inputs if i.shape is not None]
    found = [(t.name, t.dtype.name) for t in program.of_kind("input")]
    line = program.kernel.line
    if host.name != graph.name or found != wanted:
        has = ", ".join(f"{n} {d}" for n, d in found)
        should = ", ".join(f"{n} {d}" for n, d in wanted)
        raise DslError(f"{host.name} has the inputs {has}; {graph.name} has {should}.", "", program.file, line)
    numbers = {i.name for i in graph.inputs if i.shape is None}
    if set(host.attributes) != numbers:
        has = ", ".join(host.attributes) or "none"
        raise DslError(
            f"the attributes are {has}, and should be {', '.join(sorted(numbers)) or 'none'}.", "", program.file, line
        )
    launch_of(program, {i.name: i.example for i in graph.inputs if i.shape is not None})


def _outputs(graph: Graph, count: int) -> list[str]:
    base = "out" if any(i.name.startswith("y") for i in graph.inputs) else "y"
    return [base] if count == 1 else [f"{base}{k}" for k in range(count)]


def _input(i: Input) -> str:
    if i.shape is None:
        return f"{i.name}: a number, {i.value!r} in the example"
    free = [str(d) for d, s in enumerate(i.shape) if not s.is_Integer]
    axes = f"any size along axis {', '.join(free)}" if free else "of these sizes only"
    state = f"; the module's {i.parameter}" if i.parameter else ""
    return f"{i.name}: {i.dtype}{list(i.example)}, {axes}{state}"


def _kind(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _source(module: torch.nn.Module) -> str:
    try:
        return inspect.getsource(type(module))
    except (OSError, TypeError):  # made while the program runs
        return str(module)
