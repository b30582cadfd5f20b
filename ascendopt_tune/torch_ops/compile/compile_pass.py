"""``torch.compile(model, backend="ascendopt")`` and ``aot.compile_pass``: tuned pairs bound into compiled graphs.

The pass goes over the calls of operators that were taken over, and of decorated functions. For each one's shapes it
looks up a tuned pair, or tunes (as the policy says), before the inner backend compiles; then the node calls the loaded
launcher. What can't be bound stays the call it is, and is dispatched when it runs:

* shapes with symbols (the pair is tuned for the shapes at hand, and its tiling program serves others of the bucket);
* a result whose gradient is wanted, in a graph from before AOTAutograd; after it, gradients are nodes of their own;
* cases that nothing is cached for.

Below AOTAutograd no launcher ever meets a fake tensor, because binding comes after the last tracing.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from ...errors import AscendOptError, SettingsError
from ..serving import intercept
from ..serving.bound import bind, bind_original
from ..serving.dispatch import TunedOp
from ..serving.guard import Probation
from ..serving.resolve import private_formats
from . import graph_ops, subgraphs

log = logging.getLogger("ascendopt_tune")

REPORT = "ascendopt"  # where a graph's ``meta`` has the pass's report


@dataclass(frozen=True)
class BoundNode:
    """One call of a tuned operator in a graph. ``served``: ``bound`` (by the tuned pair), ``original`` (bound to the
    operator's own kernel, which is the best), or ``dispatched`` at run time, for ``reason``."""

    operator: str
    case: str
    served: str
    reason: str = ""


@dataclass(frozen=True)
class _Taken:
    """Who serves a node. ``overload``: the operator's name; None for a decorated function."""

    op: TunedOp
    dispatch: Callable[..., Any]
    overload: str | None = None


def compile_graph(
    graph: GraphModule, example_inputs: Sequence[Any], *, options: Any = None, mode: Any = None, **kwargs: Any
) -> Callable[..., Any]:
    """The backend: the pass, then the inner backend ``options={"inner": ...}``.

    With ``options={"generate": True}`` pointwise and row subgraphs become operators before the pass (subgraphs.py),
    after AOTAutograd's tracing: the inner backend is ``aot_eager`` then.

    ``eager`` (the default), ``aot_eager``, or the name (or function) of another one, such as ``npu``. Others than these
    two trace the graph once more, so nothing is bound for them: cases are tuned, and dispatched when they run.

    Raises:
        SettingsError: an unknown option or inner backend, or one that can't be loaded.
    """
    given = dict(options or {})
    inner = given.pop("inner", "eager")
    generate = bool(given.pop("generate", given.pop("ascendopt.generate", False)))
    if generate and inner not in ("eager", "aot_eager"):
        raise SettingsError(f"subgraphs aren't generated for the inner backend {inner!r}.", "Leave it out.")
    if given or mode is not None or kwargs:
        unknown = [*given, *(["mode"] if mode is not None else []), *kwargs]
        raise SettingsError(f"backend ascendopt has no option {unknown[0]!r}.", "It has two: inner and generate.")
    if inner == "eager" and not generate:
        compile_pass(graph)
        return graph.forward
    graph_ops.replace_functions(graph)
    if inner == "aot_eager" or generate:
        from functorch.compile import min_cut_rematerialization_partition  # type: ignore[import-untyped]
        from torch._dynamo.backends.common import aot_autograd

        make: Any = aot_autograd
        traced = partial(_compile_traced, generate=generate)
        compiled: Callable[..., Any] = make(
            fw_compiler=traced,
            bw_compiler=traced,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )(graph, example_inputs)
        return compiled
    function = _lookup(inner) if isinstance(inner, str) else inner
    compile_pass(graph, bind_nodes=False)
    result: Callable[..., Any] = function(graph, example_inputs)
    return result


def _compile_traced(graph: GraphModule, example_inputs: Sequence[Any], *, generate: bool = False) -> Any:
    from functorch.compile import make_boxed_func

    if generate:
        graph = subgraphs.generate(graph, lambda node: _taken(node) is not None)
    make: Any = make_boxed_func
    return make(compile_pass(graph).forward)


def _lookup(name: str) -> Callable[..., Any]:
    from torch._dynamo.backends.registry import lookup_backend

    try:
        if name == "npu":
            import torchair  # type: ignore[import-not-found]

            function: Callable[..., Any] = torchair.get_npu_backend()
            return function
        return lookup_backend(name)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SettingsError(
            f"the inner backend {name!r} of ascendopt can't be loaded: {reason}",
            "Install what provides it (torchair for npu), or give eager or aot_eager.",
        ) from error


def compile_pass(graph: GraphModule, *, bind_nodes: bool = True) -> GraphModule:
    """See :func:`ascendopt_tune.compile_pass`."""
    rows: list[BoundNode] = []
    if torch.npu.is_available() and torch.npu.is_current_stream_capturing():  # type: ignore[attr-defined]
        log.warning("a graph is compiled during graph capture: nothing is looked up or tuned for it")
        return graph
    with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
        trusted: set[Node] = set()
        for node in list(graph.graph.nodes):
            row = None
            if node.op == "call_function" and (taken := _taken(node)) is not None:
                row = _treat(node, taken, bind_nodes, trusted)
                rows.append(row)
            if (row is not None and row.served == "bound") or (
                _keeps_promises(node) and trusted.issuperset(node.all_input_nodes)
            ):
                trusted.add(node)
            if row is not None:
                log.info("%s %s: %s%s", row.operator, row.case, row.served, f" ({row.reason})" if row.reason else "")
    graph.meta[REPORT] = tuple(rows)
    if any(row.served != "dispatched" for row in rows):
        graph.graph.lint()
        graph.recompile()
    return graph


def _taken(node: Node) -> _Taken | None:
    """Who serves the node's call, if the operator is a tuned one."""
    target: Any = node.target
    if (op := getattr(target, "tuned", None)) is not None and isinstance(op, TunedOp):
        return _Taken(op, op)
    if (op := graph_ops.function_of(target)) is not None:
        return _Taken(op, op)
    if isinstance(target, torch._ops.OpOverloadPacket):
        names: Any = target.overloads()  # type: ignore[no-untyped-call]
        if len(names) != 1:
            return None  # below AOTAutograd it is one overload
        target = getattr(target, names[0])
    if not isinstance(target, torch._ops.OpOverload):
        return None
    name: str = target.name()  # type: ignore[no-untyped-call]
    if (hook := intercept.hook_of(name)) is not None:
        return _Taken(hook.layers[-1], target, name)
    return None


def _treat(node: Node, taken: _Taken, bind_nodes: bool, trusted: Container[Node]) -> BoundNode:
    op = taken.op
    args, kwargs = graph_ops.arguments(node)
    values, traced = _values((args, kwargs))
    if values is None:
        return BoundNode(op.name, "", "dispatched", "its shapes are unknown")
    static = all(a is b for a, b in zip(pytree.tree_leaves(values), traced, strict=True))
    choice = op.prepare(values[0], values[1], taken.dispatch)
    case = _text(op, *values)
    if not static:
        return BoundNode(op.name, case, "dispatched", "shapes with symbols")
    if not bind_nodes:
        return BoundNode(op.name, case, "dispatched", "the inner backend traces the graph")
    if "val" not in node.meta and any(t.requires_grad for t in _tensors(node.meta.get("example_value"))):
        return BoundNode(op.name, case, "dispatched", "a gradient is wanted")
    if private_formats():
        return BoundNode(op.name, case, "dispatched", "tensors may have private formats")
    if isinstance(choice, Probation):
        leaves = pytree.tree_flatten_with_path((args, kwargs))[0]
        checked = {pytree.keystr(path) for path, value in leaves if isinstance(value, Node) and value not in trusted}
        graph_ops.retarget(node, bind(op, taken.dispatch, taken.overload, checked), args, kwargs)
        return BoundNode(op.name, case, "bound")
    if choice.kind == "kept" and taken.overload is not None:
        node.target = bind_original(op, taken.dispatch, taken.overload)
        return BoundNode(op.name, case, "original")
    return BoundNode(op.name, case, "dispatched", choice.reason or choice.kind or "switched off")


def _keeps_promises(node: Node) -> bool:
    """Whether what the node returns has the form of its fake value, if its inputs do: TorchDynamo guards the graph's
    inputs, and torch's own operators have true fake kernels; for others nobody vouches."""
    target: Any = node.target
    if node.op != "call_function":
        return node.op in ("placeholder", "get_attr", "call_method")
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target).split(".")[0] in ("aten", "prims")
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    name = getattr(target, "__name__", "")
    module = getattr(target, "__module__", None) or ("torch" if getattr(torch, name, None) is target else "")
    return module.split(".")[0] in ("torch", "_operator")


