"""Which values inputs may have: found by trying the module, for the ``[domain]`` of op.toml."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from .graph import Graph
from .interpreted import draw, shapes_at

if TYPE_CHECKING:
    import torch

_LEAST = 1e-4  # where 0 isn't allowed
_DISTINCT = (5, 7, 11, 13, 17)  # sizes that tell axes apart
_FAR = 1 << 20  # behind the end of any of them


def domains(graph: Graph, call: Any, tensors: Sequence[torch.Tensor]) -> dict[str, dict[str, Any]]:
    """Indices stay inside their axis; inputs whose negative values give no number are not negative.

    Args:
        call: the module on tensors in the order of the graph's inputs.
        tensors: examples, of which shapes and dtypes are taken; those that are expanded of one element may be too
            large to draw, so small ones stand for them.
    """
    import torch

    found: dict[str, dict[str, Any]] = {}
    for node in graph.nodes():
        if node.op == "pick":
            source, index = node.args
            for name in _tensors(index):
                found[name] = {"index": source.info["tensor"], "axis": int(node.info["dim"])}
        if node.op == "scatter" and all(a.op == "input" for a in node.nodes):
            target, index, _ = (a.info["tensor"] for a in node.args)
            found[index] = {"index": target, "axis": int(node.info["dim"])}
    if any(t.untyped_storage().nbytes() < t.numel() * t.element_size() for t in tensors):
        small = shapes_at(graph, _DISTINCT)
        if small is None:
            return found
        tensors = draw(graph, small, found, 0)
    inputs = [i for i in graph.inputs if i.shape is not None]
    floating = [k for k, i in enumerate(inputs) if i.dtype.startswith(("float", "bfloat"))]
    generator = torch.Generator().manual_seed(0)

    def finite(positive: Sequence[int], zeros: bool = False) -> bool:
        drawn = []
        for k, t in enumerate(tensors):
            if k not in floating:
                drawn.append(t)
                continue
            value = torch.zeros(t.shape) if zeros else torch.randn(t.shape, generator=generator)
            drawn.append((value.abs() if k in positive else value).to(t.dtype))
        result = call(drawn)
        results = result if isinstance(result, (tuple, list)) else [result]
        return all(bool(torch.isfinite(r).all()) for r in results if r.is_floating_point())

    if finite(()) or not finite(floating):
        return found
    for count in range(1, len(floating) + 1):
        for chosen in combinations(floating, count):
            if finite(chosen):
                low = 0.0 if finite(chosen, zeros=True) else _LEAST
                return found | {inputs[k].name: {"low": low} for k in chosen}
    return found


def indices(graph: Graph, call: Any) -> dict[str, dict[str, Any]]:
    """Which axis whole numbers are indices into, found by trying the module with the last element and one behind it.

    Args:
        call: the module on tensors in the order of the graph's inputs.
    """
    import torch

    found: dict[str, dict[str, Any]] = {}
    shapes = shapes_at(graph, _DISTINCT)
    inputs = [i for i in graph.inputs if i.shape is not None]
    if shapes is None:
        return found
    drawn = draw(graph, shapes, {}, 0)

    def takes(k: int, value: int) -> bool:
        try:
            call([torch.full_like(t, value) if j == k else t for j, t in enumerate(drawn)])
        except (IndexError, RuntimeError):
            return False
        return True

    for k, i in enumerate(inputs):
        if i.dtype not in ("int32", "int64") or takes(k, _FAR):
            continue
        for other in inputs:
            for axis, size in enumerate(shapes[other.name]):
                if i.name not in found and takes(k, size - 1) and not takes(k, size):
                    found[i.name] = {"index": other.name, "axis": axis}
        drawn[k] = torch.zeros_like(drawn[k])
    return found


def _tensors(node: Any) -> list[str]:
    if node.op == "input":
        return [str(node.info["tensor"])]
    return [name for a in node.nodes for name in _tensors(a)]
