"""How large tiles may be: the largest that the Unified Buffer holds at the example's shapes."""

from __future__ import annotations

from collections.abc import Iterable

from ..dsl import DslError, Program, launch_of, read_text
from ..dsl.ir import BUFFERS
from .graph import Graph, NotGenerated
from .program import LINES, Draft, text_of

_SIZES = (16384, 12288, 8192, 6144, 4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 128, 64, 32, 16, 8)
_LINES = tuple(range(64, 0, -1))  # of a block


def fitted(graph: Graph, drafts: Iterable[Draft]) -> tuple[str, Program]:
    """The first draft that fits with its largest tile, which is no larger than the schedule wants; and its schedule.

    Raises:
        NotGenerated: none fits.
        DslError: the text breaks a rule of the language.
    """
    shapes = {i.name: i.example for i in graph.inputs if i.shape is not None}
    first: DslError | None = None
    for draft in drafts:
        knobs = [k for k in draft.knobs[: draft.sized] if k.name != BUFFERS]
        sizes = _LINES if knobs and knobs[0].name == LINES else _SIZES
        largest = max((k.default for k in knobs), default=0)
        for size in [s for s in sizes if s <= largest] if knobs else [0]:
            tiles = {k.name: min(size, k.default) for k in knobs}
            program = read_text(text_of(graph, draft, tiles), f"{graph.name}.dsl.py")
            try:
                launch_of(program, shapes)
            except DslError as error:
                first = first or error
                if "Unified Buffer" not in str(error):
                    raise
                continue
            return draft.schedule, program
    raise NotGenerated(f"no tile is small enough for the Unified Buffer: {first}")
