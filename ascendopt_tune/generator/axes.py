"""Normalized indices: which axes a graph really has, how they lie in memory, and which are reduced.

Every axis of every node is a list of *atoms*; what broadcasts and reshapes identify is unified or split, and atoms that
always stand together are merged. [16, 64, 256, 256] of an elementwise module becomes one axis, of a normalization over
channels three: [A, R, B].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sympy

from .graph import REDUCTIONS, Graph, Node, NotGenerated, OutputPart, Size, ordered, product, same

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)


@dataclass(eq=False)
class Atom:
    """A part of an axis; ``become``: what it has turned out to be, outer ones first."""

    size: Size
    become: list[Atom] | None = None


Dim = list[Atom]


@dataclass(eq=False)
class Axis:
    """A normalized axis: its size, and the name that programs know it by (given by the schedule)."""

    size: Size
    name: str = ""


@dataclass(frozen=True)
class Placed:
    """How a tensor lies over the axes, outer ones first: (axis, its full size in the tensor, where the part begins)."""

    axes: tuple[tuple[Axis, Size, Size], ...]

    @property
    def names(self) -> list[Axis]:
        return [a for a, _, _ in self.axes]


@dataclass
class Normalized:
    """``axes``: outer ones first. ``of``: a node's axes. ``placed``: where inputs lie, ``outputs`` likewise.

    ``reduced``: by each reduction; ``scanned``: by each scan.
    """

    axes: list[Axis]
    of: dict[Node, tuple[Axis, ...]]
    placed: dict[Node, Placed]
    reduced: dict[Node, frozenset[Axis]]
    outputs: list[Placed] = field(default_factory=list)
    scanned: dict[Node, Axis] = field(default_factory=dict)


def normalize(graph: Graph) -> Normalized:
    """Raises NotGenerated where axes can't be told apart."""
    return _Normalizing(graph).normalized()


