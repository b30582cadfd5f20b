"""How large tiles may be: the largest that the Unified Buffer holds at the example's shapes."""

from __future__ import annotations

from ..dsl import DslError, Program, launch_of, read_text
from .graph import Graph, NotGenerated
from .program import Draft, text_of

_SIZES = (16384, 12288, 8192, 6144, 4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 128, 64)


def fitted(graph: Graph, draft: Draft) -> Program:
    """The program with the largest tile that fits, and that is no larger than the schedule wants.

    Raises:
        NotGenerated: none fits.
        DslError: the text breaks a rule of the language.
    """
    shapes = {i.name: i.example for i in graph.inputs if i.shape is not None}
    first: DslError | None = None
    name = draft.knobs[0].name
    for size in (s for s in _SIZES if s <= draft.knobs[0].default):
        program = read_text(text_of(graph, draft, {name: size}), f"{graph.name}.dsl.py")
        try:
            launch_of(program, shapes)
        except DslError as error:
            first = first or error
            if "Unified Buffer" not in str(error):
                raise
            continue
        return program
    raise NotGenerated(f"no tile is small enough for the Unified Buffer: {first}")
