"""Evaluations on a Ray cluster: an evaluator whose requests are served by the cluster's machines.

The tuner, its journal and its cache stay where they are. What travels is a request with the arrays it names, and the
answer with the files it names. Every processor that Ray grants is an actor with an evaluation server of its own, which
confines candidates there as one does here. A request whose machine dies goes to another one: nothing of the run is lost
but that evaluation's time. The winner is confirmed by a server of this machine (:meth:`Evaluator.fresh`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..build.toolkit import Toolkit, find
from ..errors import AscendOptError, DeviceError, ToolchainError, need
from . import protocol
from .evaluator import Evaluator, ProcessLimits

#: What names a file in a message, by class.
_FILES = {
    "ArrayFile": ("path",),
    "Launchable": ("binary_path",),
    "EvaluationResult": ("binary_path", "tiling_path", "trace_path"),
}


@contextlib.contextmanager
def joined(address: str, processors: int) -> Iterator[Any]:
    """The module ``ray``, connected to a cluster for the length of a ``with`` block.

    Args:
        address: of the cluster (``auto``: the one this machine is part of; ``local``: one that is started here, with
            ``processors``).

    Raises:
        AscendOptError: Ray isn't installed or can't be reached.
    """
    need("ray", "ray", "--ray")
    import ray

    own: Any = {"num_cpus": processors, "include_dashboard": False} if address == "local" else {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours tells nobody
    ours = not ray.is_initialized()
    with contextlib.redirect_stdout(sys.stderr):  # Ray tells of lost nodes on stdout, which is for results
        try:
            ray.init(address=address, log_to_driver=False, ignore_reinit_error=True, **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise AscendOptError(f"Ray at {address!r} can't be reached: {error}.", "ray status shows it.") from error
        try:
            yield ray
        finally:
            if ours:
                ray.shutdown()  # also ends what is running


class ClusterEvaluator(Evaluator):
    """An evaluator of the virtual NPU on a cluster, one evaluation for each of its processors at the same time.

    Args:
        ray: the connected module, as :func:`joined` gives it.
        workers: the most processors it takes; default: all that the cluster has.
        say: told when a machine joins, can't, or is lost.

    Raises:
        CaseError: no such chip.
        ToolchainError: the toolkit is a real NPU's, whose times are those of the device at hand.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        chip: str,
        limits: ProcessLimits | None = None,
        *,
        ray: Any,
        workers: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        if toolkit.kind != "virtual":
            raise ToolchainError(
                "--ray spreads evaluations of the virtual NPU; a real NPU's times are those of one device.",
                "Use --target virtual, or `prebuild --ray`, which tunes whole cases where the devices are.",
            )
        count = min(workers or 1 << 20, max(1, int(ray.cluster_resources().get("CPU", 1))))
        super().__init__(toolkit, chip, limits, workers=count)
        config = {"version": toolkit.version, "chip": self.chip, "limits": asdict(self.limits)}
        self._hands = _Hands(ray, config, count, self.folder / "from-there", say)

    def _send(self, op: str, args: tuple[Any, ...]) -> Future[Any]:
        return self._hands.ask(op, [protocol.encode(a) for a in args])

    def close(self) -> None:
        self._hands.close()
        super().close()


@contextlib.contextmanager
def on_cluster(
    address: str,
    toolkit: Toolkit,
    chip: str,
    *,
    workers: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Evaluator]:
    """A :class:`ClusterEvaluator` on the cluster at ``address``; both raise."""
    with (
        joined(address, workers or os.cpu_count() or 1) as ray,
        ClusterEvaluator(toolkit, chip, ray=ray, workers=workers, say=say) as evaluator,
    ):
        yield evaluator


# -- here -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    op: str
    args: list[Any]  # encoded
    answer: Future[Any]


