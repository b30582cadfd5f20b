"""A program's text: a kernel's body with the host function around it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .graph import Graph
from .text import HostText, size_text

_HEAD = '"""{title}"""\n\nimport ascendopt_tune.dsl as tl\n\n\n@tl.kernel\n'


_LONG = 116  # characters of a line

#: The knob that says how many lines of a plane a block has.
LINES = "TILE_LINES"


@dataclass(frozen=True)
class ProgramKnob:
    """``limit``: a size (text of the kernel's name) that the number needn't exceed."""

    variable: str
    name: str
    default: int
    why: str
    limit: str = ""


class KernelText(Protocol):
    """A kernel's body as it was written."""

    @property
    def text(self) -> str: ...

    @property
    def host(self) -> HostText:
        """What the kernel is given."""

    @property
    def graph(self) -> Graph: ...

    def output(self, i: int) -> str:
        """How output ``i`` of the graph is called."""


@dataclass
class Draft:
    """What a schedule decided.

    ``schedule``: its name. ``cores``: the launch's, in the host's terms (names of sizes are the kernel's). ``steps``:
    further lines of the host function, by variable. ``checks``: what it refuses. ``sized``: how many of the knobs, the
    first ones, are as large as the Unified Buffer allows.
    """

    schedule: str
    writer: KernelText
    knobs: list[ProgramKnob]
    cores: str
    title: str
    steps: dict[str, str] = field(default_factory=dict)
    checks: list[tuple[str, str]] = field(default_factory=list)
    sized: int = 1


def text_of(graph: Graph, draft: Draft, tiles: Mapping[str, int] | None = None) -> str:
    """The file. ``tiles``: other defaults of knobs."""
    host: HostText = draft.writer.host
    tensors = [i.name for i in graph.inputs if i.shape is not None]
    numbers = [i for i in graph.inputs if i.shape is None]
    outputs = list(graph.results())
    knobs = [k.variable for k in draft.knobs]
    given = [*tensors, *outputs, *host.workspaces, *host.scalars, *draft.steps, *knobs, *(i.name for i in numbers)]
    said = draft.writer.text
    parameters = [p for p in dict.fromkeys(given) if re.search(rf"\b{p}\b", said)]
    lines = _HEAD.format(title=draft.title)
    lines += _listed(f"def {graph.name}_kernel(", parameters, "):") + "\n"
    lines += said
    lines += "\n\n@tl.host\n" + _signature(graph, outputs)
    lines += f'    """{draft.title}"""\n'
    names, body = _sizes(graph)
    body += [f"{variable} = {size_text(size, names)}" for variable, size in host.scalars.items()]
    for output, (shape, kind) in graph.results().items():
        text = ", ".join(size_text(s, names) for s in shape) or "1"
        text += "," if len(shape) <= 1 else ""
        body.append(f"tl.output({output}, ({text}), tl.{kind})")
    body += [f'assert {test}, "{why}"' for test, why in draft.checks]
    for k in draft.knobs:
        default = (tiles or {}).get(k.name, k.default)
        value = f"min({default}, {k.limit})" if k.limit else str(default)
        body.append(f'{k.variable} = tl.knob("{k.name}", {value}, why="{k.why}")')
    body += [f"{variable} = {text}" for variable, text in draft.steps.items()]
    body += [f"{name} = tl.workspace({count}, tl.float32)" for name, count in host.workspaces.items()]
    body.append(_listed(f"{graph.name}_kernel[{draft.cores}](", parameters, ")"))
    return lines + textwrap.indent("\n".join(body), "    ") + "\n"


def _listed(opening: str, parts: Sequence[str], closing: str) -> str:
    """In one line, or with the parts in lines of their own where it would be long."""
    text = ", ".join(parts)
    if len(opening + text + closing) <= _LONG:
        return opening + text + closing
    return f"{opening}\n{textwrap.fill(text, _LONG, initial_indent='    ', subsequent_indent='    ')}\n{closing}"


def _signature(graph: Graph, outputs: list[str]) -> str:
    parts = []
    for i in graph.inputs:
        if i.shape is not None:
            parts.append(i.name if i.dtype == "float32" else f"{i.name}: tl.{i.dtype}")
    parts += outputs
    parts += [f"{i.name}={i.value!r}" for i in graph.inputs if i.shape is None]
    return f"def {graph.name}({', '.join(parts)}):\n"


def _sizes(graph: Graph) -> tuple[dict[Any, str], list[str]]:
    """Names of the free sizes, and the lines that take them from shapes and check the others."""
    names: dict[Any, str] = {}
    body: list[str] = []
    checks: list[str] = []
    for i in graph.inputs:
        if not i.shape:
            continue
        axes = [f"{i.name}_{d}" for d in range(len(i.shape))]
        body.append(f"{', '.join(axes)}{',' if len(axes) == 1 else ''} = {i.name}.shape")
        for d, (axis, size) in enumerate(zip(axes, i.shape, strict=True)):
            if size.is_Symbol and size not in names:
                names[size] = axis
                continue
            count, share = size.as_coeff_Mul()
            if share.is_Symbol and share not in names:  # so many equal pieces
                names[share] = f"{axis}_part"
                body.append(f"{names[share]} = {axis} // {count}")
                checks.append(f'assert {axis} % {count} == 0, "axis {d} of {i.name} is a multiple of {count}"')
                continue
            wanted = size_text(size, names)
            checks.append(f'assert {axis} == {wanted}, "axis {d} of {i.name} has {wanted} elements"')
    return names, body + checks
