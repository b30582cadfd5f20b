"""Kernels for direct launch as a table has them, and the gate for one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
from cann_ops.table import Reference, arguments, in_float64

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Argument, AttrValue, Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, ParamDef, Signature
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.project import load_direct


@dataclass(frozen=True)
class Direct:
    """A kernel for direct launch: file, entry, block dim, inputs and outputs as ``name=dtype[shape]``, attributes.

    ``domain``: as in op.toml, by the input's name; ``tolerance`` likewise. ``room``: names of inputs that the kernel
    works in, whose values afterwards nobody asks for. ``include``: folders of headers, from the same root.
    """

    path: str
    entry: str
    block_dim: int
    inputs: str
    outputs: str
    reference: Reference | None
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    domain: dict[str, Any] = field(default_factory=dict)
    tolerance: dict[str, Any] = field(default_factory=dict)
    room: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


def direct_case(kernel: Direct, root: Path) -> tuple[Operator, Case, Signature]:
    """The kernel as an operator, its case, and names of its parameters."""

    def parameters(text: str) -> tuple[tuple[ParamDef, ...], tuple[Argument, ...]]:
        names = [word.split("=")[0] for word in text.split()]
        specs = arguments(" ".join(word.split("=")[1] for word in text.split()), {})[0]
        pairs = zip(names, specs, strict=True)
        return tuple(ParamDef(n, (s.dtype,)) for n, s in pairs if isinstance(s, TensorSpec)), specs

    (inputs, input_specs), (outputs, output_specs) = parameters(kernel.inputs), parameters(kernel.outputs)
    operator = load_direct(root / kernel.path, kernel.entry, kernel.block_dim)
    operator = dataclasses.replace(
        operator,
        reference=(lambda *x, **_: in_float64(formula)(*x)) if (formula := kernel.reference) is not None else None,
        settings={"domain": kernel.domain, "tolerance": kernel.tolerance, "in_place": list(kernel.room)},
        kernel_include_dirs=(*operator.kernel_include_dirs, *(root / folder for folder in kernel.include)),
    )
    signature = Signature(kernel.entry, inputs, outputs, has_tiling=False)
    rooms = [spec for p, spec in zip(inputs, input_specs, strict=True) if p.name in kernel.room]
    return operator, Case(input_specs, (*output_specs, *rooms), tuple(sorted(kernel.attrs.items()))), signature


def run_kernel(kernel: Direct, evaluator: Evaluator, root: Path) -> None:
    operator, case, signature = direct_case(kernel, root)
    outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
