"""Kills processes of a command at random moments, and says what has to be true afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascendopt_tune.deploy import upkeep
from ascendopt_tune.search.journal import read_journal
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.store.scratch import Scratch

_PATIENCE_S = 300.0  # a machine may be busy
_COMPILERS = ("g++", "cc1plus", "as", "ld", "collect2", "c++", "ccache")


def tree(pid: int) -> list[int]:
    """The living descendants of a process, and itself first."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if after_name[0] != "Z":
            children.setdefault(int(after_name[1]), []).append(int(folder.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def marked(root: Path) -> list[int]:
    """Living processes that were started with ``root`` as their cache folder, or work in or below it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            where = os.readlink(folder / "cwd")
        except OSError:
            continue
        mark = f"ASCENDOPT_CACHE_DIR={root / 'cache'}".encode()
        if int(folder.name) != os.getpid() and (mark in environment or Path(where).is_relative_to(root)):
            found.append(int(folder.name))
    return found


@dataclass
class Battle:
    """Runs one command over and over in a folder of its own, kills what it started, and checks what is left.

    ``command``: arguments of ``ascendopt-tune`` that end with ``--json``. ``result``: of its document, by name, what
    has to be the same however often it was killed; None for what this document doesn't have. ``rng`` decides about
    moments and victims.
    """

    root: Path
    command: list[str]
    result: Callable[[dict[str, Any]], dict[str, Any]]
    rng: random.Random
    prepared: Path | None = None  # a build cache to begin with
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.cache, self.tmp = self.root / "cache", self.root / "tmp"
        for folder in (self.cache, self.tmp):
            folder.mkdir(parents=True)
        if self.prepared is not None:
            shutil.copytree(self.prepared, self.cache / "build")
        self._expected = self._whole()
        if self.prepared is None:
            self._whole()  # again, for the time it takes when all is compiled

    # -- the story ----------------------------------------------------------------------------------------------------

    def fight(self, kills: int) -> None:
        """Kills so often; every run that is over is compared with the one that was left alone."""
        on_children, compilers = 0, False
        while self._kills() < kills:
            process = self._start()
            window = self._seconds
            if self.rng.random() < 0.5:
                self._one_more_trial(process)
                window /= 4  # most of a run is over by then
            while self._kills() < kills and process.poll() is None:
                try:
                    process.wait(self.rng.uniform(0.0, window))
                except subprocess.TimeoutExpired:
                    what = self._kill_one(process)
                    if what == "main":
                        break
                    window = self._seconds / 3
                    on_children += what != "gone"
                    compilers |= what in _COMPILERS
            code = process.wait(_PATIENCE_S)
            self._nothing_lost()
            self._nobody_left()
            self._sound()
            if code >= 0:
                self._over(code, on_children, compilers)
                on_children, compilers = 0, False
        code = self._start().wait(_PATIENCE_S)
        self._nothing_lost()
        self._over(code, on_children, compilers)
        self._nothing_stays()

    # -- parts --------------------------------------------------------------------------------------------------------

    def _kills(self) -> int:
        return self.counts["main"] + self.counts["child"]

    def _one_more_trial(self, process: subprocess.Popen[bytes]) -> None:
        """Waits until a trial is journaled that wasn't before, so that half of the kills have something to lose."""
        before = self._journaled()
        while process.poll() is None and self._journaled() <= before:
            time.sleep(0.02)

    def _journaled(self) -> int:
        """Lines of all journals beyond the two that come before the first trial."""
        lines = 0
        for path in (self.cache / "journals").glob("*.jsonl"):
            with contextlib.suppress(FileNotFoundError):  # its run is over
                lines += max(0, path.read_bytes().count(b"\n") - 2)
        return lines

    def _start(self) -> subprocess.Popen[bytes]:
        places = {"CACHE_DIR": self.cache, "BUILD_DIR": self.cache / "build"}
        env = {**os.environ, **{f"ASCENDOPT_{k}": str(v) for k, v in places.items()}, "TMPDIR": str(self.tmp)}
        with open(self.root / "out", "wb") as out, open(self.root / "err", "wb") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "ascendopt_tune", *self.command], stdout=out, stderr=err, env=env, cwd=self.root
            )

    def _whole(self) -> dict[str, Any]:
        began = time.monotonic()
        assert self._start().wait(_PATIENCE_S) == 0, self._said()
        self._seconds = time.monotonic() - began
        found = self.result(json.loads((self.root / "out").read_text()))
        self._forget()
        return found

    def _kill_one(self, process: subprocess.Popen[bytes]) -> str:
        """SIGKILL to the command itself or to one of those below it; what it was: ``main``, or the child's name."""
        below = tree(process.pid)[1:]
        main = not below or self.rng.random() < 0.3
        pid = process.pid if main else self.rng.choice(below)
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            os.kill(pid, signal.SIGKILL)
        except (OSError, ProcessLookupError):
            return "gone"
        self.counts["main" if main else "child"] += 1
        return "main" if main else name

    def _said(self) -> str:
        return (self.root / "err").read_text(errors="replace")

    def _nothing_lost(self) -> None:
        """Every trial that was announced is in a journal, unless the run is over and its result in the store."""
        journals = list((self.cache / "journals").glob("*.jsonl"))
        announced = [line for line in self._said().splitlines() if line.startswith("evaluation ")]
        if announced and "checking the best pair" not in self._said():
            (journal,) = journals
            told = int(announced[-1].split()[1].partition("/")[0])
            assert len(read_journal(journal).outcomes) >= told
            self.counts["trials found again"] += told
        for journal in journals:
            read_journal(journal)  # raises if a line but the last is torn

    def _nobody_left(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while left := marked(self.root):
            assert time.monotonic() < deadline, [Path(f"/proc/{p}/cmdline").read_bytes() for p in left]
            time.sleep(0.05)

    def _sound(self) -> None:
        store = Cache(self.cache, ())
        assert list(upkeep.verify(store)) == []
        assert not (self.cache / "quarantine").exists()
        store.close()

    def _over(self, code: int, on_children: int, compilers: bool) -> None:
        """The command has ended by itself: with the result, or, if somebody killed too much of it, saying so."""
        said = self._said()
        assert "Traceback" not in said, said
        found = self.result(json.loads((self.root / "out").read_text())) if code == 0 else {}
        if found and all(value in (None, self._expected[name]) for name, value in found.items()):
            self.counts["same result"] += 1
        else:  # a candidate is given up when two kills hit it, or one its compiler
            self.counts["candidate given up"] += 1
            assert compilers or on_children >= 2, (code, found, self._expected, said)
            assert code == 0 or "error: " in said or '"failed"' in (self.root / "out").read_text(), (code, said)
        self._forget()

    def _forget(self) -> None:
        """A new beginning: without results, and without one of the programs that were compiled."""
        for name in ("entries", "index", "journals"):
            shutil.rmtree(self.cache / name, ignore_errors=True)
        shutil.rmtree(self.root / "bundle", ignore_errors=True)
        built = sorted(p for p in (self.cache / "build").rglob("*") if p.suffix in (".o", ".so"))
        if built and self.rng.random() < 0.3:
            self.rng.choice(built).unlink()

    def _nothing_stays(self) -> None:
        """What processes that were killed left in temporary folders goes with the next one that uses them."""
        for folder in self.tmp.iterdir():
            os.utime(folder, (time.time() - 7200,) * 2)
        self.counts["folders swept"] += len(list(self.tmp.iterdir()))
        for prefix in ("ascendopt-evaluation-", "ascendopt-bundle-"):
            Scratch(prefix=prefix, parent=self.tmp).close()
        assert list(self.tmp.iterdir()) == []
