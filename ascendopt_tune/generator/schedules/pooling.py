"""What a window is made of, for the schedules of windows."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from ..axes import Axis, Normalized, Placed
from ..graph import Graph, Node, NotGenerated, ordered, product
from ..text import Writer

FIRST = {"sum": 0.0, "max": -float("inf")}
MOST = 8  # elements that a load puts at each end


@dataclass(frozen=True)
class Side:
    """One axis under a window: ``size``, ``out`` as text."""

    size: str
    out: str
    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def outside(self, tap: int) -> tuple[bool, bool]:
        """Whether places of this element of the window may lie before the first, or behind the last."""
        return self.padding > tap * self.dilation, self.padding > (self.kernel - 1 - tap) * self.dilation


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

    def sides(self, writer: Writer, outs: list[Axis]) -> list[Side]:
        """The axes as the kernel knows them; ``outs``: the output's."""
        last = len(self.sizes) - 1
        names = [writer.size(s, "width" if k == last else f"in{k}") for k, s in enumerate(self.sizes)]
        given = zip(names, outs, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [Side(name, writer.axis(out), *numbers) for name, out, *numbers in given]


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


def times(a: str, b: str | int) -> str:
    """A product of whole numbers, as text."""
    return "0" if "0" in (a, str(b)) else str(b) if a == "1" else a if str(b) == "1" else f"{a} * {b}"


def added(a: str, b: int, suffix: str = "") -> str:
    """A sum, as text; ``suffix``: of the number."""
    if b == 0:
        return a
    return f"{b}{suffix}" if a == "0" else f"{a} {'+' if b > 0 else '-'} {abs(b)}{suffix}"
