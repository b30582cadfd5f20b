"""Decorated functions as operators of one graph, so that AOTAutograd's tracing doesn't look into them.

A call of a plain function in a graph becomes a call of an operator that is made for it: a list of tensors in, a list of
tensors out; other arguments are part of the operator. The original says the results' shapes. It is only done where no
gradient is wanted: else AOTAutograd looks into the original, which has the formula.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from ..serving.dispatch import TunedOp

_NAMESPACE = "ascendopt_graph"
_library: list[Any] = []
_numbers = itertools.count()
#: Operators by what they stand for, so that a recompiled graph has the same ones.
_made: dict[Any, Any] = {}
_meaning: dict[Any, _Meaning] = {}


class _Meaning:
    """``op`` called with ``flat``, whose tensors' places are ``places``, as ``form``."""

    def __init__(self, op: TunedOp, flat: list[Any], places: list[int], form: Any) -> None:
        self.op, self._flat, self._places, self._form = op, flat, places, form

    def call_arguments(self, tensors: Any) -> Any:
        flat = list(self._flat)
        for place, tensor in zip(self._places, tensors, strict=True):
            flat[place] = tensor
        return pytree.tree_unflatten(flat, self._form)

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return _listed(self._call(self.op, tensors))

    def shapes(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return _listed(self._call(self.op.original, tensors))

    def _call(self, function: Callable[..., Any], tensors: list[torch.Tensor]) -> Any:
        args, kwargs = self.call_arguments(tensors)
        return function(*args, **kwargs)


def _listed(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def function_of(target: Any) -> TunedOp | None:
    """Which decorated function an operator made here stands for; None for others."""
    meaning = _meaning.get(target)
    return meaning.op if meaning is not None else None


def arguments(node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the tuned operator that a node calls."""
    meaning = _meaning.get(node.target)
    args, kwargs = (node.args, node.kwargs) if meaning is None else meaning.call_arguments(node.args[0])
    return tuple(args), dict(kwargs)


def retarget(node: Node, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Has the node call ``target`` with the tuned operator's own arguments."""
    if node.target in _meaning and isinstance(node.meta.get("val"), (list, tuple)) and len(node.meta["val"]) == 1:
        plain = target

        def target(*args: Any, **kwargs: Any) -> list[Any]:
            return _listed(plain(*args, **kwargs))

        target.__name__ = target.__qualname__ = plain.__name__
    node.target, node.args, node.kwargs = target, args, kwargs


def replace_functions(graph: GraphModule) -> None:
    """Makes operators of the decorated functions that a graph from before AOTAutograd calls."""
    changed = False
    for node in list(graph.graph.nodes):
        op = getattr(node.target, "tuned", None) if node.op == "call_function" else None
        result = node.meta.get("example_value")
        results = _listed(result) if isinstance(result, (torch.Tensor, tuple, list)) else []
        flat, form = pytree.tree_flatten((node.args, node.kwargs))
        places = [i for i, value in enumerate(flat) if isinstance(value, Node)]
        given = [flat[i].meta.get("example_value") for i in places]
        if not isinstance(op, TunedOp) or not results or not all(isinstance(t, torch.Tensor) for t in results + given):
            continue
        if any(t.requires_grad for t in results) or _aliases(results, given):
            continue
        overload = _operator(op, [None if isinstance(v, Node) else v for v in flat], places, form)
        with graph.graph.inserting_before(node):
            new: Any = graph.graph.call_function(overload, ([flat[i] for i in places],))
            new.meta["example_value"] = results
            if isinstance(result, torch.Tensor):
                new = graph.graph.call_function(operator.getitem, (new, 0))
                new.meta["example_value"] = result
        node.replace_all_uses_with(new)
        graph.graph.erase_node(node)
        changed = True
    if changed:
        graph.recompile()


def _aliases(results: list[torch.Tensor], given: list[Any]) -> bool:
    storages = {t.untyped_storage()._cdata for t in given}
    return any(t.untyped_storage()._cdata in storages for t in results)


def _operator(op: TunedOp, flat: list[Any], places: list[int], form: Any) -> Any:
    meaning = id(op), repr(flat), tuple(places), form
    if meaning not in _made:
        if not _library:
            _library.append(torch.library.Library(_NAMESPACE, "DEF"))  # type: ignore[no-untyped-call]
        library = _library[0]
        name = f"{op.name.rsplit('/', 1)[-1].replace('::', '_').replace('.', '_')}_{next(_numbers)}"
        name = "".join(c if c.isalnum() else "_" for c in name)
        stands_for = _Meaning(op, flat, places, form)
        library.define(f"{name}(Tensor[] tensors) -> Tensor[]")
        library.impl(name, stands_for.run, "CompositeExplicitAutograd")
        overload = getattr(getattr(torch.ops, _NAMESPACE), name).default
        torch.library.register_fake(overload, stands_for.shapes, lib=library)
        _made[meaning] = overload
        _meaning[overload] = stands_for
    return _made[meaning]
