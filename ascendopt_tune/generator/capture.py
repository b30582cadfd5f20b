"""From a torch module to a graph of primitives: torch.export with free sizes, ATen's own decompositions, our rules."""

from __future__ import annotations

import inspect
import keyword
import logging
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy

from ..dsl.ir import DTYPES
from .aten import RULES
from .aten_elementwise import truncated
from .build import GraphBuilder
from .graph import Graph, Input, Node, NotGenerated, OutputPart, ordered

if TYPE_CHECKING:
    import torch

#: What a program's names may not be: Python's words, the language's, and names that generated text has taken.
_TAKEN = frozenset({
    *keyword.kwlist, "tl", "min", "max", "range", "float", "core", "cores", "tile", "at", "n", "row", "piece",
    "several", "first", "last", "begin", "to", "m", "k", "j", "kept", "known", "place", "places", "update", "updates",
    "result", "line", "lines", "lanes", "window", "span", "mixed", "scaled", "parts", "position", "near", "low", "part",
})  # fmt: skip

#: Operations that have rules of their own, in the names of those that ATen would take apart.
_KEPT = ("upsample_", "take_along_dim", "index_copy")


@dataclass(frozen=True)
class Captured:
    """``tensors``: the program's inputs in order (parameters of the module first), at the example's shapes.

    ``arguments``: what the module is called with, each the program's name for it (or none) and the example.
    """

    graph: Graph
    tensors: tuple[torch.Tensor, ...]
    arguments: tuple[tuple[str, Any], ...]


def capture(given: ModuleInputs) -> Captured:
    """The graph of a module's forward pass. Raises NotGenerated: an operation has no rule."""
    builder = GraphBuilder(_hints(given.program))
    made: dict[Any, Any] = dict(given.nodes)
    for node in given.program.graph.nodes:
        if node.op == "call_function":
            made[node] = _call(node, made, builder)
        elif node.op == "output":
            sign = given.program.graph_signature
            mutated = len(sign.output_specs) - len(sign.user_outputs)
            outputs = [_typed(made[n], n) for n in node.args[0][mutated:]]
    if builder.equal:
        outputs = _substituted(outputs, builder.equal)
    used = {n.name for n in ordered(outputs) if n.op in ("input", "scalar")}
    return given.captured(outputs, used, builder.equal, builder.example)


def signature(given: ModuleInputs) -> Captured:
    """What a module is given, and nothing of what it does: a graph without outputs."""
    return given.captured([], {found.name for node, found in given.nodes.items() if node.users})


class ModuleInputs:
    """An exported module's inputs, as the program's: those of its state, tensors, numbers.

    ``nodes``: by placeholder, the node of an input; nothing for what is part of the module.

    Args:
        inputs: example inputs: tensors; floats, which become numbers the caller passes; others are part of the module.

    Raises:
        NotGenerated: torch can't export the module, or it takes what no operator does.
    """

    def __init__(self, module: torch.nn.Module, inputs: Sequence[Any], name: str) -> None:
        import torch
        from torch.utils import _pytree as pytree

        given = [torch.tensor(i) if isinstance(i, float) else i for i in inputs]
        self.program = _exported(module, given)
        _refuse_structures(self.program.call_spec.out_spec)
        # Every leaf of an argument has a placeholder; the first one stands for the argument.
        self._users = iter(
            [
                (value, leaf, k == 0)
                for value, one in zip(inputs, given, strict=True)
                for k, leaf in enumerate(pytree.tree_leaves(one))
            ]
        )
        self._name = name
        self._names: set[str] = set(_TAKEN) | {name}
        self._tensors: list[torch.Tensor] = []
        self._found: list[Input] = []
        self._arguments: list[tuple[str, Any]] = []
        sign = self.program.graph_signature
        self._state = {
            **sign.inputs_to_parameters,
            **sign.inputs_to_buffers,
            **getattr(sign, "inputs_to_lifted_tensor_constants", {}),
        }
        self._constants = {**self.program.state_dict, **self.program.constants}
        placeholders = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        self.nodes: dict[Any, Node] = {n: m for n in placeholders if (m := self._node(n)) is not None}

    def _node(self, node: Any) -> Node | None:
        import torch

        state = self._state.get(node.name)
        value, tensor, first = (None, self._constants[state], True) if state is not None else next(self._users)
        label = _label(state.replace(".", "_") if state else node.name, self._names)
        if state is None and first:
            self._arguments.append((label, value))
        if isinstance(value, float):
            self._found.append(Input(label, None, "float32", value=value))
            return Node("scalar", (), (), "float32", label)
        if not isinstance(tensor, torch.Tensor):
            return None
        if isinstance(value, (list, tuple)):
            raise NotGenerated(f"the input {node.name} is a {type(value).__name__} of tensors.")
        shape = _shape(node.meta["val"])
        dtype = _dtype(tensor.dtype, label)
        self._found.append(Input(label, shape, dtype, tuple(tensor.shape), state or ""))
        self._tensors.append(tensor)
        return Node("input", (), shape, dtype, label, {"tensor": label})

    def captured(
        self,
        outputs: Sequence[Node],
        used: set[str],
        equal: Mapping[Any, Any] | None = None,
        example: Mapping[Any, int] | None = None,
    ) -> Captured:
        """``equal``: sizes that are others, by their symbol. ``example``: what sizes are there."""
        names = [f.name for f in self._found if f.shape is not None]
        inputs = tuple(
            f if f.shape is None else replace(f, shape=tuple(s.subs(equal or {}) for s in f.shape))
            for f in self._found
            if f.name in used
        )
        kept = tuple(t for t, f in zip(self._tensors, names, strict=True) if f in used)
        pieces, parts = _apart(outputs)
        graph = Graph(self._name, inputs, tuple(pieces), example or _hints(self.program), tuple(parts))
        return Captured(graph, kept, tuple(self._arguments))


