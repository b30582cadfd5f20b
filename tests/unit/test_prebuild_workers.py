"""Worker processes of a prebuild that are killed while they have nothing to do."""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import pytest

from ascendopt_tune.deploy import prebuild
from ascendopt_tune.deploy.manifest import Wish


class Once(Connection):
    """Its other end is gone as soon as it has answered."""

    used = False

    def send(self, obj: Any) -> None:
        if self.used:
            raise BrokenPipeError
        self.used = True
        super().send(obj)


class Mortal:
    """Stands for a worker: answers one wish and is gone; the first of all is gone before it is asked."""

    made = 0

    def __init__(self, cache_dir: Path) -> None:
        ours, there = multiprocessing.Pipe()
        self.pipe = Once(os.dup(ours.fileno()))
        ours.close()
        Mortal.made += 1
        if Mortal.made == 1:
            there.close()
        else:
            threading.Thread(target=self._serve, args=(there,), daemon=True).start()

    @staticmethod
    def _serve(pipe: Connection) -> None:
        pipe.send_bytes(b'{"did": "%s"}' % pipe.recv().encode())

    def end(self) -> None:
        self.pipe.close()


def test_a_worker_that_died_idle_costs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prebuild, "_Worker", Mortal)
    wishes = cast("list[Wish]", ["a", "b", "c", "d"])
    seen: list[Any] = list(prebuild._in_processes(tmp_path, 1)(wishes, lambda wish: None))
    assert seen == [(w, {"did": w}) for w in wishes]
    assert Mortal.made == 1 + len(wishes)  # none served two