def _values(structure: Any) -> tuple[Any, list[Any]]:
    """The arguments with nodes replaced by their fake values, and these with symbols replaced by the numbers at hand;
    None instead if something is not known."""
    flat, form = pytree.tree_flatten(structure)
    traced = [_value_of(v) if isinstance(v, Node) else v for v in flat]
    try:
        return pytree.tree_unflatten([_concrete(v) for v in traced], form), traced
    except _UnknownError:
        return None, traced


class _UnknownError(Exception):
    """A value that only the run will tell."""


def _value_of(node: Node) -> Any:
    return node.meta.get("val", node.meta.get("example_value", _MISSING))


_MISSING = object()


def _concrete(value: Any) -> Any:
    if value is _MISSING:
        raise _UnknownError
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return _hint(value)
    if isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride())):
        shape, strides = [_hint(n) for n in value.shape], [_hint(n) for n in value.stride()]
        with getattr(value, "fake_mode", contextlib.nullcontext()):
            return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)
    return value


def _hint(value: Any) -> Any:
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    hint = value.node.hint
    if hint is None or isinstance(hint, (torch.SymInt, torch.SymFloat)):
        raise _UnknownError
    return hint


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return (v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor))


def _text(op: TunedOp, args: Any, kwargs: Any) -> str:
    try:
        values = op.describe(args, kwargs).values
    except AscendOptError as error:
        return f"({error.message})"
    return " ".join(
        f"{name}=({' '.join(map(str, v))})" if isinstance(v, tuple) else f"{name}={v}" for name, v in values.items()
    )


__all__ = ["BoundNode", "compile_graph", "compile_pass"]
