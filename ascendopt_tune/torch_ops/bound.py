"""What a node of a compiled graph calls instead of the operator: its launcher, without dispatch.

Shapes, dtypes and devices were settled when the graph was compiled. What is still looked at: that the tensors are what
the graph was promised (an operator's fake kernel may be wrong), and whether tuned pairs may serve at all. Whenever the
answer is no, the operator itself is called, whose dispatch knows what to do and counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import CaseError
from .dispatch import _KILL, TunedOp, _environment
from .intercept import hook_of
from .launcher import Launcher
from .policy import policy, scoped


def bind(op: TunedOp, dispatch: Callable[..., Any], overload: str | None) -> Any:
    """A function for a graph's node, whose case ``op`` has prepared.

    The first call goes through dispatch, where pair and original both serve and are compared; later calls launch.

    Args:
        dispatch: the operator, or the decorated function.
        overload: the operator's name, if it was taken over; ``op`` has to be its hook's last layer.
    """
    launcher: Launcher | None = None
    key: Hashable = None
    fits: Callable[[Any, Any], bool] = _never
    layers = _layers(op, overload)
    scope = scoped.get

    def call(*args: Any, **kwargs: Any) -> Any:
        if (
            not fits(args, kwargs)
            or not launcher.serving  # type: ignore[union-attr]
            or _KILL in _environment
            or scope() is not None
            or op._slow
            or not layers
            or layers[-1] is not op
        ):
            return by_dispatch(args, kwargs)
        try:
            result = launcher.go(args, kwargs)  # type: ignore[union-attr]
        except Exception as error:
            op.launch_failed(key, launcher, error)  # type: ignore[arg-type]
            with policy("off"):
                return dispatch(*args, **kwargs)
        launcher.calls += 1  # type: ignore[union-attr]
        return result

    def by_dispatch(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        nonlocal launcher, key, fits, layers
        layers = _layers(op, overload)  # an interception that was suspended has a new hook
        if not layers or layers[-1] is not op:
            return dispatch(*args, **kwargs)
        try:
            called = op.adopt(args, kwargs)
        except CaseError:
            return dispatch(*args, **kwargs)
        result = dispatch(*args, **kwargs)
        now = op.choice(called)
        if isinstance(now, Launcher):
            launcher, key, fits = now, called, _forms(args, kwargs)
        return result

    call.__name__ = call.__qualname__ = f"bound_{op.name}".replace("::", "_").replace(".", "_")
    call.ascendopt = op  # type: ignore[attr-defined]
    return call


def bind_original(op: TunedOp, dispatch: Callable[..., Any], overload: str) -> Any:
    """As :func:`bind`, for a case whose best pair is the operator's own: its kernel is called, without the hook."""
    keyset = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
    hook = hook_of(overload)
    scope = scoped.get

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal hook
        if hook is None or not hook.layers or hook.layers[-1] is not op:
            hook = hook_of(overload)
            return dispatch(*args, **kwargs)
        if _KILL in _environment or scope() is not None or op._slow:
            return dispatch(*args, **kwargs)
        op.serves_kept()
        return hook.call_original(keyset, *args, **kwargs)

    call.__name__ = call.__qualname__ = f"original_{op.name}".replace("::", "_").replace(".", "_")
    call.ascendopt = op  # type: ignore[attr-defined]
    return call


def _layers(op: TunedOp, overload: str | None) -> list[TunedOp]:
    """Who wants the calls of an overload; a decorated function's are its own."""
    if overload is None:
        return [op]
    hook = hook_of(overload)
    return hook.layers if hook is not None else []


def _never(args: Any, kwargs: Any) -> bool:
    return False


def _forms(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[Any, Any], bool]:
    """Whether tensors have the shapes these have, and are contiguous."""
    checks: list[str] = []
    shapes: dict[str, torch.Size] = {}
    places = [(f"a[{i}]", v) for i, v in enumerate(args)] + [(f"k[{n!r}]", v) for n, v in kwargs.items()]
    for text, value in places:
        for path, tensor in pytree.tree_flatten_with_path(value)[0]:
            if isinstance(tensor, torch.Tensor):
                name = f"s{len(shapes)}"
                shapes[name] = tensor.shape
                item = text + pytree.keystr(path)
                checks += [f"{item}.shape == {name}", f"{item}.is_contiguous()"]
    function: Callable[[Any, Any], bool] = eval(f"lambda a, k: {' and '.join(checks) or 'True'}", dict(shapes))
    return function


__all__ = ["bind", "bind_original"]
