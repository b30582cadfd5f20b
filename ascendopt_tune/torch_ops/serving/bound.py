"""What a node of a compiled graph calls instead of the operator: its launcher, without dispatch.

Shapes, dtypes and devices were settled when the graph was compiled. What is still looked at: that tensors which come
from operators of others are what the graph was promised (their fake kernels may be wrong), and whether tuned pairs may
serve at all. Whenever the answer is no, the operator itself is called, whose dispatch knows what to do and counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...errors import CaseError
from ...service.policy import policy, scoped
from . import fast_path
from .dispatch import _KILL, TunedOp, _environment
from .intercept import hook_of
from .launcher import Launcher


def bind(op: TunedOp, dispatch: Callable[..., Any], overload: str | None, checked: Container[str]) -> Any:
    """A function for a graph's node, whose case ``op`` has prepared.

    The first call goes through dispatch, where pair and original both serve and are compared; later calls launch, in
    C++ where fast_path.py has it.

    Args:
        dispatch: the operator, or the decorated function.
        overload: the operator's name, if it was taken over; ``op`` has to be its hook's last layer.
        checked: the tensors to look at in each call, as pytree's paths in (args, kwargs).
    """
    name = f"bound_{op.name}".replace("::", "_").replace(".", "_")
    launcher: Launcher | None = None
    key: Hashable = None
    fits: Callable[[Any, Any], bool] | None = None
    layers = _layers(op, overload)
    scope = scoped.get

    def call(*args: Any, **kwargs: Any) -> Any:
        if (
            launcher is None
            or not launcher.serving
            or launcher.calls >= launcher.due
            or _KILL in _environment
            or scope() is not None
            or op._slow
            or not layers
            or layers[-1] is not op
            or (fits is not None and not fits(args, kwargs))
        ):
            return by_dispatch(args, kwargs)
        try:
            result = launcher.go(args, kwargs)
        except Exception as error:
            op.launch_failed(key, launcher, error)
            with policy("off"):
                return dispatch(*args, **kwargs)
        launcher.calls += 1
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
            launcher, key, fits = now, called, _forms(args, kwargs, checked)
            if handle is None:
                pass
            elif now.fast is None or now.form is None:
                handle.set_otherwise(call)  # of a form that C++ doesn't serve
            else:
                places = [now.form.places[pick] for pick in (*range(len(args)), *kwargs)]
                container = {None: 0, tuple: 1, list: 2}[now.container]  # type: ignore[index]
                handle.set(now.fast, tuple(kwargs), places, layers, op, container)
        return result

    call.__name__ = call.__qualname__ = name
    library = fast_path.library()
    if library is None:
        handle = None
        return call
    function, handle = op.fast_table(library).bound(name, __name__)
    handle.set_otherwise(lambda *args, **kwargs: by_dispatch(args, kwargs))
    return function


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
    return call


def _layers(op: TunedOp, overload: str | None) -> list[TunedOp]:
    """Who wants the calls of an overload; a decorated function's are its own."""
    if overload is None:
        return [op]
    hook = hook_of(overload)
    return hook.layers if hook is not None else []


def _forms(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], checked: Container[str]
) -> Callable[[Any, Any], bool] | None:
    """Whether the ``checked`` tensors have the shapes these have, and are contiguous; None if there are none."""
    checks: list[str] = []
    shapes: dict[str, torch.Size] = {}
    for path, tensor in pytree.tree_flatten_with_path((args, dict(kwargs)))[0]:
        where = pytree.keystr(path)
        if where in checked:
            name = f"s{len(shapes)}"
            shapes[name] = tensor.shape
            checks += [f"v{where}.shape == {name}", f"v{where}.is_contiguous()"]
    if not checks:
        return None
    text = " and ".join(checks).replace("v[0]", "a").replace("v[1]", "k")
    function: Callable[[Any, Any], bool] = eval(f"lambda a, k: {text}", dict(shapes))
    return function


__all__ = ["bind", "bind_original"]
