"""Who tunes a case holds its lock, alone, and no longer than it lives."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ascendopt_tune.store.claim import FOLDER, claim, remove_unclaimed

HOLDER = """
import sys, time
from pathlib import Path
from ascendopt_tune.store.claim import claim
with claim(Path(sys.argv[1]), "key", True) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def test_it_is_held_by_one_and_dies_with_it(tmp_path: Path) -> None:
    file = tmp_path / FOLDER / "key"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "True\n"
            with claim(tmp_path, "key", False) as mine:
                assert not mine
            with claim(tmp_path, "other", False) as mine:
                assert mine
            remove_unclaimed(file)
            assert file.exists()
        finally:
            holder.send_signal(signal.SIGKILL)
    assert file.exists()
    with claim(tmp_path, "key", True) as mine:
        assert mine
    assert list(file.parent.iterdir()) == []
    file.touch()
    remove_unclaimed(file)
    remove_unclaimed(file)
    assert not file.exists()


def test_where_nobody_can_share_it_is_had_by_all(tmp_path: Path) -> None:
    with claim(Path("/proc/nothing"), "key", False) as mine:
        assert mine


def test_a_fork_does_not_keep_it(tmp_path: Path) -> None:
    with claim(tmp_path, "key", True):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
    try:
        with claim(tmp_path, "key", False) as mine:
            assert mine
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def count(root: Path, seed: int) -> None:
    """Adds up in a file, which comes out right if nobody does so at the same time."""
    rng, file = random.Random(seed), root / "count"
    added = 0
    while added < 100:
        with claim(root, "key", rng.random() < 0.5) as mine:
            if mine:
                number = int(file.read_text())
                if rng.random() < 0.2:
                    time.sleep(0)
                file.write_text(str(number + 1))
                added += 1
        if rng.random() < 0.1:
            remove_unclaimed(root / FOLDER / "key")


def test_eight_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    crowd = [multiprocessing.get_context("fork").Process(target=count, args=(tmp_path, seed)) for seed in range(8)]
    for process in crowd:
        process.start()
    for process in crowd:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "count").read_text() == "800"
