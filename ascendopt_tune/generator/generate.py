"""From a torch module to an operator folder: capture, normalize, schedule, write, interpret, lower."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dsl import Program
from ..dsl.lower import lower, write_project
from ..dsl.lower.project import Lowered
from ..errors import OperatorError
from ..evaluate.reference import to_array
from ..nouns.case import AttrValue
from ..sources.arguments import Array
from .capture import Captured, capture
from .domains import domains
from .fit import fitted
from .graph import Graph
from .interpreted import compared
from .module_file import ModuleFile, read
from .reference import reference_text
from .schedules import drafts

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
        (folder / self.kept).write_bytes(self._module())
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


def generate(module: torch.nn.Module, example_inputs: Sequence[Any], *, name: str = "") -> Generated:
    """An operator that does what the module's forward pass does, from its graph and rules alone.

    Args:
        example_inputs: tensors; a float becomes an attribute of the operator.
        name: the operator's; default: the module's class.

    Raises:
        NotGenerated: no rule, or no schedule, fits; the text says what.
        DslError: the program is wrong, which is a fault of the generator.
    """
    label = name or re.sub(r"(?<!^)(?=[A-Z])", "_", type(module).__name__).lower()
    return _generated(module, example_inputs, label, None)


def generate_file(path: Path) -> Generated:
    """The same for a file with ``Model``, ``get_inputs`` and ``get_init_inputs``. Raises as :func:`generate`."""
    file: ModuleFile = read(path)
    module, inputs = file.make()
    label = re.sub(r"\W", "_", file.name).lower()
    label = label if label[:1].isalpha() else f"op_{label}"
    return _generated(module, inputs, label, path)


def _generated(module: torch.nn.Module, inputs: Sequence[Any], name: str, file: Path | None) -> Generated:
    import torch

    captured: Captured = capture(module, inputs, name)
    graph = captured.graph
    schedule, program = fitted(graph, drafts(graph))
    arguments = captured.arguments

    def call(tensors: Sequence[torch.Tensor], attributes: Mapping[str, Any] | None = None) -> Any:
        given = dict(zip((i.name for i in graph.inputs if i.shape is not None), tensors, strict=True))
        values = {i.name: i.value for i in graph.inputs if i.shape is None} | dict(attributes or {})
        wide = any(t.dtype == torch.float64 for t in tensors)
        state = {k: t.double() if wide and t.is_floating_point() else t.clone() for k, t in module.state_dict().items()}
        state |= {i.parameter: given[i.name] for i in graph.inputs if i.parameter}
        with torch.no_grad():
            return torch.func.functional_call(
                module, state, tuple(given[a] if a in given else values.get(a, b) for a, b in arguments)
            )

    found = domains(graph, call, captured.tensors)
    checked = compared(graph, program, call, captured.tensors, found)
    texts = [a if a in {i.name for i in graph.inputs} else repr(b) for a, b in arguments]
    return Generated(
        name,
        program,
        graph,
        schedule,
        captured.tensors,
        found,
        reference_text(graph, texts, file is not None),
        module,
        file,
        checked,
        arguments,
    )
