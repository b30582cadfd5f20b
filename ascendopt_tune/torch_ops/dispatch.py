"""Who serves a call of a tuned operator: the cached pair, or the original.

1. A call is reduced to a key: shapes, dtypes, devices and layout of its tensors, and the values of everything else.
2. The dispatch table maps keys to a :class:`Launcher`, or to the reason why the original serves.
3. A new key is looked up in the cache, and tuned first under policy ``blocking``. Before a launcher enters the table,
   both it and the original serve one call, and must agree in structure, shapes and dtypes.
4. Whatever fails, the original serves that very call, and the reason is counted. Nothing here raises an error of its
   own into the caller's model; only the original does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from .. import paths
from ..build.toolkit import Toolkit, find
from ..cache import Cache, Entry, Key
from ..case import Case
from ..errors import AscendOptError, CaseError, OperatorError
from ..operator import Operator, Signature
from ..settings import disabled, settings
from .activate import prepare
from .binding import Bound, bind, parameters_of, schema_of, specs_of
from .launcher import Launcher, device_of

log = logging.getLogger("ascendopt_tune")

LOOK_AGAIN_S = 1.0  # how soon a call that missed asks the cache again: another process may have tuned meanwhile
MAX_FAILURES = 3  # launches that may fail before the original serves for good


@dataclass(frozen=True)
class Options:
    """What the decorator was told; None: the setting of that name decides when a case is first met.

    ``returns``: names of the operator's outputs the function returns, in order; empty: all of them. ``names``: the
    operator's name of a Python parameter that is called otherwise.
    """

    policy: str | None = None
    budget: int | None = None
    chip: str | None = None
    seed: int = 0
    returns: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Served:
    """Calls of one tuned operator by who served them.

    ``kept``: cached, and the user's own pair is the best, so the original served. ``misses``: not cached.
    ``fallbacks``: the original served, by reason. Calls without npu tensors, or with tuning switched off, don't count.
    """

    hits: int = 0
    kept: int = 0
    misses: int = 0
    tuned: int = 0
    fallbacks: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Original:
    """The original serves. ``kind``: what such a call counts as (``kept``, ``misses``, ``fallbacks``, or nothing)."""

    kind: str
    reason: str = ""
    until: float = float("inf")  # time.monotonic() from which on the cache is asked again


@dataclass(frozen=True)
class _Site:
    """Where a case is tuned and looked up."""

    toolkit: Toolkit
    chip: str
    store: Cache
    policy: str
    budget: int
    device: torch.device

    def key(self, operator: Operator, case: Case) -> Key:
        return Key.of(operator, case, chip=self.chip, target=self.toolkit.target, toolkit=self.toolkit.version)


class TunedOp:
    """An operator that answers calls like ``original`` does, by the cached pair where there is one.

    Threads may call it at the same time. ``operator`` may be a function that loads it; it is called at the first call.
    """

    def __init__(
        self, name: str, operator: Callable[[], Operator], original: Callable[..., Any], options: Options | None = None
    ) -> None:
        self.name = name
        self.original = original
        self.options = options or Options()
        self.served = Served()
        self._load = cache(operator)
        self._parameters = parameters_of(original)
        self._table: dict[Hashable, Launcher | Original] = {}
        self._lock = threading.RLock()
        self._known_signature: Signature | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if disabled() or torch.compiler.is_compiling():
            return self.original(*args, **kwargs)
        try:
            key = _key_of(args, kwargs)
        except CaseError as error:
            return self._serve_original(Original("fallbacks", error.message), args, kwargs)
        choice = self._table.get(key)
        if isinstance(choice, Launcher):
            try:
                result = _pack(choice, choice(args, kwargs))
            except Exception as error:
                self._failed(key, choice, error)
                return self.original(*args, **kwargs)
            self.served.hits += 1
            return result
        if choice is None or time.monotonic() >= choice.until:
            return self._first_call(key, args, kwargs)
        return self._serve_original(choice, args, kwargs)

    def forget(self) -> None:
        """Empties the dispatch table: every case is looked up anew. The counts stay."""
        with self._lock:
            self._table.clear()

    # -- a new key ----------------------------------------------------------------------------------------------------

    def _first_call(self, key: Hashable, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with self._lock:
            try:
                choice = self._resolve(args, kwargs)
            except Exception as error:
                choice = self._refused(error)
            if isinstance(choice, Original):
                self._table[key] = choice
        if isinstance(choice, Original):
            return self._serve_original(choice, args, kwargs)
        return self._both_serve(key, choice, args, kwargs)

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Launcher | Original:
        """Finds or makes what serves this case; any exception means the original does."""
        config = settings()
        policy = self.options.policy or config.policy
        tensors = list(_tensors((*args, *kwargs.values())))
        if policy == "off" or not any(t.device.type == "npu" for t in tensors):
            return Original("")
        if torch.npu.is_current_stream_capturing():  # type: ignore[attr-defined]
            return Original("fallbacks", "first met during graph capture", time.monotonic())
        _check(tensors, schema_of(self.original))
        operator = self._load()
        if operator.direct is not None:
            raise OperatorError(
                f"{operator.name} is a kernel for direct launch, which this decorator doesn't serve.",
                "Give an operator with a definition and a tiling function.",
            )
        device = tensors[0].device
        toolkit = prepare() or find(config.target)  # the one this process runs on, whatever was built since
        chip = self.options.chip or (
            config.chip if toolkit.target == "virtual" else device_of(toolkit, device.index).soc_name().lower()
        )
        store = _store(paths.cache_dir(), paths.cache_layers())
        site = _Site(toolkit, chip, store, policy, self.options.budget or config.budget, device)
        return self._find(operator, site, args, kwargs)

    def _find(
        self, operator: Operator, site: _Site, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Launcher | Original:
        signature = self._signature(operator, site)
        missing = Original("misses", "not cached", time.monotonic() + LOOK_AGAIN_S)
        if signature is None:
            return missing  # nothing is cached for this operator as it is written now
        bound = bind(signature, self._parameters, self.options.names, args, kwargs)
        entry = site.store.find(site.key(operator, bound.case))
        if entry is None and site.policy == "blocking":
            entry = self._tune(operator, signature, bound, site, args, kwargs)
        if entry is None:
            return missing
        if not entry.improved:
            return Original("kept")
        return self._launcher(entry, signature, bound, site)

    def _signature(self, operator: Operator, site: _Site) -> Signature | None:
        """The operator's definition: from any of its cached results, so that looking up compiles nothing."""
        if self._known_signature is None:
            probe = site.key(operator, Case((), ()))
            same = (
                s
                for s in site.store.items(operator.name)
                if (s.key.baseline, s.key.build) == (probe.baseline, probe.build)
            )
            self._known_signature = next((s.signature for s in same if s.signature is not None), None)
        if self._known_signature is None and site.policy == "blocking":
            from ..evaluate.evaluator import Evaluator

            with Evaluator(site.toolkit, site.chip, workers=1) as evaluator:
                self._known_signature = evaluator.describe(operator).signature
        return self._known_signature

    def _tune(
        self,
        operator: Operator,
        signature: Signature,
        bound: Bound,
        site: _Site,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Entry:
        from ..evaluate.evaluator import Evaluator
        from ..tuner import tune_case

        if signature.has_infer_shape:
            with Evaluator(site.toolkit, site.chip, workers=1) as evaluator:
                outputs = evaluator.infer_outputs(operator, bound.case.inputs, bound.case.attrs)
        else:
            outputs = specs_of(signature, self.original(*args, **kwargs))
        case = replace(bound.case, outputs=outputs)
        log.info("%s: tuning %s with %d evaluations", self.name, case, site.budget)
        record = tune_case(
            operator,
            case,
            chip=site.chip,
            target=site.toolkit.target,
            budget=site.budget,
            seed=self.options.seed,
            cache=site.store,
        )
        self.served.tuned += 1
        return record.entry

    def _launcher(self, entry: Entry, signature: Signature, bound: Bound, site: _Site) -> Launcher:
        names = [p.name for p in signature.outputs]
        shared = {p.name for p in signature.inputs} & set(names)
        if shared:
            raise CaseError(f"{signature.op_type} changes {', '.join(sorted(shared))} in place, which is not served.")
        unknown = [name for name in self.options.returns if name not in names]
        if unknown:
            raise CaseError(
                f"returns: {signature.op_type} has no output {unknown[0]!r}.", f"It has {', '.join(names)}."
            )
        returned = [names.index(name) for name in self.options.returns or names]
        acl = device_of(site.toolkit, site.device.index)
        return Launcher(acl, entry, entry.outputs, bound.picks, returned, site.device)

    def _both_serve(self, key: Hashable, launcher: Launcher, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """One call served by the launcher and the original, before the former serves alone; returns the former's."""
        versions = [t._version for t in _tensors((*args, *kwargs.values()))]
        served: list[torch.Tensor] | None = None
        failure: Exception | None = None
        try:
            served = launcher(args, kwargs)
            torch.npu.synchronize()  # type: ignore[attr-defined]
        except Exception as error:
            failure = error
        expected = self.original(*args, **kwargs)
        try:
            if served is None or failure is not None:
                raise failure or CaseError("nothing was launched.")
            if versions != [t._version for t in _tensors((*args, *kwargs.values()))]:
                raise CaseError("the original changes its arguments.")
            _adopt_structure(launcher, served, expected)
        except Exception as error:
            self._table[key] = choice = self._refused(error)
            self._count(choice)
            return expected
        self._table[key] = launcher
        self.served.hits += 1
        return _pack(launcher, served)

    # -- counts -------------------------------------------------------------------------------------------------------

    def _serve_original(self, choice: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self._count(choice)
        return self.original(*args, **kwargs)

    def _count(self, choice: Original) -> None:
        if choice.kind == "fallbacks":
            self.served.fallbacks[choice.reason] += 1
        elif choice.kind:
            setattr(self.served, choice.kind, getattr(self.served, choice.kind) + 1)

    def _refused(self, error: Exception) -> Original:
        reason = str(error) if isinstance(error, AscendOptError) else f"{type(error).__name__}: {error}"
        if not self.served.fallbacks[reason]:
            log.warning("%s: the original serves: %s", self.name, reason)
        return Original("fallbacks", reason)

    def _failed(self, key: Hashable, launcher: Launcher, error: Exception) -> None:
        launcher.failures += 1
        choice = self._refused(error)
        self._count(choice)
        if launcher.failures >= MAX_FAILURES:
            self._table[key] = choice


@cache
def _store(root: Path, layers: tuple[Path, ...]) -> Cache:
    return Cache(root, layers)


def _key_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """Equal for calls that the same launcher may serve. Raises CaseError for an argument of another kind."""
    grad = torch.is_grad_enabled()
    key = tuple([_part(value, grad) for value in args])
    return (key, tuple([(name, _part(value, grad)) for name, value in kwargs.items()])) if kwargs else key


def _part(value: Any, grad: bool) -> Hashable:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return value.shape, value.dtype, value.device, value.is_contiguous(), grad and value.requires_grad
    if kind is int or kind is float or kind is bool or kind is str or value is None:
        return kind, value  # the type too: 1, 1.0 and True are equal
    if kind is list or kind is tuple or kind is torch.Size:
        return tuple([_part(item, grad) for item in value])
    raise CaseError(f"an argument is a {kind.__name__}.")


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _check(tensors: list[torch.Tensor], schema: Any) -> None:
    """Raises CaseError for a call that a launcher can't serve, whatever the operator."""
    if schema is not None and schema.is_mutable:
        raise CaseError("the original changes its arguments.")
    if len({t.device for t in tensors}) > 1:
        raise CaseError("the tensors are on different devices.")
    if tensors[0].device.index != torch.npu.current_device():  # type: ignore[attr-defined]
        raise CaseError("the tensors are not on the current device.")
    if any(not t.is_contiguous() for t in tensors):
        raise CaseError("a tensor is not contiguous.")
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise CaseError("a gradient is wanted; the original has the formula.")


def _adopt_structure(launcher: Launcher, served: list[torch.Tensor], expected: Any) -> None:
    """Makes the launcher return what the original does. Raises CaseError if the two don't agree."""
    container = None if isinstance(expected, torch.Tensor) else type(expected)
    if container not in (None, tuple, list):
        raise CaseError(f"the original returns a {type(expected).__name__}, not tensors.")
    wanted = [expected] if container is None else list(expected)
    if not all(isinstance(t, torch.Tensor) for t in wanted) or _forms(wanted) != _forms(served):
        raise CaseError(
            f"the original returns {_forms(wanted)}, the operator {_forms(served)}.",
            "Name the outputs the function returns with returns=(...).",
        )
    launcher.container = container


def _forms(tensors: list[Any]) -> list[str]:
    return [f"{t.dtype}{list(t.shape)}" if isinstance(t, torch.Tensor) else type(t).__name__ for t in tensors]


def _pack(launcher: Launcher, tensors: list[torch.Tensor]) -> Any:
    return tensors[0] if launcher.container is None else launcher.container(tensors)
