"""What the host function decides at given shapes: the outputs' shapes, cores, the kernel's scalars, buffers' bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import layout
from .errors import DslError
from .ir import (
    BUFFERS,
    EVENT_IDS,
    Check,
    Expr,
    Knob,
    Let,
    Number,
    Program,
    num,
)
from .scalar import evaluate


@dataclass(frozen=True)
class Machine:
    """What a program may ask of the device: vector cores, bytes of the Unified Buffer that are its own."""

    cores: int = 48
    ub_bytes: int = 196352


@dataclass(frozen=True)
class Launch:
    """What the host function decided: shapes by tensor, cores, and the kernel's scalars by parameter."""

    shapes: dict[str, tuple[int, ...]]
    cores: int
    scalars: dict[str, Number]
    ub_bytes: int


def launch_of(
    program: Program,
    shapes: Mapping[str, tuple[int, ...]],
    attributes: Mapping[str, Number] | None = None,
    machine: Machine | None = None,
    knobs: Mapping[str, int] | None = None,
) -> Launch:
    """The host function at these shapes of the inputs.

    Args:
        knobs: other values than the defaults, by the knob's name.

    Raises:
        DslError: a check of the program fails, the shapes don't fit it, or the Unified Buffer is too small.
    """
    host = _Host(program, shapes, attributes or {}, machine or Machine())
    host.run(knobs or {})
    scalars = {
        p: evaluate(a, host.leaf)
        for p, a in zip(program.kernel.parameters, program.host.arguments, strict=True)
        if isinstance(a, Expr)
    }
    return Launch(host.shapes, host.cores(), scalars, host.ub_bytes(scalars))


class _Host:
    """The host function at given shapes: its variables, and the shapes that are known so far."""

    def __init__(
        self,
        program: Program,
        shapes: Mapping[str, tuple[int, ...]],
        attributes: Mapping[str, Number],
        machine: Machine,
    ) -> None:
        self.program, self.host, self.machine = program, program.host, machine
        known = self.host.attributes
        for name in set(attributes) - set(known):
            hint = f"There are {', '.join(known)}."
            raise error_at(program, self.host.line, f"there is no attribute {name!r}.", hint)
        self.buffers = program.buffers
        self.values: dict[str, Any] = {a.name: a.default for a in known.values()} | dict(attributes)
        self.shapes = {t.name: tuple(shapes[t.name]) for t in program.of_kind("input")}
        for name, (rank, line) in self.host.ranks.items():
            if len(self.shapes[name]) != rank:
                text = f"{name} has {len(self.shapes[name])} axes, shape {self.shapes[name]}; here it needs {rank}."
                raise error_at(program, line, text)

    def leaf(self, e: Expr) -> Any:
        """The value of an expression without operands."""
        if e.op == "var":
            return self.values[str(e.value)]
        if e.op == "dim":
            return self._dim(str(e.value), int(e.args[0].value))
        if e.op == "numel":
            return int(np.prod(self.shapes[str(e.value)], dtype=np.int64))
        if e.op == "cores":
            limit = max(1, evaluate(e.args[0], self.leaf)) if e.args else self.machine.cores
            return min(self.machine.cores, limit)
        return {"ub_bytes": self.machine.ub_bytes, "num_cores": self.machine.cores}[e.op]

    def _dim(self, name: str, axis: int) -> int:
        shape = self.shapes[name]
        if not -len(shape) <= axis < len(shape):
            raise error_at(self.program, self.host.line, f"{name} has no axis {axis}: its shape is {shape}.")
        return shape[axis]

    def run(self, knobs: Mapping[str, int]) -> None:
        """Its statements, and then the shapes of what it allocates."""
        for step in self.host.steps:
            if isinstance(step, Let):
                self.values[step.name] = evaluate(step.value, self.leaf)
            elif isinstance(step, Knob):
                value = knobs.get(step.name, step.default)
                limited = value if step.limit is None else min(value, evaluate(step.limit, self.leaf))
                self.values[step.variable] = limited
                if step.name == BUFFERS:
                    self.buffers = limited
            elif isinstance(step, Check) and not evaluate(step.test, self.leaf):
                text = f"The inputs are {_shapes(self.shapes)}."
                raise error_at(self.program, step.line, f"refused: {step.text}.", text)
        for t in self.host.tensors.values():
            if t.shape is not None:
                like = t.shape[0].op == "shape"
                self.shapes[t.name] = (
                    self.shapes[str(t.shape[0].value)] if like else tuple(evaluate(e, self.leaf) for e in t.shape)
                )

    def cores(self) -> int:
        cores = int(evaluate(self.host.cores, self.leaf))
        if not 1 <= cores <= self.machine.cores:
            text = f"{cores} cores are launched, the device has {self.machine.cores}."
            raise error_at(self.program, self.host.line, text, "Use tl.cores(limit), which stays within them.")
        return cores

    def ub_bytes(self, scalars: Mapping[str, Any]) -> int:
        """What the kernel's buffers take."""
        kernel = self.program.kernel
        if self.program.queues * self.buffers > EVENT_IDS:
            text = f"{self.program.queues} tensors with {self.buffers} buffers each need an event id for every buffer; "
            hint = f"Give {BUFFERS} a smaller number, or join tensors."
            raise error_at(self.program, kernel.line, f"{text}there are {EVENT_IDS}.", hint)
        dtypes = {p: self.program.tensor_of(p).dtype for p in kernel.tensors}
        used = layout.plan(kernel, dtypes).total(num(self.buffers))
        total, most = int(evaluate(used, lambda e: scalars[str(e.value)])), self.machine.ub_bytes
        if total > most:
            depth = {1: "single", 2: "doubled"}.get(self.buffers, f"of {self.buffers} buffers")
            text = f"the buffers take {total} bytes of the Unified Buffer (queues are {depth}), it has {most}."
            raise error_at(self.program, kernel.line, text, "Make the tile smaller.")
        return total


def _shapes(of: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{n}{list(s)}" for n, s in of.items())


def error_at(program: Program, line: int, text: str, hint: str = "") -> DslError:
    """An error at a line of the program's file."""
    return DslError(text, hint, program.file, line)
