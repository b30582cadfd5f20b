"""In service, for as long as the process lives, a call now and then is compared with what the original makes of it.

A pair that passed the gate and the first comparisons may still be wrong for values or at a time nobody tried. So of a
case's calls the 16th, 32nd, 64th ... and then one in ``ASCENDOPT_CHECK_EVERY`` is sampled: its arguments are copied on
the device before the launch and its results after it (new outputs are poisoned, as on probation), and a thread has the
original compute from the copies, on a stream of its own, and compares. The caller waits for neither. One sample is
under way at a time; a call that is due meanwhile is served without. A pair that is caught is quarantined, for every
process.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...service.policy import policy
from .guard import DiffersError, compare, flat
from .launcher import Args, Kwargs, Launcher

log = logging.getLogger("ascendopt_tune")

FIRST = 16  # the first call of a case that is sampled; those before it were compared on probation
_EXIT_S = 5.0  # how long the interpreter's exit waits for a comparison that is under way


def next_due(calls: int, every: int) -> int:
    """Which call is sampled next, after ``calls``; 0 for ``every``: none."""
    if every == 0:
        return 1 << 62
    return FIRST if calls < FIRST else min(2 * calls, calls + every)


@dataclass
class Sample:
    """One call: copies of its arguments as they were, of what it returned, and of the arguments it changed."""

    launcher: Launcher
    original: Callable[..., Any]
    settings: Mapping[str, Any]  # op.toml, for the tolerances
    caught: Callable[[str], None]
    args: Args
    kwargs: Kwargs
    inference: bool
    results: list[torch.Tensor]
    changed: list[torch.Tensor]
    ready: Any = None  # the event behind the last copy

    @classmethod
    def of(
        cls,
        launcher: Launcher,
        original: Callable[..., Any],
        settings: Mapping[str, Any],
        caught: Callable[[str], None],
        args: Args,
        kwargs: Kwargs,
    ) -> Sample:
        """Before the launch. ``caught``: called with the reason, from another thread, if the pair is wrong."""
        own_args, own_kwargs = _copied((args, dict(kwargs)))
        inference = torch.is_inference_mode_enabled()
        return cls(launcher, original, settings, caught, own_args, own_kwargs, inference, [], [])

    def launched(self, results: list[torch.Tensor], args: Args, kwargs: Kwargs) -> None:
        """After it: keeps copies, and hands the sample to the thread, unless that has one already."""
        self.results, self.changed = _copied((results, self.launcher.changed(args, kwargs)))
        self.ready = torch.npu.Event()  # type: ignore[attr-defined]
        self.ready.record()
        sampler.take(self)

    def judge(self) -> None:
        """Has the original compute, and compares. What goes wrong here is nobody's fault but this thread's."""
        device = self.launcher.device
        torch.npu.set_device(device)  # type: ignore[attr-defined]
        stream = torch.npu.Stream(device)  # type: ignore[attr-defined]
        with torch.inference_mode(self.inference), torch.no_grad(), policy("off"), torch.npu.stream(stream):  # type: ignore[attr-defined]
            stream.wait_event(self.ready)
            expected = self.original(*self.args, **self.kwargs)
            stream.synchronize()
            try:
                compare(self.results, flat(expected)[: len(self.results)], self.settings)
                compare(self.changed, self.launcher.changed(self.args, self.kwargs), self.settings)
            except DiffersError as error:
                self.caught(f"in service, {error.message}")


class Sampler:
    """The thread that judges samples; started by the first one."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Sample | None] = queue.Queue(maxsize=1)
        self._thread: threading.Thread | None = None
        self._busy = False
        #: Samples that were compared so far.
        self.judged = 0

    @property
    def idle(self) -> bool:
        """Whether a sample would be taken."""
        return not self._busy and self._waiting.empty()

    def take(self, sample: Sample) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ascendopt-sampling", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        try:
            self._waiting.put_nowait(sample)
        except queue.Full:
            pass  # another thread was first

    def wait(self) -> None:
        """Until everything that was taken is judged."""
        self._waiting.join()

    def close(self) -> None:
        """Ends the thread, after the comparison that is under way; torch must not go away below it."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                self._waiting.put(None, timeout=_EXIT_S)
            except queue.Full:
                return
            thread.join(_EXIT_S)

    def _run(self) -> None:
        while (sample := self._waiting.get()) is not None:
            self._busy = True
            try:
                sample.judge()
                self.judged += 1
            except Exception as error:
                log.warning("a call could not be compared with the original: %s", error)
            finally:
                self._busy = False
                del sample
                self._waiting.task_done()


def _copied(value: Any) -> Any:
    with torch.no_grad():
        return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)


def _forked() -> None:
    """A fork has its own thread; the parent's sample is the parent's."""
    sampler.__init__()  # type: ignore[misc]


sampler = Sampler()
os.register_at_fork(after_in_child=_forked)
