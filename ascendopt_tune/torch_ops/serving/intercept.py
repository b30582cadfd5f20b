"""Taking over operators that are registered with torch's dispatcher already, or will be.

The kernel of device npu (dispatch key ``PrivateUse1``) is overridden by one that serves what is tuned and calls the
original for the rest. Nothing else of the operator changes: its autograd formula, its fake kernel, its other devices.

* One hook per overload, however many interceptions: they lie in layers, the last one serves, and each can be undone
  whenever its owner likes; torch itself wants overrides undone in reverse order.
* Registrations that come later are noticed where Python sees them: ``Library.impl`` (so ``custom_op`` and
  ``torch.library.impl``, too), ``torch.ops.load_library``, and the import of an extension module.
* An original that goes away (its library is destroyed) takes the hook with it.
"""

from __future__ import annotations

import functools
import importlib.machinery
import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from ...errors import OperatorError
from ...nouns.operator import Operator
from . import fast_path
from .decorator import load, loader
from .dispatch import TunedOp
from .registered import interceptions, registered
from .resolve import Options

log = logging.getLogger("ascendopt_tune")

_KEY = "PrivateUse1"
_lock = threading.RLock()
_hooks: dict[str, _Hook] = {}
_ours: set[Any] = set()  # libraries of hooks; registrations with them are no news
#: Kernels of hooks that went away while they may have been running.
_kept: list[Any] = []


