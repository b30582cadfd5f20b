"""The process that tunes while another one serves: ``python -m ascendopt_tune.service.background TARGET``.

One line of JSON per request on stdin, one per change of a request's state on stdout. What is asked for most, in time
(calls so far, times an estimate of a call's duration), comes first. A request whose case another process has claimed
waits for that one's result; one that the cache or its disk refused is tried again later. The process ends when stdin
does, so with the one that serves, however that ends; finished evaluations are in the journal by then, and the next run
goes on from there.

It runs at the lowest scheduling priority, evaluates one candidate at a time, and sleeps between evaluations so that it
takes no more than its share of one processor core.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from ..build.toolkit import Toolkit, find
from ..errors import AscendOptError, CacheError
from ..evaluate import protocol
from ..nouns.run_options import RunOptions
from ..settings import settings
from ..sources.registry import LazyReference
from ..store.cache import Cache
from .described import CallDescription
from .tuning import Request, fulfil

_LOOK_AGAIN_S = 0.5  # how soon a case that another process has claimed is looked at again
_TRY_AGAIN_S = 60.0  # when the cache or its disk refused, which somebody may have mended by then
_EXIT_S = 5.0  # how long ending an evaluation in good order may take


def request_to_json(request: Request) -> dict[str, Any]:
    """Inverse of :func:`request_from_json`. Raises TypeError for what can't be sent to another process."""
    operator = request.operator
    reference = operator.reference
    return {
        "operator": protocol.encode(operator),
        "reference": str(reference.file) if isinstance(reference, LazyReference) else None,
        "values": protocol.encode(request.call.values),
        "written": list(request.call.written),
        "results": protocol.encode(request.call.results),
        "rules": {name: list(rules) for name, rules in request.rules.items()},
        "options": protocol.encode(asdict(request.options)),
        "search": request.search,
        "reuse": request.reuse,
    }


def request_from_json(document: dict[str, Any]) -> Request:
    operator = protocol.decode(document["operator"])
    if document["reference"]:
        operator = replace(operator, reference=LazyReference(Path(document["reference"])))
    rules = {
        name: tuple(tuple(rule) if isinstance(rule, list) else rule for rule in given)
        for name, given in document["rules"].items()
    }
    return Request(
        operator,
        CallDescription(
            protocol.decode(document["values"]), tuple(document["written"]), protocol.decode(document["results"])
        ),
        RunOptions(**protocol.decode(document["options"])),
        rules,
        search=document["search"],
        reuse=document["reuse"],
    )


@dataclass
class _Waiting:
    request: Request
    weight: float  # us of all calls so far, estimated
    since: float  # time.monotonic() from which on it is worth a try


class BackgroundWorker:
    """Takes requests from ``lines`` until they end, and answers on ``answers``."""

    def __init__(self, lines: TextIO, answers: TextIO, toolkit: Toolkit, store: Cache, share: float) -> None:
        self._lines, self._answers = lines, answers
        self._toolkit, self._store, self._share = toolkit, store, share
        self._queue: dict[str, _Waiting] = {}
        self._changed = threading.Condition()
        self._began = 0.0

    def read(self) -> None:
        """Until stdin ends: then the process does, whatever it is at."""
        self.take(self._lines)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_EXIT_S)
        os._exit(0)

    def take(self, lines: Iterable[str]) -> None:
        """Adds requests to the queue, or to the weight of those that are in it."""
        for line in lines:
            message = json.loads(line)
            name = message["id"]
            with self._changed:
                if "drop" in message:
                    self._queue.pop(name, None)
                elif name in self._queue:
                    self._queue[name].weight = message["weight"]
                elif "request" in message:
                    self._queue[name] = _Waiting(request_from_json(message["request"]), message["weight"], 0.0)
                self._changed.notify()

    def run(self) -> None:
        while True:
            name, request = self._next()
            self._say(name, "tuning" if request.search else "reusing")
            try:
                with self._paced():
                    entry, ended = fulfil(
                        replace(request, options=replace(request.options, workers=1)),
                        self._store,
                        self._toolkit,
                        wait=False,
                        progress=lambda progress: self._pause(),
                    )
            except (CacheError, OSError) as error:  # the machine's trouble, not the case's: a full disk, mostly
                self._put_off(name, _TRY_AGAIN_S, "waiting", str(error))
                continue
            except AscendOptError as error:
                self._finish(name, "failed", str(error))
                continue
            except Exception as error:
                self._finish(name, "failed", f"{type(error).__name__}: {error}")
                continue
            if entry is not None:
                self._finish(name, "done")
            elif ended:
                self._finish(name, "failed", "no neighbour's tiling program is legal and faster here.")
            else:
                self._put_off(name, _LOOK_AGAIN_S, "elsewhere")

    def _next(self) -> tuple[str, Request]:
        """The request with the most weight; waits for one."""
        with self._changed:
            while True:
                now = time.monotonic()
                ready = [(w.weight, name) for name, w in self._queue.items() if w.since <= now]
                if ready:
                    name = max(ready)[1]
                    return name, self._queue[name].request
                self._changed.wait(_LOOK_AGAIN_S if self._queue else None)

    def _finish(self, name: str, state: str, reason: str = "") -> None:
        with self._changed:
            self._queue.pop(name, None)  # which may have been dropped meanwhile
        self._say(name, state, reason)

    def _put_off(self, name: str, pause_s: float, state: str, reason: str = "") -> None:
        with self._changed:
            if name in self._queue:
                self._queue[name].since = time.monotonic() + pause_s
        self._say(name, state, reason)

    def _say(self, name: str, state: str, reason: str = "") -> None:
        print(json.dumps({"id": name, "state": state, "reason": reason}), file=self._answers, flush=True)

    @contextlib.contextmanager
    def _paced(self) -> Iterator[None]:
        self._began = time.monotonic()
        try:
            yield
        finally:
            self._pause()

    def _pause(self) -> None:
        """Sleeps as long as the share asks for after what was just done."""
        worked = time.monotonic() - self._began
        time.sleep(worked * (1 / self._share - 1))
        self._began = time.monotonic()


def main() -> None:
    # What prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        os.nice(19)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    config = settings()
    worker = BackgroundWorker(sys.stdin, answers, find(sys.argv[1]), Cache(), config.lazy_share)
    threading.Thread(target=worker.read, daemon=True).start()
    worker.run()


if __name__ == "__main__":
    main()