class _Normalizing:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = graph.nodes()
        self.dims: dict[Node, list[Dim]] = {}
        for n in self.nodes:
            self.dims[n] = self._node(n)
        self._pieces_side_by_side()

    def _pieces_side_by_side(self) -> None:
        """Pieces of a result run over the same axes; the one along which they lie, too, where they are as long."""
        leads: dict[int, Node] = {}
        for i, n in enumerate(self.graph.outputs):
            part = self.graph.part(i)
            lead = leads.setdefault(part.result, n)
            for d, (one, two) in enumerate(zip(self.dims[lead], self.dims[n], strict=True)):
                if one and two and (d != part.dim or same(lead.shape[d], n.shape[d])):
                    self._unify(one, two)

    # -- dims of nodes ------------------------------------------------------------------------------------------------

    def _node(self, n: Node) -> list[Dim]:
        if n.op in ("input", "number"):
            return [[] if s == 1 or n.op == "number" else [Atom(s)] for s in n.shape]
        if n.op == "scalar":
            return []
        if n.op == "reshape":
            return self._reshaped(n)
        if n.op == "permute":
            return [self.dims[n.args[0]][o] for o in n.info["order"]]
        if n.op in REDUCTIONS:
            return [[] if d in n.info["dims"] else list(a) for d, a in enumerate(self.dims[n.args[0]])]
        if n.op == "pick":
            return self._picked(n)
        if n.op == "scan":
            return [list(d) for d in self.dims[n.args[0]]]
        if n.op == "joined":
            raise NotGenerated("cat in front of what is not computed element by element has no rule.")
        if n.op in ("window", "pad", "flip"):
            raise NotGenerated(f"{n.op} together with what is around it fits no schedule.")
        return self._broadcast(n)

    def _broadcast(self, n: Node) -> list[Dim]:
        found: list[Dim] = [[] for _ in n.shape]
        for a in n.nodes:
            dims = self.dims[a]
            for i, dim in enumerate(dims):
                at = len(n.shape) - len(dims) + i
                if dim and found[at]:
                    self._unify(found[at], dim)
                found[at] = found[at] or dim
        return found

    def _picked(self, n: Node) -> list[Dim]:
        source, index = (self.dims[a] for a in n.args)
        for d, (one, two) in enumerate(zip(source, index, strict=True)):
            if d != n.info["dim"] and one and two:
                self._unify(one, two)
        return [list(b if d == n.info["dim"] else a or b) for d, (a, b) in enumerate(zip(source, index, strict=True))]

    def _reshaped(self, n: Node) -> list[Dim]:
        source = n.args[0]
        left = _resolve([a for dim in self.dims[source] for a in dim])
        if any(s != 1 and not d for s, d in zip(source.shape, self.dims[source], strict=True)):
            raise NotGenerated("a reshape of what is broadcast has no rule.")
        found: list[Dim] = []
        for size in reversed(n.shape):
            dim: Dim = []
            need = size
            while need != 1:
                if not left:
                    raise NotGenerated(f"a reshape from {source.shape} to {n.shape} can't be followed.")
                atom = left.pop()
                if not _whole(need / atom.size):
                    if not _whole(atom.size / need):
                        raise NotGenerated(f"a reshape from {source.shape} to {n.shape} can't be followed.")
                    outer, inner = Atom(sympy.simplify(atom.size / need)), Atom(need)
                    atom.become = [outer, inner]
                    left.append(outer)
                    atom = inner
                dim.insert(0, atom)
                need = sympy.simplify(need / atom.size)
            found.insert(0, dim)
        return found

    def _unify(self, a: Dim, b: Dim) -> None:
        """The same axis, however it was made: from the innermost atoms on."""
        left, right = _resolve(a), _resolve(b)
        while left and right:
            x, y = left.pop(), right.pop()
            if x is y:
                continue
            if same(x.size, y.size):
                y.become = [x]
            elif _whole(x.size / y.size):
                rest = Atom(sympy.simplify(x.size / y.size))
                x.become = [rest, y]
                left.append(rest)
            elif _whole(y.size / x.size):
                rest = Atom(sympy.simplify(y.size / x.size))
                y.become = [rest, x]
                right.append(rest)
            else:
                raise NotGenerated(f"axes of {x.size} and {y.size} elements meet.")

    # -- axes ---------------------------------------------------------------------------------------------------------

    def normalized(self) -> Normalized:
        of = {n: _resolve([a for dim in dims for a in dim]) for n, dims in self.dims.items()}
        outputs = [of[o] for o in self.graph.outputs]
        inputs = {n: self._layout(n) for n in self.nodes if n.op == "input"}
        order = _order([*(list(p) for p in of.values())])
        reduced = {n: frozenset(of[n.args[0]]) - frozenset(of[n]) for n in self.nodes if n.op in REDUCTIONS}
        scanned = {n: frozenset(_resolve(self.dims[n][n.info["dim"]])) for n in self.nodes if n.op == "scan"}
        groups = self._merged(order, of, inputs, outputs, {**reduced, **scanned})
        axis = {a: Axis(product([x.size for x in g])) for g in groups for a in g[:1]}

        def axes(atoms: Sequence[Atom]) -> tuple[Axis, ...]:
            return tuple(axis[a] for a in atoms if a in axis)

        placed = {n: _placed(layout, groups, axis) for n, layout in inputs.items()}
        used = {a for n in self._ran_over() for a in axes(of[n])}
        return Normalized(
            [axis[g[0]] for g in groups if axis[g[0]] in used],
            {n: axes(a) for n, a in of.items()},
            placed,
            {n: frozenset(axes(list(r))) for n, r in reduced.items()},
            [self._output(n, self.graph.part(i), axes) for i, n in enumerate(self.graph.outputs)],
            {n: axes(list(s))[0] for n, s in scanned.items()},
        )

    def _ran_over(self) -> list[Node]:
        """All nodes but the tensors from which only picked elements are taken."""
        taken = {n.args[0] for n in self.nodes if n.op == "pick"}
        read = [n.args[1:] if n.op == "pick" else n.args for n in self.nodes]
        otherwise = {a for args in read for a in args if isinstance(a, Node)}
        return [n for n in self.nodes if n not in taken or n in otherwise or n in self.graph.outputs]

    def _output(self, n: Node, part: OutputPart, axes: Callable[[Sequence[Atom]], tuple[Axis, ...]]) -> Placed:
        """Where an output's part is that is computed: behind what stands in front of a scan, or beside other pieces."""
        before = n.info.get("before", 0)
        found: list[tuple[Axis, Size, Size]] = []
        if part.dim is not None:
            if before:
                raise NotGenerated("a scan with something in front of it has no place beside other pieces.")
            beside = axes(self._cut(n, part))
            for a in axes(_resolve([x for dim in self.dims[n] for x in dim])):
                found.append((a, part.full, part.start) if a in beside else (a, a.size, ZERO))
            return Placed(tuple(found))
        own = axes(_resolve(self.dims[n][n.info["dim"]])) if before else ()
        for a in axes(_resolve([x for dim in self.dims[n] for x in dim])):
            found.append((a, a.size + before, sympy.Integer(before)) if a in own else (a, a.size, ZERO))
        return Placed(tuple(found))

    def _cut(self, n: Node, part: OutputPart) -> list[Atom]:
        """The axis of an output that goes on in other pieces of its result. Raises NotGenerated: it is split, too."""
        atoms = _resolve(self.dims[n][part.dim]) if part.dim is not None else []
        if part.dim is not None and len(atoms) != 1:
            raise NotGenerated("a piece along an axis that is split as well has no rule.")
        return atoms

    def _layout(self, n: Node) -> list[tuple[Atom, Size, Size]]:
        """Atoms of an input with their full sizes and where they begin."""
        full = n.info.get("full", n.shape)
        start = n.info.get("start", [ZERO] * len(n.shape))
        found: list[tuple[Atom, Size, Size]] = []
        for d, dim in enumerate(self.dims[n]):
            atoms = _resolve(dim)
            part = not same(full[d], n.shape[d])
            if part and len(atoms) != 1:
                raise NotGenerated("a part of an axis that is split as well has no rule.")
            found += [(a, full[d] if part else a.size, start[d] if part else ZERO) for a in atoms]
        return found

    def _merged(
        self,
        order: list[Atom],
        of: dict[Node, list[Atom]],
        inputs: dict[Node, list[tuple[Atom, Size, Size]]],
        outputs: list[list[Atom]],
        reduced: dict[Node, frozenset[Atom]],
    ) -> list[list[Atom]]:
        """Neighbours that no node, input or reduction tells apart are one axis."""
        sequences = [*of.values(), *outputs]
        parts = [{a for a, full, _ in layout if not same(full, a.size)} for layout in inputs.values()]
        parts += [set(self._cut(n, self.graph.part(i))) for i, n in enumerate(self.graph.outputs)]

        def together(a: Atom, b: Atom) -> bool:
            for s in sequences:
                if (a in s) != (b in s) or (a in s and s.index(b) != s.index(a) + 1):
                    return False
            if any((a in r) != (b in r) for r in reduced.values()):
                return False
            return not any(b in p or a in p for p in parts)

        groups: list[list[Atom]] = []
        for a in order:
            if groups and together(groups[-1][-1], a):
                groups[-1].append(a)
            else:
                groups.append([a])
        return groups


