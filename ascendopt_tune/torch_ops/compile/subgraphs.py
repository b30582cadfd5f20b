"""Pointwise and row subgraphs of a traced graph as operators: found, generated, judged, and called in their place.

A subgraph becomes a call of a tuned operator whose original is the subgraph itself, so that everything of a call that
is served holds: the first one is compared, a launch that fails is answered by the original. A subgraph that no rule
fits, that the gate refuses, or whose operator isn't faster than its calls one by one stays what it was.
"""

from __future__ import annotations

import inspect
import logging
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ... import paths
from ...errors import AscendOptError
from ...generator import Generated
from ...generator import generate as from_module
from ...generator.roofline import roofline_us
from ...nouns.run_options import RunOptions
from ...sources.registry import load_folder
from ...store.entry import sha256
from ..serving.dispatch import TunedOp
from ..serving.guard import Probation
from ..serving.registered import registered
from ..serving.resolve import Options

log = logging.getLogger("ascendopt_tune")

REPORT = "ascendopt_generated"  # where a graph's ``meta`` has what became of its subgraphs
# fmt: off
_POINTWISE = (
    "add", "sub", "rsub", "mul", "div", "pow", "where", "clamp", "clamp_min", "maximum", "minimum", "abs", "neg",
    "relu", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "silu", "gelu", "erf",
    "elu", "leaky_relu", "hardtanh", "lt", "le", "gt", "ge", "eq", "ne",
)
# fmt: on
_ROWS = ("sum", "mean", "amax", "amin", "_softmax", "_log_softmax", "linalg_vector_norm")
_FREE = ("_to_copy",)  # alone it is no work
_FLOATING = (torch.float32, torch.float16, torch.bfloat16)
_LEAST = 2  # calls with work that are worth an operator


@dataclass(frozen=True)
class Subgraph:
    """What became of one. ``calls``: its ATen calls. ``served``: by the operator made of it; else ``reason`` says why.

    ``time_us``: the operator's, modelled; ``calls_us``: what its calls take at the least, one by one (roofline.py).
    """

    name: str
    calls: tuple[str, ...]
    served: bool
    reason: str = ""
    schedule: str = ""
    time_us: float | None = None
    calls_us: float | None = None


class Subgraphs(tuple[Subgraph, ...]):
    """Rows of subgraphs, which print as a table."""

    def __str__(self) -> str:
        lines = []
        for s in self:
            if s.time_us is None or s.calls_us is None:
                times = ""
            else:
                times = f": {s.time_us:.2f} us instead of {s.calls_us:.2f} or more, modelled"
            how = f"operator ({s.schedule})" if s.served else f"as it was ({s.reason})"
            lines.append(f"{s.name} [{' '.join(s.calls)}] {how}{times}")
        return "\n".join(lines) or "no subgraph was looked at"


#: Of this process, in the order of compilation.
found: list[Subgraph] = []


class _Fusible(OperatorSupportBase):
    def __init__(self, taken: Callable[[Node], bool]) -> None:
        self._taken = taken

    def is_node_supported(self, _submodules: Any, node: Node) -> bool:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or self._taken(node):
            return False
        if any(not isinstance(n, int) for n in value.shape) or value.dim() == 0:
            return False
        comparison = value.dtype == torch.bool
        known = _name(node) in (*_POINTWISE, *_ROWS, *_FREE)
        return known and (comparison or value.dtype in _FLOATING) and str(node.target).startswith("aten.")


