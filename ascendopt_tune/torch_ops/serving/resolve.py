"""A call that no launcher is ready for: is there a cached pair, is one to be made, or does the original serve?"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from ... import paths
from ...build.toolkit import Toolkit, find
from ...errors import CaseError, OperatorError
from ...nouns.case import Case
from ...nouns.operator import Operator, Signature
from ...nouns.run_options import RunOptions
from ...search.budget import Limits
from ...service.described import CallDescription
from ...service.lazy import Job, background
from ...service.neighbours import Rules, closest, rules_of
from ...service.policy import effective
from ...service.tuning import Request, fulfil
from ...settings import Settings, settings
from ...sources.registry import operator_names
from ...sources.specification import specification
from ...store.cache import Cache, Entry, Key
from ...store.entry import canonical
from ...tuner import ProgressCallback
from ..device.activate import prepare
from .binding import BoundCall, bind, parameters_of, parameters_of_schema, plan, schema_of, specs_of
from .cases import CaseCount
from .guard import Probation, Remarks, tensors_in
from .launcher import Launcher, device_of

log = logging.getLogger("ascendopt_tune")

CAPTURED = "first met during graph capture"
#: First calls that are compared of a pair whose results were judged by other domains, tolerances or another reference:
#: values that its gate was told never to meet are met here.
JUDGED_OTHERWISE = 16
QUEUED = ("queued", "tuning", "reusing", "elsewhere", "waiting")


@dataclass(frozen=True)
class Options:
    """What the decorator or ``intercept`` was told; what it wasn't, the settings decide when a case is first met.

    ``returns``: names of the operator's outputs the function returns, in order; empty: all of them. ``names``: the
    operator's name of a Python parameter that is called otherwise. ``buckets``: see neighbours.py. ``run``: options of
    a run (RunOptions), by name. ``as_written``: a pair that nobody has improved serves, too; else the original does.
    """

    policy: str | None = None
    returns: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    buckets: Mapping[str, Sequence[Any]] | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    as_written: bool = False


@dataclass
class Original:
    """The original serves. ``kind``: what such a call counts as (``kept``, ``misses``, ``fallbacks``, or nothing).

    ``case`` counts its calls. ``key``: what was looked up. ``until``: time.monotonic() from which on the cache is asked
    again. ``wanted``: what to ask of the background process after the original has served. ``calls``: served since that
    process was told. ``scope``: the policy of the ``with`` block it was resolved in.
    """

    kind: str
    reason: str = ""
    until: float = float("inf")
    pause: float = 0.0
    scope: str | None = None
    wanted: Wanted | None = None
    calls: int = 0
    case: CaseCount | None = None
    key: Key | None = None


@dataclass
class Wanted:
    """A request for the background process, complete but for what the original returns."""

    request: Request
    target: str
    job: Job | None = None

    def ask(self, operator: str, calls: int, result: Any = None) -> Job:
        """Tells the background process; ``result``: what the original returned, where that is known."""
        if self.job is None and self.request.call.results is None and result is not None:
            call = replace(self.request.call, results=specs_of(result))
            self.request = replace(self.request, call=call)
        name = canonical([operator, self.request.options.chip, self.request.search, _text(self.request.call.values)])
        self.job = background.ask(name, operator, self.request, self.target, calls, self.job)
        return self.job


def _text(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str([str(v) for v in value] if isinstance(value, tuple) else value) for name, value in values.items()}


@dataclass(frozen=True)
class _Site:
    """Where a case is tuned and looked up."""

    toolkit: Toolkit
    options: RunOptions
    store: Cache
    policy: str
    config: Settings
    device: torch.device


class Resolver:
    """Resolves calls of one operator. ``load`` is called at the first one. Not thread-safe.

    Args:
        original: gives the names of parameters, and says what is changed, by its schema or signature.
        below_autograd: calls come from below autograd, so gradients are the original's, whoever serves.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Operator],
        original: Any,
        options: Options,
        below_autograd: bool = False,
    ) -> None:
        self.name, self.options = name, options
        self._load = cache(lambda: self._wanted(load()))
        self.schema = original if isinstance(original, torch._C.FunctionSchema) else schema_of(original)
        #: Of the original.
        self.parameters = parameters_of_schema(self.schema) if self.schema is not None else parameters_of(original)
        self._below_autograd = below_autograd
        self._known_signature: Signature | None = None
        self.tuned = 0  # cases, by this process itself
        self._probes: dict[tuple[str, str, str], Key] = {}
        #: What to call the original in remarks.
        self.label = str(self.schema) if self.schema is not None else getattr(original, "__qualname__", name)

    def _wanted(self, operator: Operator) -> Operator:
        return operator.invariantly() if RunOptions(**self.options.run).invariant else operator

    def resolve(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A Probation, or the Original. Any exception means the original serves; its text says why."""
        policy = effective(self.options.policy)
        tensors = tensors_in((*args, *kwargs.values()))
        if policy == "off" or not any(t.device.type == "npu" for t in tensors):
            return Original("")
        self._check(tensors)
        operator = self._load()
        if operator.direct is not None:
            raise OperatorError(
                f"{operator.name} is a kernel for direct launch, which is not served.",
                "Give an operator with a definition and a tiling function.",
            )
        site = self._site(policy, next(t.device for t in tensors if t.device.type == "npu"))
        call = bind(self.parameters, self.schema, self.options.names, args, kwargs)
        signature = self._signature(operator, site)
        if signature is None:
            return self._missing(operator, None, None, call, site)
        planned = self._plan(operator, signature, call)
        entry = site.store.find(self._key(operator, planned.case, site))
        if site.policy == "blocking" and (entry is None or not self._is_enough(entry, operator, site)):
            entry = self._tune(operator, call, planned.case, signature, site, original, args, kwargs)
        if entry is None:
            return self._missing(operator, signature, planned.case, call, site)
        if not (entry.improved or self.options.as_written):
            return Original("kept")
        if reason := self.remarks(site.store).of(entry, self.label):
            return Original("fallbacks", reason)
        launcher = Launcher(device_of(site.toolkit, site.device.index), entry, planned, site.device)
        alike = entry.provenance.answers(specification(operator))
        left = site.config.shadow if alike else max(site.config.shadow, JUDGED_OTHERWISE)
        return Probation(launcher, operator.settings, left=left)

    def tune(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        limits: Limits,
        run: Mapping[str, Any],
        progress: ProgressCallback | None = None,
    ) -> Entry:
        """The call's result: the cached one, if its search was finished, else what the search finds within ``limits``.
        ``run``: options of a run, for what the operator's own don't say.

        Raises AscendOptError for a call that can't have one, OutOfTime when the time is over before anything is found.
        """
        tensors = tensors_in((*args, *kwargs.values()))
        self._check(tensors)
        operator = self._load()
        site = self._site("blocking", tensors[0].device, run)
        call = bind(self.parameters, self.schema, self.options.names, args, kwargs)
        signature = self._signature(operator, site)
        assert signature is not None
        planned = self._plan(operator, signature, call)
        entry = site.store.find(self._key(operator, planned.case, site))
        if entry is None or not self._is_enough(entry, operator, site):
            entry = self._tune(
                operator, call, planned.case, signature, site, original, args, kwargs, limits=limits, progress=progress
            )
        assert entry is not None  # it was waited for
        return entry

    def _is_enough(self, entry: Entry, operator: Operator, site: _Site) -> bool:
        """Whether no search is to begin, or to go on."""
        options = site.options
        return entry.provenance.suffices(specification(operator), options.budget, options.accept_unfinished)

    def describe(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallDescription:
        """The call in the operator's terms. Raises CaseError for one that no operator can have."""
        call = bind(self.parameters, self.schema, self.options.names, args, kwargs)
        return CallDescription(call.values, call.written)

    def name_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Equal for calls with the same case on the same device. Raises CaseError as :meth:`describe`."""
        values = self.describe(args, kwargs).values
        tensors = tensors_in((*args, *kwargs.values()))
        layout = [f"{t.device} {t.is_contiguous()}" for t in tensors]
        return canonical([_text(values), layout, [*kwargs], len(args)])

    def entry(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Entry | None:
        """The cached result for the call. Raises AscendOptError for a call that can't have one."""
        operator = self._load()
        device = next(t.device for t in tensors_in((*args, *kwargs.values())) if t.device.type == "npu")
        site = self._site("lookup", device)
        signature = self._signature(operator, site)
        if signature is None:
            return None
        call = bind(self.parameters, self.schema, self.options.names, args, kwargs)
        return site.store.find(self._key(operator, self._plan(operator, signature, call).case, site))

    @property
    def source(self) -> str:
        """What to load the operator by: its name in the registry, or its folder. Raises OperatorError."""
        operator = self._load()
        return operator.name if operator.name in operator_names() else str(operator.root)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The operator's op.toml. Raises OperatorError."""
        return self._load().settings

    @staticmethod
    def remarks(store: Cache) -> Remarks:
        return Remarks(store.root / "remarks")

    def _site(self, policy: str, device: torch.device, asked: Mapping[str, Any] = MappingProxyType({})) -> _Site:
        config = settings()
        toolkit = prepare() or find(config.target)  # the one this process runs on, whatever was built since
        run = {"target": toolkit.target, **asked, **self.options.run}
        if toolkit.target != "virtual":
            run.setdefault("chip", device_of(toolkit, device.index).soc_name().lower())
        return _Site(toolkit, RunOptions(**run), store(), policy, config, device)

    def _check(self, tensors: list[torch.Tensor]) -> None:
        """Raises CaseError for a call that a launcher can't serve, whatever the operator."""
        if len({t.device for t in tensors}) > 1:
            raise CaseError("the tensors are on different devices.")
        if tensors[0].device.index != torch.npu.current_device():  # type: ignore[attr-defined]
            raise CaseError("the tensors are not on the current device.")
        if any(not t.is_contiguous() for t in tensors):
            raise CaseError("a tensor is not contiguous.")
        if any(t.is_conj() or t.is_neg() for t in tensors):
            raise CaseError("a tensor is conjugated or negated lazily.")
        if any(_format(t) not in _PLAIN_FORMATS for t in tensors):
            raise CaseError("a tensor has a private format.")
        if not self._below_autograd and torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            raise CaseError("a gradient is wanted; the original has the formula.")

    def _key(self, operator: Operator, case: Case, site: _Site) -> Key:
        """As Key.of, which reads the files beside the pair: those are read once."""
        at = (site.options.chip, site.toolkit.target, site.toolkit.version)
        if at not in self._probes:
            self._probes[at] = Key.of(operator, Case((), ()), chip=at[0], target=at[1], toolkit=at[2])
        return replace(self._probes[at], case=canonical(case.to_json()))

    def _plan(self, operator: Operator, signature: Signature, call: BoundCall) -> Any:
        options = self.options
        return plan(
            signature, call, self.schema, in_place=operator.in_place, returns=options.returns, names=options.names
        )

    def _signature(self, operator: Operator, site: _Site) -> Signature | None:
        """The operator's definition: from any of its cached results, so that looking up compiles nothing."""
        if self._known_signature is None:
            probe = self._key(operator, Case((), ()), site)
            same = (
                s
                for s in site.store.items(operator.name)
                if (s.key.baseline, s.key.build) == (probe.baseline, probe.build)
            )
            self._known_signature = next((s.signature for s in same if s.signature is not None), None)
        if self._known_signature is None and site.policy == "blocking":
            from ...evaluate.screen import borrowed

            with borrowed(site.toolkit, site.options.chip, site.options.workers) as evaluator:
                self._known_signature = evaluator.describe(operator).signature
        return self._known_signature

    def _tune(
        self,
        operator: Operator,
        call: BoundCall,
        case: Case,
        signature: Signature,
        site: _Site,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        limits: Limits | None = None,
        progress: ProgressCallback | None = None,
    ) -> Entry | None:
        request = self._request(operator, call, site, search=True)
        if not signature.has_infer_shape and (self.schema is None or not self.schema.is_mutable):
            results = specs_of(original(*args, **kwargs))
            request = replace(request, call=replace(request.call, results=results))
        log.info("%s: tuning %s with %d evaluations", self.name, case, request.options.budget)
        entry, made = fulfil(
            replace(request, reuse=False), site.store, site.toolkit, wait=True, limits=limits, progress=progress
        )
        self.tuned += made
        return entry

    def _request(self, operator: Operator, call: BoundCall, site: _Site, search: bool) -> Request:
        return Request(
            operator,
            CallDescription(call.values, call.written),
            site.options,
            rules_of(operator, self.options.buckets),
            search=search,
            reuse=site.config.reuse,
        )

    def _missing(
        self, operator: Operator, signature: Signature | None, case: Case | None, call: BoundCall, site: _Site
    ) -> Original:
        missing = Original("misses", "not cached")
        if case is not None:
            missing.key = self._key(operator, case, site)
        if site.policy == "lazy":
            missing.wanted = Wanted(self._request(operator, call, site, True), site.toolkit.target)
        elif signature is not None and case is not None and site.config.reuse and site.policy == "lookup":
            rules: Rules = rules_of(operator, self.options.buckets)
            key = self._key(operator, case, site)
            if closest(site.store.items(operator.name), key, case, signature, rules) is not None:
                missing.wanted = Wanted(self._request(operator, call, site, False), site.toolkit.target)
        return missing


_PLAIN_FORMATS = frozenset({-1, 0, 1, 2, 27, 30})  # undefined, NCHW, NHWC, ND, NDHWC, NCDHW (aclFormat)


def private_formats() -> bool:
    """Whether tensors may have formats in which elements lie in another order than their strides say."""
    import torch_npu

    return bool(torch_npu._C._npu_getOption("ALLOW_INTERNAL_FORMAT") != b"disable")


def _format(tensor: torch.Tensor) -> int:
    if tensor.device.type != "npu" or not private_formats():
        return 2
    import torch_npu

    return int(torch_npu.get_npu_format(tensor))


def store() -> Cache:
    """The cache that the settings name now; one object per set of folders, and per process."""
    return _store(paths.cache_dir(), paths.cache_layers(), os.getpid())


@cache
def _store(root: Path, layers: tuple[Path, ...], pid: int) -> Cache:
    return Cache(root, layers)