def _resolve(dim: Sequence[Atom]) -> list[Atom]:
    found: list[Atom] = []
    for a in dim:
        found += _resolve(a.become) if a.become is not None else [a]
    return found


def _placed(layout: list[tuple[Atom, Size, Size]], groups: Sequence[Sequence[Atom]], axis: dict[Atom, Axis]) -> Placed:
    """An input's axes in its own order, each with its full size and where it begins."""
    found = []
    for g in groups:
        if g[0] in [a for a, _, _ in layout]:
            part = [e for e in layout if e[0] in g]
            found.append((axis[g[0]], product([full for _, full, _ in part]), part[0][2]))
    position = {axis[a]: i for i, (a, _, _) in enumerate(layout) if a in axis}
    return Placed(tuple(sorted(found, key=lambda e: position[e[0]])))


def _order(sequences: list[list[Atom]]) -> list[Atom]:
    """All atoms, so that no sequence is turned around; the longest sequence leads."""
    found: list[Atom] = []
    for s in sorted(sequences, key=len, reverse=True):
        at = 0
        for a in s:
            if a in found:
                at = found.index(a) + 1
            else:
                found.insert(at, a)
                at += 1
    return found


def _whole(e: Size) -> bool:
    e = sympy.simplify(e)
    return bool(sympy.denom(sympy.together(e)) == 1) and e != 0


def behind(node: Node) -> list[Node]:
    return list(ordered([node]))