def _apart(results: Sequence[Node]) -> tuple[list[Node], list[OutputPart]]:
    """What is computed for itself, and which part of which result each is; no parts where nothing was joined."""
    if all(r.op != "joined" for r in results):
        return list(results), []
    pieces: list[Node] = []
    parts: list[OutputPart] = []
    for number, r in enumerate(results):
        if r.op != "joined":
            pieces.append(r)
            parts.append(OutputPart(number))
            continue
        dim, start = r.info["dim"], sympy.Integer(0)
        for piece in r.args:
            pieces.append(piece if piece.dtype == r.dtype else replace(piece, dtype=r.dtype))
            parts.append(OutputPart(number, dim, start, r.shape[dim]))
            start = start + piece.shape[dim]
    return pieces, parts


def _exported(module: torch.nn.Module, given: Sequence[Any]) -> Any:
    """With every size free that the module leaves free."""
    import torch
    from torch.utils import _pytree as pytree

    free = torch.export.Dim.AUTO
    shapes: Any = tuple(
        dict.fromkeys(range(t.dim()), free) if isinstance(t, torch.Tensor) else pytree.tree_map(lambda _: None, t)
        for t in given
    )
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        shapes = (shapes,)
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exported = torch.export.export(module, tuple(given), dynamic_shapes=shapes)
            except Exception:  # some code of modules needs numbers
                exported = torch.export.export(module, tuple(given))
            table: Any = torch.export.default_decompositions()
            for name in [n for n in table if any(word in str(n) for word in _KEPT)]:
                table.pop(name)
            return exported.run_decompositions(table)
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else ""
        raise NotGenerated(f"torch.export can't take the module: {type(error).__name__}: {text}.") from error
    finally:
        logging.disable(level)


def _dtype(dtype: torch.dtype, of: str) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise NotGenerated(f"{of} is {name}.", f"The tile language has {', '.join(DTYPES)}.")
    return name


def _refuse_structures(results: Any) -> None:
    """An operator has one output, or several in a row. Raises NotGenerated: the module returns something else."""
    if not results.is_leaf() and not (results.type in (tuple, list) and all(c.is_leaf() for c in results.children())):
        kind = "a tuple in a tuple" if results.type in (tuple, list) else f"a {results.type.__name__}"
        raise NotGenerated(f"the module returns {kind}.", "An operator returns a tensor, or a tuple of tensors.")


