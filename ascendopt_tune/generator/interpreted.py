"""Interprets a program beside its module, at small shapes with tails: the first thing that tells a wrong program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from ..dsl import DslError, Program, interpret
from ..dsl.ir import Knob
from ..evaluate.reference import to_array
from .graph import Graph, NotGenerated

if TYPE_CHECKING:
    import torch

_FAULT = "This is a fault of the generator: report it with the module."
#: Sizes that axes take in turn: small, odd, some longer than a tile; and two of them one element.
_SIZES = ((3, 37, 5, 6, 7), (2, 19, 8, 3, 4), (50, 70, 3, 2, 2))
_LARGER = (2, 3, 29, 37, 31)  # for modules that take none of these, as large windows
_ELEMENTS = 1 << 17  # of all tensors: beyond it an interpreted run takes seconds
_ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # a step of these, where one result is rounded
_RESULTS = 1 << 20  # elements; as long
_LEEWAY = 2.0**-18  # of a result's size, and of the largest one's: what float32 may lose in another order


class Disagreement(NotGenerated):
    """A program's results aren't the module's; the text says where."""


def compared(
    graph: Graph,
    program: Program,
    call: Callable[..., Any],
    tensors: Sequence[torch.Tensor],
    domains: Mapping[str, Mapping[str, Any]],
) -> tuple[str, ...]:
    """The shapes at which the program did what the module does.

    Raises:
        NotGenerated: it didn't, or no shape could be tried.
        DslError: it broke a rule of the language.
    """
    import torch

    done: list[str] = []
    why = ""
    for seed, sizes in enumerate((*_SIZES, _LARGER)):
        shapes = shapes_at(graph, sizes)
        if shapes is None or (done and sizes is _LARGER):
            continue
        if sum(int(np.prod(s)) for s in shapes.values()) > _ELEMENTS:
            why = "the module fixes sizes that are too large to interpret"
            continue
        given = draw(graph, shapes, domains, seed)
        try:
            with torch.no_grad():
                wanted = call([t.double() if t.is_floating_point() else t for t in given])
        except Exception as error:  # a module need not do every shape
            why = f"{type(error).__name__}: {error}"
            continue
        if sum(w.numel() for w in _listed(wanted)) > _RESULTS:
            why = "the module's results are too large to interpret"
            continue
        arrays = {i.name: to_array(t) for i, t in zip(_tensors(graph), given, strict=True)}
        knobs = {k.name: min(k.default, 24) for k in program.host.steps if isinstance(k, Knob)}
        numbers = {i.name: i.value for i in graph.inputs if i.shape is None}
        try:
            found = interpret(program, arrays, numbers, knobs=knobs)
        except DslError as error:
            if "refused:" in str(error):
                why = str(error)
                continue
            raise
        results = _listed(wanted)
        text = ", ".join(f"{n}{list(s)}" for n, s in shapes.items())
        if len(results) != len(found):
            raise Disagreement(f"the program has {len(found)} results, the module {len(results)}.", _FAULT)
        for name, want, got in zip(found, results, found.values(), strict=True):
            _agree(name, to_array(want), got, text)
        done.append(text)
    if not done and why and "too large" not in why:
        raise NotGenerated(f"no small shape could be tried: {why}")
    return tuple(done)


def shapes_at(graph: Graph, sizes: Sequence[int]) -> dict[str, tuple[int, ...]] | None:
    """Shapes of the inputs with other sizes of the free axes; None where they make none."""
    chosen = {s: min(sizes[k % len(sizes)], n) for k, (s, n) in enumerate(graph.sizes.items())}
    found = {}
    for i in _tensors(graph):
        shape = [sympy.sympify(e).subs(chosen) for e in i.shape or ()]
        if any(not e.is_Integer or e < 1 for e in shape):
            return None
        found[i.name] = tuple(int(e) for e in shape)
    return found


def draw(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], domains: Mapping[str, Mapping[str, Any]], seed: int
) -> list[torch.Tensor]:
    """Random inputs inside their domains."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    found = []
    for i in _tensors(graph):
        domain = domains.get(i.name, {})
        kind = getattr(torch, i.dtype)
        if i.dtype.startswith(("float", "bfloat")):
            value = torch.randn(shapes[i.name], generator=generator) * (1 + 3 * (seed % 2))
            value = value.abs() + float(domain["low"]) if "low" in domain else value
        else:
            high = shapes[domain["index"]][domain["axis"]] if "index" in domain else int(domain.get("high", 1)) + 1
            value = torch.randint(0, high, shapes[i.name], generator=generator)
        found.append(value.to(kind))
    return found


def _agree(name: str, want: np.ndarray[Any, Any], got: np.ndarray[Any, Any], shapes: str) -> None:
    if got.shape != (want.shape or (1,)):
        raise Disagreement(
            f"{name} has the shape {list(got.shape)}, and should have {list(want.shape)} ({shapes}).", _FAULT
        )
    if got.dtype.kind != want.dtype.kind and "V" not in (got.dtype.kind, want.dtype.kind):
        raise Disagreement(f"{name} is {got.dtype}, and should be {want.dtype}.", _FAULT)
    leeway = max(_LEEWAY, _ROUNDING.get(got.dtype.name, 0.0))
    got = got.reshape(want.shape).astype(np.float64)
    want = want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        allowed = leeway * (np.abs(want) + np.nanmax(np.abs(want), initial=0.0)) + 1e-7
        wrong = ~(np.abs(got - want) <= allowed) & ~(np.isnan(got) & np.isnan(want)) & (got != want)
    if wrong.any():
        at = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(wrong)))
        a, b = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
        text = f"the program gives {a:.7g} at {name}{list(at)}, the module {b:.7g} ({shapes}); "
        raise Disagreement(f"{text}{wrong.sum()} of {wrong.size} elements differ.", _FAULT)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _tensors(graph: Graph) -> list[Any]:
    return [i for i in graph.inputs if i.shape is not None]
