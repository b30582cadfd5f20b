"""Which operators of the registry run on which cores, as their kernels say."""

from __future__ import annotations

from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.registry import load_operator, operator_names


def on_cube_cores(op: Operator) -> bool:
    """Whether a kernel of the operator asks for cube cores (docs/cube.md)."""
    return any("KERNEL_TYPE_AIC" in text or "__cube__" in text for text in op.baseline.kernel.values())


def vector_operators() -> set[str]:
    """The registry's operators that run on vector cores: those that motifs and the shipped bank know."""
    return {name for name in operator_names() if not on_cube_cores(load_operator(name))}