def _call(node: Any, made: dict[Any, Any], builder: GraphBuilder) -> Any:
    value = node.meta.get("val")
    if _is_size(value):
        return _size(value)
    if getattr(node.target, "__name__", "") == "getitem":
        source, index = made[node.args[0]], node.args[1]
        if not isinstance(source, tuple) or index >= len(source):
            return None  # goes into statistics of the module, which the operator doesn't keep
        return source[index]
    name = str(node.target).split(".")[1] if "." in str(node.target) else str(node.target)
    if name == "_assert_tensor_metadata":  # what torch.export writes beside a conversion
        return None
    if name == "_to_copy":
        return _converted(node, made[node.args[0]], builder)
    rule = RULES.get(name)
    if rule is None:
        raise NotGenerated(f"aten.{name} has no rule.")
    builder.name = re.sub(r"_\d+$", "", node.name.lstrip("_")) or "value"

    def read(a: Any) -> Any:
        if isinstance(a, (list, tuple)):
            return [read(x) for x in a]
        return made[a] if hasattr(a, "meta") else a

    args = [read(a) for a in node.args]
    named = {k: read(v) for k, v in node.kwargs.items() if k not in ("dtype", "device", "layout", "pin_memory")}
    return rule(builder, *args, **named)


def _converted(node: Any, x: Any, builder: GraphBuilder) -> Any:
    """A conversion. Everything is computed in float32: what narrows a module's own numbers is more than a name.

    Raises:
        NotGenerated: numbers of 32 bits go through 16, and the module goes on with them.
    """
    import torch

    given, wanted = node.args[0].meta["val"].dtype, node.meta["val"].dtype
    if given.is_floating_point and not wanted.is_floating_point and wanted is not torch.bool:
        return truncated(builder, x)
    ends = all(user.op == "output" for user in node.users)
    takes = (n.meta["val"] for n in node.graph.nodes if n.op == "placeholder")
    narrow = any(getattr(value, "dtype", None) in (torch.float16, torch.bfloat16) for value in takes)
    if given is torch.float32 and wanted in (torch.float16, torch.bfloat16) and not ends and not narrow:
        raise NotGenerated(f"rounding to {str(wanted).removeprefix('torch.')} in the middle of a module has no rule.")
    return x


def _typed(made: Any, node: Any) -> Any:
    """A result with the dtype that the module gives it; what is in between is computed in float32."""
    if not isinstance(made, Node):
        raise NotGenerated("an index that the module returns has no rule.")
    if any(a == 1 and b != 1 for a, b in zip(made.shape, _shape(node.meta["val"]), strict=True)):
        raise NotGenerated("a result that repeats its elements has no rule.")
    dtype = _dtype(node.meta["val"].dtype, "the result")
    return made if made.dtype == dtype else replace(made, dtype=dtype)


def _substituted(outputs: Sequence[Node], equal: Mapping[Any, Any]) -> list[Node]:
    """The same nodes with some sizes in terms of others."""
    made: dict[Node, Node] = {}
    for n in ordered(outputs):
        args = tuple(made[a] if isinstance(a, Node) else a for a in n.args)
        lies = {k: tuple(s.subs(equal) for s in n.info[k]) for k in ("start", "full") if k in n.info}
        made[n] = replace(n, args=args, shape=tuple(s.subs(equal) for s in n.shape), info={**n.info, **lies})
    return [made[n] for n in outputs]


def _is_size(value: Any) -> bool:
    import torch

    return isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool)


def _size(value: Any) -> sympy.Expr:
    """As sympy knows it, with torch's own functions replaced."""
    if isinstance(value, int):
        return sympy.Integer(value)
    found: sympy.Expr = value.node.expr
    return found.replace(
        lambda e: type(e).__name__ in ("FloorDiv", "CleanDiv"),
        lambda e: e.args[0] / e.args[1] if type(e).__name__ == "CleanDiv" else sympy.floor(e.args[0] / e.args[1]),
    )


def _shape(value: Any) -> tuple[sympy.Expr, ...]:
    return tuple(_size(s) for s in value.shape)


def _hints(program: Any) -> dict[sympy.Symbol, int]:
    found: dict[sympy.Symbol, int] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for s in getattr(value, "shape", ()):
            if hasattr(s, "node"):
                for symbol in s.node.expr.free_symbols:
                    found[symbol] = int(s.node.shape_env.backed_var_to_val[symbol])
    return found


def _label(name: str, names: set[str]) -> str:
    label = re.sub(r"\W", "_", name).lower()
    while label in names:
        label += "_"
    names.add(label)
    return label
