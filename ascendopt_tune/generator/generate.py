"""From a torch module to an operator: capture, schedule, interpret; where no rule fits, ask a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dsl import Program
from ..nouns.profile import Profile
from .author import Attempt, Author, write
from .capture import Captured, ModuleInputs, capture, signature
from .described import demand_signature, described
from .domains import domains, indices
from .fit import fitted
from .gated import judged
from .generated import Generated
from .graph import NotGenerated
from .interpreted import compared
from .module_file import ModuleFile, read
from .reference import reference_text
from .schedules import drafts

if TYPE_CHECKING:
    import torch

#: The schedule of a program that a language model wrote.
WRITTEN = "language model"


def generate(
    module: torch.nn.Module, example_inputs: Sequence[Any], *, name: str = "", author: Author | None = None
) -> Generated:
    """An operator that does what the module's forward pass does, from its graph and rules alone.

    Args:
        example_inputs: tensors; a float becomes an attribute of the operator.
        name: the operator's; default: the module's class.
        author: who writes the program where no rule fits; None: nobody.

    Raises:
        NotGenerated: no rule, or no schedule, fits, and no author wrote a program that is right; the text says what.
        DslError: the program is wrong, which is a fault of the generator.
    """
    label = name or re.sub(r"(?<!^)(?=[A-Z])", "_", type(module).__name__).lower()
    return _Generating(module, example_inputs, label, None).generated(author)


def generate_file(
    path: Path, *, author: Author | None = None, example_inputs: Sequence[Any] | None = None
) -> Generated:
    """The same for a file with ``Model``, ``get_inputs`` and ``get_init_inputs``. Raises as :func:`generate`.

    Args:
        example_inputs: instead of those that the file makes; tensors that are expanded of one element will do.
    """
    file: ModuleFile = read(path)
    if example_inputs is None:
        module, inputs = file.make()
    else:
        module, inputs = file.model(*file.init_inputs()), list(example_inputs)
    label = re.sub(r"\W", "_", file.name).lower()
    label = label if label[:1].isalpha() else f"op_{label}"
    return _Generating(module, inputs, label, path).generated(author)


class _Generating:
    """One module on its way; ``captured``: its graph, or only what it is given."""

    def __init__(self, module: torch.nn.Module, inputs: Sequence[Any], name: str, file: Path | None) -> None:
        self.module, self.inputs, self.name, self.file = module, inputs, name, file
        self.captured: Captured

    def generated(self, author: Author | None) -> Generated:
        given = ModuleInputs(self.module, self.inputs, self.name)
        try:
            self.captured = capture(given)
            schedule, program = fitted(self.captured.graph, drafts(self.captured.graph))
        except NotGenerated as refusal:
            if author is None:
                raise
            return self._written(author, given, str(refusal))
        found = domains(self.captured.graph, self.call, self.captured.tensors)
        checked = compared(self.captured.graph, program, self.call, self.captured.tensors, found)
        return self._result(program, schedule, found, checked)

    def _written(self, author: Author, given: ModuleInputs, refusal: str) -> Generated:
        self.captured = signature(given)
        graph, tensors = self.captured.graph, self.captured.tensors
        found = {**indices(graph, self.call), **domains(graph, self.call, tensors)}

        def check(program: Program) -> tuple[str, ...]:
            demand_signature(program, graph)
            return compared(graph, program, self.call, tensors, found)

        def gate(program: Program) -> Profile | str:
            assert author.evaluator is not None
            return judged(self._result(program, WRITTEN, found, ()), author.evaluator)

        wanted = described(self.captured, self.call, self.module, self.file, refusal)
        written = write(wanted, author, check, gate if author.evaluator is not None else None)
        return self._result(written.program, WRITTEN, found, written.checked, written.attempts)

    def call(self, tensors: Sequence[torch.Tensor], attributes: Mapping[str, Any] | None = None) -> Any:
        """The module on other inputs of the program, in order; in float64 where one of them is."""
        import torch

        graph, arguments = self.captured.graph, self.captured.arguments
        given = dict(zip((i.name for i in graph.inputs if i.shape is not None), tensors, strict=True))
        values = {i.name: i.value for i in graph.inputs if i.shape is None} | dict(attributes or {})
        wide = any(t.dtype == torch.float64 for t in tensors)
        state = {
            k: t.double() if wide and t.is_floating_point() else t.clone() for k, t in self.module.state_dict().items()
        }
        state |= {i.parameter: given[i.name] for i in graph.inputs if i.parameter}
        with torch.no_grad():
            return torch.func.functional_call(
                self.module, state, tuple(given[a] if a in given else values.get(a, b) for a, b in arguments)
            )

    def _result(
        self,
        program: Program,
        schedule: str,
        found: Mapping[str, Mapping[str, Any]],
        checked: tuple[str, ...],
        attempts: tuple[Attempt, ...] = (),
    ) -> Generated:
        graph, arguments = self.captured.graph, self.captured.arguments
        texts = [a if a in {i.name for i in graph.inputs} else repr(b) for a, b in arguments]
        return Generated(
            self.name,
            program,
            graph,
            schedule,
            self.captured.tensors,
            found,
            reference_text(graph, texts, self.file is not None),
            self.module,
            self.file,
            checked,
            arguments,
            attempts,
        )
