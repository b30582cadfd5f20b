"""A joint move, and what the rules that make them are given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...nouns.trial import Move
from ...sources.cpp import Edit
from ..kernel.reading.kernel_program import KernelProgram
from ..mutation import Mutation
from ..proposer import SearchState
from ..tiling.context import Context
from ..tiling.rules import mutations
from ..tiling.slice import Template, synthesize


@dataclass(frozen=True)
class JointMove:
    """Edits of kernel and tiling program that belong together; ``weight`` is the prior worth, as of a mutation."""

    kernel: tuple[Edit, ...]
    tiling: tuple[Edit, ...]
    change: str
    moves: tuple[Move, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Material:
    """The incumbent, both programs parsed, and what Stage I knows to do to its tiling program."""

    state: SearchState

    @cached_property
    def kernel(self) -> KernelProgram:
        incumbent, operator = self.state.incumbent, self.state.operator
        pair = incumbent.candidate.pair
        return KernelProgram(pair.kernel, pair.tiling, self.state.chip, operator.auto_sync, incumbent.tiling_key)

    @cached_property
    def template(self) -> Template:
        return synthesize(self.state.incumbent.candidate.pair.tiling)

    @cached_property
    def mutations(self) -> tuple[Mutation, ...]:
        return mutations(self.template, Context.of(self.state))
