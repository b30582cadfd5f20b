"""Who serves a call of a tuned operator: the cached pair, or the original.

1. A call is reduced to a key (keys.py), and the table maps keys to what serves them: a :class:`Launcher`, a
   :class:`Probation`, or the :class:`Original` with the reason why.
2. A new key is resolved (resolve.py): looked up, and under the policies that allow it tuned, at once or in the
   background. A miss is looked up again from time to time.
3. Before a launcher serves alone, both it and the original serve some calls, and must agree (guard.py).
4. Whatever fails, the original serves that very call, and the reason is counted. Nothing here raises an error of its
   own into the caller's model; only the original does.
5. During graph capture nothing is looked up, loaded, copied, tuned or compared: launchers that serve alone go on, the
   original serves the rest.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from ...errors import AscendOptError, CaseError
from ...nouns.operator import Operator
from ...search.budget import Limits
from ...service.described import CallDescription
from ...service.lazy import moving_us
from ...service.policy import scoped
from ...settings import DISABLE, disabled, settings
from ...store.cache import Entry
from ...tuner import ProgressCallback
from ..device.faults import KernelFault, LostError, on_loss
from . import keys
from .calls import Served, active
from .cases import CaseCount, text_of
from .fast_path import FastTable
from .form import CallForm
from .guard import Probation, SlowerError, poison, tensors_in
from .launcher import Launcher, UnfitError
from .resolve import CAPTURED, QUEUED, Options, Original, Resolver, store
from .sampling import Sample, next_due, sampler
from .table import DispatchTable

__all__ = ["Options", "Original", "Served", "TunedOp"]

log = logging.getLogger("ascendopt_tune")

LOOK_AGAIN_S = 1.0  # how soon a call that missed asks the cache again: another process may have tuned meanwhile
LONGEST_PAUSE_S = 30.0  # and how rarely, in the end
LOOK_EVERY = 64  # calls of a case after which it is looked at again whether one is to be sampled
MAX_FAILURES = 3  # launches that may fail before the original serves for good

#: What happens between tensors is seen, or taken apart, by somebody: a launch would be neither.
WATCHED = "a transform (vmap, jvp), forward-mode differentiation, torch.jit.trace or a dispatch mode is on"
_dispatch_modes, _transform = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_trace = torch._C._get_tracing_state

# The environment as the interpreter keeps it: asking os.environ takes half a microsecond a call.
_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_KILL = os.environ.encodekey(DISABLE) if hasattr(os.environ, "encodekey") else DISABLE


class TunedOp:
    """An operator that answers calls like ``original`` does, by the cached pair where there is one.

    Threads may call it at the same time. ``operator`` may be a function that loads it; it is called at the first call.

    Args:
        original: the function; or a schema, for an operator whose kernel is handed over call by call.
        below_autograd: see :class:`Resolver`.
    """

    def __init__(
        self,
        name: str,
        operator: Callable[[], Operator],
        original: Any,
        options: Options | None = None,
        below_autograd: bool = False,
    ) -> None:
        self.name = name
        self.original = original
        self.options = options or Options()
        self._below_autograd = below_autograd
        self._off = False
        #: Every call takes the way that looks at the policy.
        self._slow = self.options.policy == "off"
        self._resolver = Resolver(name, operator, original, self.options, below_autograd)
        #: What serves each key, and who has served so far.
        self.table = DispatchTable(name)
        self._prepared: dict[str, Probation | Original] = {}  # for compiled graphs, by the call's description
        self._lock = threading.RLock()
        self._fast_lock = threading.Lock()
        if isinstance(original, torch._C.FunctionSchema):
            self._key, self._forms = keys.of_operator(original, grad=not below_autograd)
        else:
            self._key = keys.of_function
            #: What to call, for a plain function.
            self.function = self._caller(original, watched=True)
            self._of_a_graph = self._caller(original, watched=False)
        _instances.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a node of a compiled graph calls a plain function: what is to be seen of it was seen in tracing."""
        return self._of_a_graph(*args, **kwargs)

    def _caller(self, original: Callable[..., Any], watched: bool) -> Callable[..., Any]:
        """The way of a call of a plain function; :meth:`kernel` is that of an operator of torch.

        ``watched``: whoever wants to see what happens between tensors sees the original.
        """
        table, key_of, is_compiling, scope = self.table.choices, self._key, torch.compiler.is_compiling, scoped.get

        modes, transform, forward, trace = _dispatch_modes, _transform, torch.autograd.forward_ad, _trace

        def call(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            if watched and (modes() or transform() is not None or forward._current_level >= 0 or trace() is not None):
                return self._cannot_take(CaseError(WATCHED), original, args, kwargs)
            try:
                key = key_of(args, kwargs)
            except CaseError as error:
                return self._cannot_take(error, original, args, kwargs)
            choice = table.get(key)
            if (
                choice.__class__ is not Launcher
                or choice.calls >= choice.due
                or _KILL in _environment
                or scope() is not None
                or self._slow
            ):
                return self._serve(key, choice, original, args, kwargs)
            try:
                result = choice.go(args, kwargs)
            except Exception as error:
                self._failed(key, choice, error)
                return original(*args, **kwargs)
            choice.calls += 1
            return result

        return call

    def kernel(self, original: Any) -> Callable[..., Any]:
        """A kernel for ``Library.impl(..., with_keyset=True)``, before ``original``, a kernel of torch's dispatcher."""
        table, key_of, form_of, scope = self.table.choices, self._key, self._forms.get, scoped.get

        def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                form = None if kwargs else form_of(len(args))
                key = form(args, kwargs) if form is not None else key_of(args, kwargs)
            except CaseError as error:
                return self._cannot_take(error, functools.partial(original, keyset), args, kwargs)
            choice = table.get(key)
            if (
                choice.__class__ is not Launcher
                or choice.calls >= choice.due
                or _KILL in _environment
                or scope() is not None
                or self._slow
            ):
                return self._serve(key, choice, functools.partial(original, keyset), args, kwargs)
            try:
                result = choice.go(args, kwargs)
            except Exception as error:
                self._failed(key, choice, error)
                return original(keyset, *args, **kwargs)
            choice.calls += 1
            return result

        return kernel

    def fast_table(self, library: Any) -> FastTable:
        """What C++ serves from now on. ``library``: the fast path's."""
        with self._fast_lock:  # not the table's, which may be held by who waits for the lock of interceptions
            if self.table.fast is None:
                self.table.fast = FastTable(library, grad=not self._below_autograd)
                for launcher in self.table.launchers() if not self._slow else ():
                    self.table.fast.put(launcher)
                    if not launcher.serving:  # another thread has just taken it out
                        self.table.fast.remove(launcher)
            return self.table.fast

    @property
    def off(self) -> bool:
        """Rolled back: the original serves, uncounted."""
        return self._off

    @off.setter
    def off(self, value: bool) -> None:
        self._off = value
        self._slow = value or self.options.policy == "off"
        if value:
            self.leave_fast_path()

    def leave_fast_path(self) -> None:
        """Hits are served in Python from now on."""
        if self.table.fast is not None:
            with self._lock:
                for launcher in self.table.launchers():
                    self.table.fast.remove(launcher)

    @property
    def served(self) -> Served:
        """The counts so far."""
        return self.table.served(self._resolver.tuned)

    def forget(self) -> None:
        """Empties the dispatch table: every case is looked up anew. The counts stay."""
        with self._lock:
            self._prepared.clear()
            for key in list(self.table.choices):
                self.table.replace(key, None)

    def resolve_ahead(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], original: Any = None, anew: bool = False
    ) -> str:
        """Has these arguments' case served from now on, if it can be: looks up, tunes as the policy says, loads, and
        compares, with as many calls of both as that takes. Returns what serves: ``tuned``, ``original`` (the user's own
        pair is the best), ``missing``, or the reason why the original does.

        Args:
            original: the kernel, for an operator whose kernel is handed over call by call.
            anew: what serves so far is looked up again, because there may be a better result.
        """
        function = original or self.original
        key = self._key(args, kwargs)
        if anew:
            with self._lock:
                self._prepared.pop(self._resolver.name_of(args, kwargs), None)
                self.table.replace(key, None)
        for _ in range(100):
            choice = self.table.choices.get(key)
            if isinstance(choice, Launcher):
                return "tuned"
            if isinstance(choice, Original) and choice.until == float("inf"):
                return {"kept": "original"}.get(choice.kind, choice.reason)
            missed = isinstance(choice, Original)
            if missed:  # under another policy, or a while ago
                with self._lock:
                    self.table.replace(key, None)
                    choice = None
            self._serve(key, choice, function, args, kwargs)
            now = self.table.choices.get(key)
            if missed and isinstance(now, Original) and now.until < float("inf"):
                return "missing"
        return "missing"

    def tune_ahead(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        original: Any,
        limits: Limits,
        run: Mapping[str, Any],
        progress: ProgressCallback | None = None,
    ) -> Entry:
        """Tunes these arguments' case, or goes on with it, within ``limits``; what serves stays as it is. ``run``:
        options of a run, for what the operator's own don't say.

        Raises AscendOptError for a call that can't be tuned, OutOfTime when the time is over before anything is found.
        """
        with self._lock:
            return self._resolver.tune(original or self.original, args, kwargs, limits, run, progress)

    def describe(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallDescription:
        """The call in the operator's terms. Raises CaseError for one that no operator can have."""
        return self._resolver.describe(args, kwargs)

    def entry(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Entry | None:
        """The cached result for the call, if there is one. Raises AscendOptError for a call that can't have one."""
        return self._resolver.entry(args, kwargs)

    @property
    def source(self) -> str:
        """What to load the operator by: its name in the registry, or its folder. Raises OperatorError."""
        return self._resolver.source

    # -- for compiled graphs (bound.py, compile_pass.py) ---------------------------------------------------------------

    def prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], original: Any) -> Probation | Original:
        """What is to serve calls with tensors like these, which may be fake ones: looks up, tunes as the policy says,
        and loads. A case that has a result is resolved once in a process. Nothing is counted."""
        if disabled() or self._off or (scoped.get() or self.options.policy) == "off":
            return Original("")
        with self._lock:
            try:
                name = self._resolver.name_of(args, kwargs)
                choice = self._prepared.get(name) or self._resolver.resolve(original, args, kwargs)
            except Exception as error:
                return self._refused(error)
            if isinstance(choice, Probation) or choice.kind == "kept":
                self._prepared[name] = choice
            return choice

    def adopt(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
        """Puts what was prepared for these arguments into the table, unless that has more than a miss for them.

        Returns the call's key. Raises CaseError for arguments that no operator can have.
        """
        key = self._key(args, kwargs)
        now = self.table.choices.get(key)
        if now is None or (isinstance(now, Original) and now.kind == "misses"):
            with self._lock:
                prepared = self._prepared.get(self._resolver.name_of(args, kwargs))
                if prepared is not None and self.table.choices.get(key) is now:
                    self.table.replace(key, prepared)
        return key

    def choice(self, key: Hashable) -> Launcher | Probation | Original | None:
        return self.table.choices.get(key)

    def launch_failed(self, key: Hashable, launcher: Launcher, error: Exception) -> None:
        """Counts a launch that didn't happen; the last of several takes the launcher out of service."""
        self._failed(key, launcher, error)

    def serves_kept(self) -> None:
        """Counts a call whose best pair is the original."""
        self.table.counted.kept += 1

    # -- off the fast path --------------------------------------------------------------------------------------------

    def _serve(
        self, key: Hashable, choice: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if (recorder := active.get()) is not None:
            return recorder.call(self, key, original, args, kwargs)
        scope = scoped.get()
        killed = _KILL in _environment and disabled()
        if killed or self._off or (scope or self.options.policy) == "off":
            return original(*args, **kwargs)
        if isinstance(choice, Launcher):
            try:
                sample = self._sample(key, choice, original, args, kwargs)
                if sample is None:
                    result = choice.go(args, kwargs)
                else:
                    results = choice.run(args, kwargs, poison)
                    sample.launched(results, args, kwargs)
                    result = choice.packed(results)
            except Exception as error:
                self._failed(key, choice, error)
                return original(*args, **kwargs)
            choice.calls += 1
            return result
        due = choice is None or (
            isinstance(choice, Original)
            and (time.monotonic() >= choice.until or (choice.kind in ("misses", "") and scope != choice.scope))
        )
        if due or isinstance(choice, Probation):
            if torch.npu.is_available() and torch.npu.is_current_stream_capturing():  # type: ignore[attr-defined]
                return self._capturing(choice, original, args, kwargs)
            if due:
                choice = self._first_call(key, choice, original, args, kwargs)
        if isinstance(choice, Launcher):  # another thread had it compared meanwhile
            return self._serve(key, choice, original, args, kwargs)
        if isinstance(choice, Probation):
            return self._both_serve(key, choice, original, args, kwargs)
        return self._serve_original(choice, original, args, kwargs)

    def _sample(
        self, key: Hashable, launcher: Launcher, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> Sample | None:
        """The call's sample, if it is due and can be had."""
        calls = launcher.served()
        if calls < launcher.sample_at or not sampler.idle:
            launcher.put_off(LOOK_EVERY)
            return None
        if torch.npu.is_current_stream_capturing():  # type: ignore[attr-defined]
            return None
        launcher.schedule(next_due(calls, settings().check_every))

        def caught(reason: str) -> None:
            log.error("%s: the tuned pair is taken out of service: %s", self.name, reason)
            with self._lock:
                self._quarantine(key, launcher, f"quarantined: {reason}")

        return Sample.of(launcher, original, self._resolver.settings, caught, args, kwargs)

    def _first_call(
        self,
        key: Hashable,
        before: Original | None,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Launcher | Probation | Original:
        with self._lock:
            now = self.table.choices.get(key)
            if now is not before and now is not None:
                return now  # another thread was first
            if before is not None and before.wanted is not None and before.wanted.job is not None:
                job = before.wanted.ask(self.name, before.calls)
                before.calls = 0
                if job.state == "failed":
                    choice: Probation | Original = self._refused(AscendOptError(job.reason))
                    self.table.replace(key, choice)
                    return choice
            try:
                choice = self._resolver.resolve(original, args, kwargs)
            except Exception as error:
                choice = self._refused(error)
            count = self.table.counts.get(key)
            if count is None:
                size = sum(t.nbytes for t in tensors_in((*args, *kwargs.values())))
                count = self.table.counts[key] = CaseCount(self._text(args, kwargs), moving_us(size, settings().chip))
            if isinstance(choice, Original):
                choice.scope, choice.case = scoped.get(), count
            if isinstance(choice, Original) and choice.kind == "misses":
                pause = LOOK_AGAIN_S
                if before is not None and before.kind == "misses":
                    pause = min(2 * before.pause, LONGEST_PAUSE_S)
                    if choice.wanted is not None and before.wanted is not None:
                        choice.wanted, choice.calls = before.wanted, before.calls
                        pause = LOOK_AGAIN_S if before.wanted.job and before.wanted.job.state in QUEUED else pause
                choice.pause = pause
                choice.until = time.monotonic() + pause
            self.table.replace(key, choice)
            if isinstance(choice, Original) and choice.kind in ("misses", "kept"):
                why = "the pair as written is the best" if choice.kind == "kept" else choice.reason or "not cached"
                log.debug("%s: the original serves %s: %s.", self.name, count.case, why)
            return choice

    def _text(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        return text_of(args, kwargs, self._resolver.parameters.parameters)

    def _both_serve(
        self,
        key: Hashable,
        probation: Probation,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        expected, error = probation.call(original, args, kwargs)
        if error is not None:
            choice = self._refused(error)
            self.table.count(choice)
            if isinstance(error, UnfitError):
                return expected
            if isinstance(error, (SlowerError, KernelFault)):
                self._resolver.remarks(store()).add(probation.launcher.entry, self._resolver.label, choice.reason)
            self.table.replace(key, choice)
            return expected
        self.table.counted.hits += 1
        self.table.counted.compared += 1
        if key in self.table.counts:
            self.table.counts[key].hits += 1
        if probation.passed:
            with self._lock:
                if self.table.choices.get(key) is probation:  # else another thread was first
                    self.enter_service(key, probation.launcher, args, kwargs)
        return expected

    def enter_service(
        self, key: Hashable, launcher: Launcher, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """The launcher serves calls with this key alone from now on; the arguments are those of one. Under the
        operator's lock, once calls arrive."""
        launcher.prepare()
        schema = self.original if isinstance(self.original, torch._C.FunctionSchema) else None
        launcher.form = CallForm.of(schema, args, kwargs, launcher.device)
        launcher.schedule(next_due(0, settings().check_every))
        self.table.replace(key, launcher)
        launcher.serving = True
        log.info("%s: %s is served by the tuned pair from now on.", self.name, self._text(args, kwargs))
        if self.table.fast is not None and not self._slow:
            self.table.fast.put(launcher)

    def _capturing(
        self, choice: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The original, whatever the table says; the case is reported."""
        shapes = self._text(args, kwargs)
        captured = self.table.counted.captured
        if shapes not in captured:
            log.warning("%s: %s is captured untuned; warm it up before the capture", self.name, shapes)
        captured.setdefault(shapes, 0)
        captured[shapes] += 1
        return self._serve_original(Original("fallbacks", CAPTURED), original, args, kwargs)

    def _cannot_take(
        self, error: CaseError, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        traced = any(isinstance(t, (FakeTensor, FunctionalTensor)) for t in tensors_in((*args, *kwargs.values())))
        choice = Original("") if traced or disabled() or self._off else Original("fallbacks", error.message)
        return self._serve_original(choice, original, args, kwargs)

    def _serve_original(
        self, choice: Original, original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        self.table.count(choice)
        if choice.case is not None:
            choice.case.misses += 1
        result = original(*args, **kwargs)
        if choice.wanted is not None:
            choice.calls += 1
            if choice.wanted.job is None:
                with self._lock:
                    if choice.wanted.job is None:
                        choice.wanted.ask(self.name, choice.calls, result)
                        choice.calls = 0
        return result

    # -- what fails ---------------------------------------------------------------------------------------------------

    def _refused(self, error: Exception) -> Original:
        reason = str(error) if isinstance(error, AscendOptError) else f"{type(error).__name__}: {error}"
        if reason not in self.table.counted.fallbacks:
            log.warning("%s: the original serves: %s", self.name, reason)
        return Original("fallbacks", reason)

    def _failed(self, key: Hashable, launcher: Launcher, error: Exception) -> None:
        """A launch that didn't happen, or whose kernel failed. What the tensors are to blame for is not held against
        the pair. Raises the error where the original can't serve: its inputs are lost."""
        if isinstance(error, LostError):
            raise error
        choice = self._refused(error)
        self.table.count(choice)
        if isinstance(error, UnfitError):
            return
        fault = isinstance(error, KernelFault)
        with self._lock:
            launcher.failures += 1
            if fault or launcher.failures >= MAX_FAILURES:
                what = "a kernel fault" if fault else f"{MAX_FAILURES} failures"
                self._quarantine(key, launcher, f"quarantined after {what}: {choice.reason}")
        if fault and launcher.in_place:
            raise error

    def _quarantine(self, key: Hashable, launcher: Launcher, reason: str) -> None:
        """The original serves the case from now on, in other processes, too."""
        self._resolver.remarks(store()).add(launcher.entry, self._resolver.label, reason)
        if self.table.choices.get(key) is launcher:
            self.table.replace(key, Original("fallbacks", reason, case=self.table.counts.get(key)))

    def _forked(self) -> None:
        self._lock = threading.RLock()
        self._fast_lock = threading.Lock()
        if self.table.fast is not None:
            self.table.fast.lock = threading.Lock()


_instances: weakref.WeakSet[TunedOp] = weakref.WeakSet()


def _forked() -> None:
    for op in _instances:
        op._forked()


def _leave_fast_path() -> None:
    """C++ doesn't look whether a tensor is lost."""
    for op in list(_instances):
        op.leave_fast_path()


os.register_at_fork(after_in_child=_forked)
on_loss.append(_leave_fast_path)
