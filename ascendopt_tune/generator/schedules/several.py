"""Outputs that no schedule makes together: their programs one after the other in one kernel.

They read the same inputs and wait for nothing of each other, so no meeting of the cores stands between them; what the
first one loaded the next one finds in L2. Each has its own names and knobs.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from ...dsl.ir import BUFFERS
from ..graph import Graph, NotGenerated
from ..program import LINES, Draft
from ..text import HostText

Schedule = Callable[[Graph], Iterator[Draft]]
_FIRST = "core, cores = tl.program_id(0), tl.num_programs(0)"


def drafts(graph: Graph, schedule: Schedule) -> Iterator[Draft]:
    """``schedule``: that of a graph whose outputs belong together. Raises NotGenerated where an output has none."""
    choices = [[d for d in schedule(g) if _joins(d)] for g in _parts(graph, schedule)]
    if not all(choices):
        raise NotGenerated("outputs of different shapes, one of them in blocks of lines, have no schedule together.")
    for chosen in zip_longest(*choices):
        yield _joined(graph, [d or choices[k][-1] for k, d in enumerate(chosen)])


def _parts(graph: Graph, schedule: Schedule) -> list[Graph]:
    """As few as possible, each of outputs that follow each other."""
    found: list[list[int]] = []
    for i in range(len(graph.outputs)):
        if found and _fits(_only(graph, [*found[-1], i]), schedule):
            found[-1].append(i)
        else:
            found.append([i])
    return [_only(graph, outputs) for outputs in found]


def _only(graph: Graph, outputs: list[int]) -> Graph:
    """The graph of some outputs, with the inputs that they need."""
    part = replace(
        graph,
        outputs=tuple(graph.outputs[i] for i in outputs),
        parts=tuple(graph.parts[i] for i in outputs) if graph.parts else (),
    )
    used = {n.name for n in part.nodes() if n.op in ("input", "scalar")}
    return replace(part, inputs=tuple(i for i in graph.inputs if i.name in used))


def _fits(graph: Graph, schedule: Schedule) -> bool:
    try:
        return next(schedule(graph), None) is not None
    except NotGenerated:
        return False


def _joins(draft: Draft) -> bool:
    """Whether its knobs say nothing of the whole kernel, and are lengths of tiles."""
    return all(k.name not in (BUFFERS, LINES) for k in draft.knobs)


@dataclass(frozen=True)
class _Kernel:
    """What is written (:class:`KernelText`): the kernel's body, what it is given, and how outputs are called."""

    text: str
    host: HostText
    graph: Graph
    names: tuple[str, ...]

    def output(self, i: int) -> str:
        return self.names[i]


def _joined(graph: Graph, parts: list[Draft]) -> Draft:
    names = tuple(graph.output_names)
    host, body, cores, first = HostText(), [f"    {_FIRST}\n"], [], 0
    whole = Draft("several", _Kernel("", host, graph, names), [], "", f"{graph.name}: outputs one after the other.")
    for part in parts:
        count = len(part.writer.graph.outputs)
        own = names[first] if len(set(names)) == len(names) else f"p{first}"
        renamed = {part.writer.output(i): names[first + i] for i in range(count)}
        renamed |= {n: f"{n}_{own}" for n in _local(part)}
        body.append(_words(part.writer.text.replace(f"    {_FIRST}\n", "", 1), renamed))
        cores.append(_words(part.cores, renamed))
        host.scalars.update({renamed[n]: size for n, size in part.writer.host.scalars.items()})
        host.workspaces.update({renamed[n]: _words(c, renamed) for n, c in part.writer.host.workspaces.items()})
        whole.knobs += [
            replace(k, variable=renamed[k.variable], name=f"{k.name}_{own.upper()}", limit=_words(k.limit, renamed))
            for k in part.knobs
        ]
        whole.steps.update({renamed[n]: _words(text, renamed) for n, text in part.steps.items()})
        whole.checks += [(_words(test, renamed), why) for test, why in part.checks]
        first += count
    limit = cores[0] if len(cores) == 1 else f"max({', '.join(cores)})"
    return replace(whole, writer=_Kernel("".join(body), host, graph, names), cores=limit, sized=len(whole.knobs))


def _local(part: Draft) -> set[str]:
    """Names that a part gives: of its kernel, and of what the host hands over for it alone."""
    stored = {
        n.id
        for n in ast.walk(ast.parse(textwrap.dedent(part.writer.text)))
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    host = {*part.writer.host.scalars, *part.writer.host.workspaces, *part.steps, *(k.variable for k in part.knobs)}
    return (stored | host) - {"core", "cores"}


def _words(text: str, renamed: Mapping[str, str]) -> str:
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*\b", lambda m: renamed.get(m[0], m[0]), text)  # not tl.exp
