"""``torch.ops.ascendopt.*``: the registry's operators as operators of torch, on npu tensors as they are written.

They are what models can be built of and what ``aot.install()`` takes over. On the CPU, and for shapes (torch.compile),
reference.py computes, and its formula gives the gradients. On device npu the pair as written is launched; it is built
at the first call of each case, which takes a second or two.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...build.toolkit import Toolkit, find
from ...errors import DeviceError, OperatorError
from ...evaluate.evaluator import Evaluator
from ...evaluate.gate import Gate
from ...nouns.operator import Operator
from ...nouns.outcome import Timed
from ...service.described import with_outputs
from ...settings import settings
from ...sources.registry import LazyReference, load_operator, operator_names
from ...store.cache import Entry, Key, Provenance
from ..device.activate import prepare
from ..device.devices import same_device
from . import keys
from .binding import bind, parameters_of_schema, plan, specs_of
from .guard import tensors_in
from .launcher import Launcher, device_of

NAMESPACE = "ascendopt"
_defined: list[torch.library.Library] = []


def define() -> tuple[str, ...]:
    """Defines the operators of ``torch.ops.ascendopt``, once per process; returns their names.

    Raises:
        OperatorError: an operator of the registry is damaged.
    """
    operators = [load_operator(name) for name in operator_names()]
    ours = [o for o in operators if o.settings.get("torch_op") == f"{NAMESPACE}::{o.name}"]
    if not _defined:
        _defined.append(torch.library.Library(NAMESPACE, "DEF"))  # type: ignore[no-untyped-call]
        for operator in ours:
            _define(_defined[0], operator)
    return tuple(o.name for o in ours)


def _define(library: Any, operator: Operator) -> None:
    if not isinstance(operator.reference, LazyReference):
        raise OperatorError(f"{operator.name} has no reference.py, so it can't be an operator of torch.")
    formula = operator.reference.function
    library.define(operator.name + torch.library.infer_schema(formula, mutates_args=()))
    overload = getattr(getattr(torch.ops, NAMESPACE), operator.name).default
    library.impl(operator.name, formula, "CPU")
    library.impl(operator.name, Stock(operator, overload._schema), "PrivateUse1")
    torch.library.register_fake(overload, formula, lib=library)
    torch.library.register_autograd(
        overload, functools.partial(_backward, formula), setup_context=_remember, lib=library
    )


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    flat, ctx.structure = pytree.tree_flatten(inputs)
    ctx.rest = [None if isinstance(v, torch.Tensor) else v for v in flat]
    ctx.mark_non_differentiable(*[t for t in pytree.tree_leaves(output) if not t.is_floating_point()])
    ctx.save_for_backward(*[v if isinstance(v, torch.Tensor) else None for v in flat])


def _backward(formula: Callable[..., Any], ctx: Any, *gradients: Any) -> Any:
    """The gradients of the formula, which is computed once more for them."""
    saved = [v if v is None else v.detach().requires_grad_(v.is_floating_point()) for v in ctx.saved_tensors]
    values = [rest if tensor is None else tensor for tensor, rest in zip(saved, ctx.rest, strict=True)]
    with torch.enable_grad():
        results = pytree.tree_leaves(formula(*pytree.tree_unflatten(values, ctx.structure)))
    given = [(r, g) for r, g in zip(results, pytree.tree_leaves(gradients), strict=True) if g is not None]
    given = [(r, g) for r, g in given if r.requires_grad]
    wanted = [v for v in saved if v is not None and v.requires_grad]
    found = iter(torch.autograd.grad([r for r, _ in given], wanted, [g for _, g in given], allow_unused=True))
    flat = [next(found) if v is not None and v.requires_grad else None for v in saved]
    return tuple(pytree.tree_unflatten(flat, ctx.structure))


class Stock:
    """The npu kernel of an operator: the pair as it is written. Threads may call it at the same time."""

    def __init__(self, operator: Operator, schema: Any) -> None:
        assert operator.reference is not None
        self._operator, self._schema, self._formula = operator, schema, operator.reference
        self._parameters = parameters_of_schema(schema)
        self._key, _ = keys.of_operator(schema, grad=False)
        self._launchers: dict[Hashable, Launcher] = {}
        self._lock = threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        same_device(self._schema.name, args, kwargs, numbers=False)
        values = (*args, *kwargs.values())
        none = any(isinstance(value, (list, tuple)) and not value for value in values)
        if none or any(tensor.numel() == 0 for tensor in tensors_in(values)):
            return self._formula(*args, **kwargs)  # there is nothing to launch a kernel on
        args, kwargs = pytree.tree_map_only(torch.Tensor, torch.Tensor.contiguous, (args, kwargs))
        key = self._key(args, kwargs)
        launcher = self._launchers.get(key)
        if launcher is None:
            with self._lock:
                launcher = self._launchers[key] = self._launchers.get(key) or self._build(args, kwargs)
        return launcher(args, kwargs)

    def _build(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Launcher:
        """Raises AscendOptError if the operator doesn't take the call, or can't be built."""
        operator, config = self._operator, settings()
        toolkit = prepare() or find(config.target)
        device = next(t.device for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
        acl = device_of(toolkit, device.index)
        chip = config.chip if toolkit.target == "virtual" else acl.soc_name().lower()
        call = bind(self._parameters, self._schema, {}, args, kwargs)
        evaluator = _evaluator(toolkit, chip)
        signature = evaluator.describe(operator).signature
        planned = plan(signature, call, self._schema)
        if signature.has_infer_shape:
            case = replace(
                planned.case, outputs=evaluator.infer_outputs(operator, planned.case.inputs, planned.case.attrs)
            )
        else:
            meta = pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
            case = with_outputs(signature, planned.case, specs_of(self._formula(*meta[0], **meta[1])))
        built = Gate(operator, case, evaluator, signature=signature).build(operator.baseline)
        if not isinstance(built.outcome, Timed) or built.tiling is None:
            reason = getattr(built.outcome, "reason", "it has no tiling")
            raise DeviceError(f"{operator.name} can't be launched for {case}: {reason}")
        profile = built.outcome.profile
        entry = Entry(
            key=Key.of(operator, case, chip=chip, target=toolkit.target, toolkit=toolkit.version),
            pair=operator.baseline,
            binary=built.binary,
            kernel_name=built.kernel_name,
            tiling=built.tiling,
            baseline=profile,
            best=profile,
            provenance=Provenance(0, 1, 1, {"Timed": 1}, {}, datetime.now(UTC).isoformat(timespec="seconds")),
            signature=signature,
        )
        launcher = Launcher(acl, entry, planned, device)
        several = len(self._schema.returns) > 1
        launcher.container = tuple if several else list if str(self._schema.returns[0].type) == "List[Tensor]" else None
        return launcher


@functools.cache
def _evaluator(toolkit: Toolkit, chip: str) -> Evaluator:
    """Stays open for the cases to come; it closes itself when the process ends."""
    return Evaluator(toolkit, chip, workers=1)