def _name(node: Node) -> str:
    parts = str(node.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def generate(graph: GraphModule, taken: Callable[[Node], bool]) -> GraphModule:
    """The graph with operators in place of subgraphs; ``meta["ascendopt_generated"]`` has a row for each.

    Args:
        taken: whether somebody else serves a node.
    """
    partitioner = CapabilityBasedPartitioner(graph, _Fusible(taken), allows_single_node_partition=True)
    partitions = [p for p in partitioner.propose_partitions() if _work(p.nodes) >= _LEAST]
    fused = partitioner.fuse_partitions(partitions)
    rows: list[Subgraph] = []
    for node in list(fused.graph.nodes):
        if node.op == "call_module" and str(node.target).startswith("fused_"):
            # Tensors of the generator are real ones, and its export is no part of the tracing around it.
            modes = torch.utils._python_dispatch._disable_current_modes()
            with modes, torch.no_grad(), torch._guards.tracing(None):
                row = _replaced(fused, node)
            rows.append(row)
            log.info("%s (%s): %s", row.name, " ".join(row.calls), row.reason or f"{row.time_us:.2f} us, modelled")
    fused.meta[REPORT] = Subgraphs(rows)
    found.extend(rows)
    fused.recompile()
    return fused


def _work(nodes: Any) -> int:
    return sum(_name(n) not in _FREE for n in nodes)


def _replaced(graph: GraphModule, node: Node) -> Subgraph:
    """Has the node call an operator, where there is one that is right and faster."""
    module = graph.get_submodule(str(node.target))
    assert isinstance(module, GraphModule)
    calls = tuple(_name(n) for n in module.graph.nodes if n.op == "call_function" and n.target is not operator.getitem)
    values = [a.meta["val"] for a in node.args if isinstance(a, Node)]
    name = str(node.target)
    _one_result(module)
    try:
        made = from_module(module, [_example(v) for v in values], name=_label(calls))
        name, calls_us = made.name, roofline_us(module, values, RunOptions().chip)
        op = _operator(made, module)
        choice = op.prepare(tuple(values), {}, op)
    except AscendOptError as error:
        return Subgraph(name, calls, False, str(error))
    if not isinstance(choice, Probation):
        return Subgraph(name, calls, False, choice.reason or choice.kind or "switched off", made.schedule)
    time_us = choice.launcher.entry.best.task_duration_us
    if time_us >= calls_us:
        return Subgraph(name, calls, False, "no faster than its calls", made.schedule, time_us, calls_us)
    registered.append(op)
    with graph.graph.inserting_before(node):
        new = graph.graph.call_function(op.function, node.args)
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    graph.graph.erase_node(node)
    return Subgraph(name, calls, True, "", made.schedule, time_us, calls_us)


def _one_result(module: GraphModule) -> None:
    """A subgraph with one result returns it, not a tuple of it: so do operators."""
    (output,) = (n for n in module.graph.nodes if n.op == "output")
    if isinstance(output.args[0], (tuple, list)) and len(output.args[0]) == 1:
        output.args = (output.args[0][0],)
        module.recompile()


def _example(value: torch.Tensor) -> torch.Tensor:
    """A tensor of the CPU like a fake one."""
    return torch.rand(tuple(value.shape)).to(value.dtype)


def _label(calls: Sequence[str]) -> str:
    """``pow_mean_add_rsqrt_mul``: an operator's name, of its calls."""
    words = [c.strip("_") for c in calls if c not in _FREE]
    return "_".join(words[:6]) + (f"_{len(words)}" if len(words) > 6 else "")


def _operator(made: Generated, module: GraphModule) -> TunedOp:
    """Served from the folder that the generator writes; the subgraph answers where that doesn't."""
    folder = _folder(made)
    names = [label for label, _ in made.arguments]

    def original(*tensors: torch.Tensor) -> Any:
        return module(*tensors)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    original.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    original.__name__ = original.__qualname__ = made.name
    options = Options("blocking", run={"budget": 1, "warm_start": False}, as_written=True)
    op = TunedOp(made.name, lambda: load_folder(folder), original, options)
    op.function.tuned = op  # type: ignore[attr-defined]
    return op


def _folder(made: Generated) -> Path:
    """Where the operator is kept, by what it is."""
    digest = sha256(repr((made.text, made.case(), made.reference)).encode())[:16]
    folder = paths.cache_dir() / "generated" / digest / made.name
    if not (folder / "op.toml").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made.write(folder)
    return folder