class _Hook:
    """The override of one overload's kernel. ``layers``: those who want its calls; the last one gets them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[TunedOp] = []
        self._library: Any = None
        self._original: Any = None
        self._fast: Any = None  # the kernel over ours, fast/kernel.h

    def push(self, op: TunedOp) -> None:
        self.layers.append(op)
        self._update()

    def remove(self, op: TunedOp) -> None:
        if op in self.layers:
            self.layers.remove(op)
            self._update()

    def _update(self) -> None:
        """Registers the last layer's kernel, or nothing."""
        if self._library is not None:
            if not self.layers and not self._on_top():
                return  # somebody has put a kernel over ours, and may hold on to it: we let calls through
            self._destroy()
        if not self.layers:
            return
        self._original = torch.library.get_kernel(self.name, _KEY)
        make_library: Any = torch.library.Library
        namespace, _, base = self.name.partition("::")
        self._library = make_library(namespace, "IMPL")
        _ours.add(self._library)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about every override
            kernel = self.layers[-1].kernel(self.call_original)
            self._library.impl(base, kernel, _KEY, with_keyset=True, allow_override=True)
        self._own = torch.library.get_kernel(self.name, _KEY)  # keeps the kernel alive while it runs
        self.speed_up()

    def speed_up(self) -> None:
        """Puts C++ over our kernel, if it is ready and nobody else has put one there."""
        library = fast_path.ready()
        if library is None or self._fast is not None or self._library is None or not self._on_top():
            return
        name, _, overload = self.name.partition(".")
        self._fast = library.Override(name, overload, self.layers[-1].fast_table(library).table)
        self._own = torch.library.get_kernel(self.name, _KEY)

    def _destroy(self) -> None:
        if self._fast is not None:
            self._fast.undo()
            self._fast = None
        _ours.discard(self._library)
        self._library._destroy()
        self._library = None

    def _on_top(self) -> bool:
        try:
            return repr(torch.library.get_kernel(self.name, _KEY)) == repr(self._own)
        except RuntimeError:  # the operator is gone
            return True

    def call_original(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._original.call_boxed(keyset, *args, **kwargs)
        except RuntimeError as error:
            if "invalidated" not in str(error):
                raise
        # Whoever registered the original has taken it back.
        with _lock:
            if self._library is not None:
                _kept.append(self._own)
                log.warning("%s: the original was unregistered; the interception ends", self.name)
                self._destroy()
                if _hooks.get(self.name) is self:
                    del _hooks[self.name]
        return _overload(self.name).redispatch(keyset, *args, **kwargs)


class Interception:
    """Operators that were taken over by one call. ``undo`` gives them back; also the end of a ``with`` block."""

    def __init__(self, name: str, layers: Sequence[tuple[str, TunedOp]]) -> None:
        self.name = name
        self._layers = list(layers)
        self._active = False
        self.resume()
        interceptions.append(self)

    @property
    def tuned(self) -> tuple[TunedOp, ...]:
        return tuple(op for _, op in self._layers)

    @property
    def overloads(self) -> tuple[str, ...]:
        """The operators' names, with the overload's where it has one."""
        return tuple(name for name, _ in self._layers)

    def undo(self) -> None:
        """The original kernels serve again. Harmless when repeated; in any order with other interceptions."""
        self.suspend()
        if self in interceptions:
            interceptions.remove(self)

    def suspend(self) -> None:
        with _lock:
            if self._active:
                for name, op in self._layers:
                    if name in _hooks:
                        _hooks[name].remove(op)
                        if not _hooks[name].layers:
                            del _hooks[name]
            self._active = False

    def resume(self) -> None:
        with _lock:
            if not self._active:
                for name, op in self._layers:
                    if _has_kernel(name):
                        _hooks.setdefault(name, _Hook(name)).push(op)
            self._active = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def hook_of(overload: str) -> _Hook | None:
    """The hook of an overload that is taken over; None for others. Its last layer serves."""
    hook = _hooks.get(overload.removesuffix(".default"))
    return hook if hook is not None and hook.layers else None


def speed_up(wait: bool = False) -> None:
    """Has hits of every interception served in C++, those also that were made before that was compiled.

    torch's dispatcher is changed, which calls that are under way in other threads may trip over; so it isn't done
    behind the user's back, but when something is taken over, warmed up or restored.
    """
    # Loaded before our lock is taken: whoever waits for later registrations sees imports.
    if fast_path.library(wait) is not None:
        with _lock:
            for hook in _hooks.values():
                hook.speed_up()


def is_slow() -> bool:
    """Whether there are interceptions that are served in Python because C++ is still being compiled."""
    return bool(_hooks) and fast_path.is_compiling()


def intercept(name: str, source: str | Path | Operator | None, options: Options) -> Interception:
    """See :func:`ascendopt_tune.intercept`."""
    if source is None:
        source = _registry_sources().get(name.partition(".")[0])
        if source is None:
            raise OperatorError(
                f"no registry operator stands for {name}.", "Give source=, a folder with op_host/ and op_kernel/."
            )
    overloads = _overloads(name)
    if not overloads:
        raise OperatorError(
            f"{name} is not registered for device npu.",
            "Import what registers it before, or let aot.install() wait for it.",
        )
    speed_up()
    loads = loader(source)
    return Interception(name, [(overload, _tuned(overload, loads, options)) for overload in overloads])


def _tuned(overload: str, loads: Callable[[], Operator], options: Options) -> TunedOp:
    formula = any(
        torch._C._dispatch_has_kernel_for_dispatch_key(overload, key) for key in ("Autograd", f"Autograd{_KEY}")
    )
    op = TunedOp(overload, loads, _schema(overload), options, below_autograd=formula)
    registered.append(op)
    return op


# -- names ----------------------------------------------------------------------------------------------------------


def _schemas(name: str) -> dict[str, Any]:
    """Schemas of a name's overloads (of one, where ``name`` has it) by their full name."""
    base, _, overload = name.partition(".")
    found = {}
    for schema in torch._C._jit_get_schemas_for_operator(base):
        full = f"{base}.{schema.overload_name}" if schema.overload_name else base
        if not overload or overload == (schema.overload_name or "default"):
            found[full] = schema
    return found


def _schema(overload: str) -> Any:
    return _schemas(overload if "." in overload else f"{overload}.default")[overload]


def _overload(full: str) -> Any:
    namespace, _, base = full.partition("::")
    base, _, overload = base.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def _overloads(name: str) -> list[str]:
    """Overloads with a kernel that device npu uses."""
    return [full for full in _schemas(name) if _has_kernel(full)]


def _has_kernel(full: str) -> bool:
    """A kernel of the device's own, or one for every device. What is only composed of others has a formula that would
    be lost, and its parts can be taken over instead."""
    try:
        return any(
            torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in (_KEY, "CompositeExplicitAutograd")
        )
    except RuntimeError:  # there is no such operator (any more)
        return False


@functools.cache
def _registry_sources() -> Mapping[str, str]:
    """Registry operators by the torch operator they stand for."""
    from ...sources.registry import load_operator, operator_names

    named = {name: load_operator(name).settings.get("torch_op") for name in operator_names()}
    return {str(torch_op): name for name, torch_op in named.items() if torch_op}


# -- registrations that come later ----------------------------------------------------------------------------------


class Installation:
    """Takes over every operator it has a source for, now and as they come, until ``undo``."""

    def __init__(self, sources: Mapping[str, str | Path | Operator], options: Options) -> None:
        speed_up()
        self._sources, self._options = dict(sources), options
        self._taken: dict[str, Interception] = {}
        _installed.append(self)
        _watch()
        self.scan()

    @property
    def overloads(self) -> tuple[str, ...]:
        """What was taken over so far."""
        return tuple(self._taken)

    def scan(self, changed: str | None = None) -> None:
        """Takes over what is there and wasn't before. ``changed``: an overload that was registered anew."""
        with _lock:
            if changed in self._taken:
                self._taken.pop(changed).undo()
            for torch_op, source in self._sources.items():
                for full in _overloads(torch_op):
                    if full not in self._taken:
                        layer = (full, _tuned(full, loader(source), self._options))
                        self._taken[full] = Interception(full, [layer])

    def undo(self) -> None:
        """Gives everything back, and waits for nothing more. Harmless when repeated."""
        with _lock:
            if self in _installed:
                _installed.remove(self)
            for interception in self._taken.values():
                interception.undo()
            self._taken.clear()
            if not _installed:
                _unwatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


_installed: list[Installation] = []
_unpatch: list[Callable[[], None]] = []


def intercept_all(sources: Sequence[str | Path | Operator], options: Options) -> Installation:
    """See :func:`ascendopt_tune.install`."""
    from ...sources.registry import rooted

    named: dict[str, str | Path | Operator] = dict(_registry_sources())
    for source in sources:
        torch_op = load(source).settings.get("torch_op")
        if not torch_op:
            raise OperatorError(
                f"the op.toml of {source} doesn't say which operator of torch it stands for.",
                'Add torch_op = "namespace::name".',
            )
        named[str(torch_op)] = rooted(source)
    return Installation(named, options)


def _registered_anew(changed: str | None = None) -> None:
    for installation in list(_installed):
        try:
            installation.scan(changed)
        except Exception as error:  # a registration of somebody else's must not fail for it
            log.warning("an operator can't be taken over: %s", error)


def _watch() -> None:
    """Patches the places where Python sees registrations, once."""
    if _unpatch:
        return

    def after_impl(library: Any, name: Any, *args: Any) -> None:
        if library in _ours:
            return
        key = str(args[1]) if len(args) > 1 and args[1] else library.dispatch_key
        if key in (_KEY, "CompositeExplicitAutograd"):
            base = getattr(name, "_schema", None)
            text = f"{base.name}.{base.overload_name}".rstrip(".") if base is not None else f"{library.ns}::{name}"
            _registered_anew(text.replace(f"{library.ns}::{library.ns}::", f"{library.ns}::"))

    _patch(torch.library.Library, "impl", after_impl)
    _patch(type(torch.ops), "load_library", lambda *args: _registered_anew())
    _patch(importlib.machinery.ExtensionFileLoader, "exec_module", lambda *args: _registered_anew())


def _patch(owner: Any, name: str, after: Callable[..., None]) -> None:
    """Has ``after`` called with the arguments of each call, once it has returned."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        after(self, *args, *kwargs.values())
        return result

    setattr(owner, name, call)

    def undo() -> None:
        if vars(owner).get(name) is call:
            if inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    _unpatch.append(undo)


def _unwatch() -> None:
    while _unpatch:
        _unpatch.pop()()