class _Hands:
    """The actors, and the requests that wait for one. Thread-safe: answers come in threads of Ray's."""

    def __init__(
        self, ray: Any, config: Mapping[str, Any], count: int, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._ray, self._folder, self._say = ray, folder, say
        self._lock = threading.RLock()
        self._waiting: deque[_Job] = deque()
        self._idle: list[Any] = []
        self._sent: dict[str, Any] = {}  # path here -> Ray's reference of the file's bytes
        self._why = "the cluster has no processor for it"
        self._received = 0
        actor = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0)(_Hand)
        #: Each with whether it works already.
        self._all = dict.fromkeys((actor.remote(dict(config)) for _ in range(count)), False)
        for hand in list(self._all):
            hand.hello.remote().future().add_done_callback(lambda done, hand=hand: self._hear(hand, done))

    def _hear(self, hand: Any, done: Future[Any]) -> None:
        """A machine has joined, or says why it can't."""
        error = done.exception()
        told: dict[str, Any] = {"error": f"it died: {error}"} if error is not None else done.result()
        if "error" in told:
            self._drop(hand, told["error"])
            return
        with self._lock:
            if hand not in self._all:
                return
            self._all[hand] = True
            self._idle.append(hand)
            self._say(f"{sum(self._all.values())} of {len(self._all)} processors of the cluster are ready")
        self._pump()

    def _drop(self, hand: Any, why: str) -> None:
        with self._lock:
            if self._all.pop(hand, None) is None:
                return
            self._why = why
            self._say(f"a processor of the cluster is lost, {len(self._all)} are left: {why}")
            lost = [] if self._all else list(self._waiting)
            if lost:
                self._waiting.clear()
        for job in lost:
            job.answer.set_exception(self._nobody())

    def _nobody(self) -> DeviceError:
        return DeviceError(f"no machine of the cluster is left to evaluate on: {self._why}")

    def ask(self, op: str, args: list[Any]) -> Future[Any]:
        """The future of an answer. Raises DeviceError when no machine is left."""
        job = _Job(op, args, Future())
        with self._lock:
            if not self._all:
                raise self._nobody()
            self._waiting.append(job)
        self._pump()
        return job.answer

    def _pump(self) -> None:
        with self._lock:
            while self._waiting and self._idle:
                self._give(self._idle.pop(0), self._waiting.popleft())

    def _give(self, hand: Any, job: _Job) -> None:
        names = _paths(job.args)
        for name in names:
            if name not in self._sent:
                self._sent[name] = self._ray.put(Path(name).read_bytes())
        # In a list: references inside of one are not fetched before somebody asks for them.
        files = [(name, self._sent[name]) for name in names]
        future = hand.serve.remote(job.op, job.args, files).future()
        future.add_done_callback(lambda done: self._settle(hand, job, done))

    def _settle(self, hand: Any, job: _Job, done: Future[Any]) -> None:
        error = done.exception()
        if error is not None:  # the machine's, not the candidate's: that one runs in a process of its own there
            with self._lock:
                self._waiting.appendleft(job)
            self._drop(hand, str(error).strip().splitlines()[0])
            self._pump()
            return
        answer, files = done.result()
        with self._lock:
            self._idle.append(hand)
        self._pump()
        try:
            job.answer.set_result(protocol.value_or_raise(self._received_here(answer, files)))
        except Exception as why:  # raised again by whoever waits for the answer
            job.answer.set_exception(why)

    def _received_here(self, answer: Any, files: Mapping[str, bytes]) -> Any:
        """The answer with its files written here."""
        with self._lock:
            self._received += 1
            folder = self._folder / str(self._received)
        places = {name: folder / str(i) for i, name in enumerate(files)}
        if files:
            folder.mkdir(parents=True)
        for name, place in places.items():
            place.write_bytes(files[name])
        return _with_paths(answer, lambda path: str(places[path]))

    def close(self) -> None:
        with self._lock:
            hands, self._all, self._idle = list(self._all), {}, []
            self._sent.clear()
        for hand in hands:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.kill(hand)


# -- there ----------------------------------------------------------------------------------------------------------


class _There(Evaluator):
    """The evaluator of a machine of the cluster."""

    def serve(self, op: str, args: tuple[Any, ...]) -> Any:
        return self._ask(op, *args).result()


class _Hand:
    """A processor of the cluster: an actor, with an evaluation server that serves one request at a time."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._evaluator: _There | None = None
        self._files: dict[str, str] = {}  # path of the asking machine -> path here

    def hello(self) -> dict[str, Any]:
        """Builds the toolkit if need be. ``{"error": why}`` where this machine can't take part."""
        try:
            toolkit = find("virtual")
            if toolkit.version != self._config["version"]:
                wanted = f"{toolkit.version}, asked for by {self._config['version']}"
                return {"error": f"{os.uname().nodename} has another version of the virtual NPU: {wanted}"}
            limits = ProcessLimits(**self._config["limits"])
            self._evaluator = _There(toolkit, self._config["chip"], limits, workers=1)
        except AscendOptError as error:
            return {"error": f"{os.uname().nodename}: {error}"}
        return {}

    def serve(self, op: str, args: list[Any], files: list[tuple[str, Any]]) -> tuple[Any, dict[str, bytes]]:
        """A request's answer, and the files it names."""
        assert self._evaluator is not None, "hello comes first"
        for name, reference in files:
            if name not in self._files:
                self._files[name] = self._received(reference)
        try:
            arguments = protocol.decode(_with_paths(args, self._files.__getitem__))
            answer = protocol.encode(self._evaluator.serve(op, arguments))
        except AscendOptError as error:
            return {"error": protocol.encode_error(error)}, {}
        found = {path: Path(path).read_bytes() for path in _paths(answer)}
        for path in found:
            if Path(path).is_relative_to(self._evaluator.folder):  # what is compiled stays, for the next one
                Path(path).unlink()
        return {"value": answer}, found

    def _received(self, reference: Any) -> str:
        import ray

        assert self._evaluator is not None
        place = self._evaluator.folder / f"received-{len(self._files)}"
        place.write_bytes(ray.get(reference))
        return str(place)


def _with_paths(data: Any, change: Callable[[str], str]) -> Any:
    """Encoded data with the paths of its files changed."""
    if isinstance(data, (list, tuple)):
        return [_with_paths(one, change) for one in data]
    if not isinstance(data, dict):
        return data
    fields = {name: _with_paths(one, change) for name, one in data.items()}
    for name in _FILES.get(data.get("$", ""), ()):
        if fields[name] is not None:
            fields[name] = change(fields[name])
    return fields


def _paths(data: Any) -> list[str]:
    """The paths of the files that encoded data name, each once."""
    found: dict[str, str] = {}
    _with_paths(data, lambda path: found.setdefault(path, path))
    return list(found)
