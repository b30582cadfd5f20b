"""An operator made of a module: its program, what it is held to, and its folder."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dsl import Program
from ..dsl.lower import lower, write_project
from ..dsl.lower.project import Lowered
from ..errors import OperatorError
from ..evaluate.reference import to_array
from ..files import write_whole
from ..nouns.case import AttrValue
from ..sources.arguments import Array
from .author import Attempt
from .graph import Graph

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Generated:
    """An operator made of a module.

    ``schedule``: which of schedules/ it is. ``tensors``: the operator's inputs in order, as the example has them.
    ``checked``: the shapes at which the interpreted program agreed with the module.
    """

    name: str
    program: Program
    graph: Graph
    schedule: str
    tensors: tuple[torch.Tensor, ...]
    domains: Mapping[str, Mapping[str, Any]]
    reference: str
    module: torch.nn.Module
    file: Path | None  # the module's, where it was read from one
    checked: tuple[str, ...]
    arguments: tuple[tuple[str, Any], ...]  # of the module's forward pass: the operator's name for each, an example
    attempts: tuple[Attempt, ...] = ()  # of the language model, where one wrote the program

    @property
    def text(self) -> str:
        """The program in the tile language."""
        return self.program.text

    @property
    def attributes(self) -> dict[str, AttrValue]:
        return {i.name: i.value for i in self.graph.inputs if i.shape is None}

    def arrays(self, state: Mapping[str, torch.Tensor], inputs: Sequence[Any]) -> list[Array]:
        """The operator's inputs, in order, from the module's state and what its forward pass is called with."""
        given = dict(zip((name for name, _ in self.arguments), inputs, strict=True))
        of = [i for i in self.graph.inputs if i.shape is not None]
        return [to_array(state[i.parameter] if i.parameter else given[i.name]) for i in of]

    def case(self) -> dict[str, object]:
        """The example's shapes, as op.toml has them."""
        inputs = [i for i in self.graph.inputs if i.shape is not None]
        shapes = {i.name: f"{i.dtype}[{','.join(map(str, i.example))}]" for i in inputs}
        return {"inputs": shapes, "attrs": self.attributes}

    def write(self, folder: Path) -> Lowered:
        """The operator's folder. Raises OSError, DslError; OperatorError when the module can't be saved."""
        lowered = lower(self.program, [self.case()], self.reference)
        toml = lowered.files["op.toml"]
        for name, domain in self.domains.items():
            values = "\n".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in domain.items())
            toml += f"\n[domain.{name}]\n{values}\n"
        files = {**lowered.files, "op.toml": toml}
        write_project(Lowered(lowered.name, files), folder)
        write_whole(folder / self.kept, self._module())
        return lowered

    @property
    def kept(self) -> str:
        """The file of the folder that holds the module."""
        return "module.pt" if self.file is None else "module.py"

    def _module(self) -> bytes:
        import torch

        if self.file is not None:
            return self.file.read_bytes()
        saved = io.BytesIO()
        try:
            torch.save(self.module, saved)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            hint = "Its reference has to find it again: define its class where it can be imported, or in a file."
            raise OperatorError(f"the module {self.name} can't be saved: {error}.", hint) from error
        return saved.getvalue()
