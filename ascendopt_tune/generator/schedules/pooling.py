"""What a window is made of, for the schedules of windows."""

from __future__ import annotations

import sympy

from ..axes import Axis, Normalized, Placed
from ..graph import Graph, Node, NotGenerated, ordered, product

FIRST = {"sum": 0.0, "max": -float("inf")}
MOST = 8  # elements that a load puts at each end


class Window:
    """A window's axes without those that it leaves as they are; lists go by axis, the lanes last.

    ``source``: the input. ``rows``: how many planes (or volumes, or lines) there are. ``sizes``, ``outs``: of the input
    and the output.

    Raises:
        NotGenerated: the window is over what is computed.
    """

    def __init__(self, window: Node) -> None:
        source = window.args[0]
        while source.op == "reshape":
            source = source.args[0]
        if source.op != "input" or source.info.get("start"):
            raise NotGenerated("a window over what is computed has no schedule.")
        self.source = source
        rank, lead = len(window.info["kernel"]), len(window.shape) - len(window.info["kernel"])
        chosen = [i for i in range(rank) if i == rank - 1 or not _trivial(window, i)]
        self.sizes = [window.args[0].shape[lead + i] for i in chosen]
        self.outs = [window.shape[lead + i] for i in chosen]
        self.kernel, self.stride, self.padding, self.dilation = (
            [int(window.info[k][i]) for i in chosen] for k in ("kernel", "stride", "padding", "dilation")
        )
        self.rows = product(window.shape[:lead])


def placed(graph: Graph, window: Node, rows: Axis, outs: list[Axis]) -> Normalized:
    """Every node behind the window lies over the output's axes; numbers over none. Raises NotGenerated."""
    of: dict[Node, tuple[Axis, ...]] = {}
    axes = (rows, *outs)
    known = set(ordered([window]))
    for n in graph.nodes():
        of[n] = axes if n is window or any(of[a] for a in n.nodes) else ()
        if n.op == "input" and n not in known:
            raise NotGenerated("a window that meets another tensor has no schedule.")
    whole = Placed(tuple((a, a.size, sympy.Integer(0)) for a in axes))
    return Normalized(list(axes), of, {}, {}, [whole])


def _trivial(window: Node, i: int) -> bool:
    of = {k: window.info[k][i] for k in ("kernel", "stride", "padding")}
    at = len(window.shape) - len(window.info["kernel"]) + i
    return of == {"kernel": 1, "stride": 1, "padding": 0} and bool(window.shape[at] == 1)
