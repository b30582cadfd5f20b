"""Which operators of the registry run on which cores, as their kernels say."""

from __future__ import annotations

from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.registry import load_operator, operator_names


def on_cube_cores(op: Operator) -> bool:
    """Whether a kernel of the operator asks for cube cores (docs/cube.md)."""
    words = ("KERNEL_TYPE_AIC", "KERNEL_TYPE_MIX_AIC", "__cube__", "__mix__")
    return any(word in text for text in op.baseline.kernel.values() for word in words)


def vector_operators() -> set[str]:
    """The registry's operators that run on vector cores: those that motifs and the shipped bank know."""
    return {name for name in operator_names() if not on_cube_cores(load_operator(name))}
