"""A disk that is really full in the middle of a run, and one that can't be written: a file system of the test's own.

Mounting one takes a name space of one's own, which some containers don't allow; then the test is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOM = "2g"  # at most: nothing is taken that isn't written
ALONE = ("unshare", "--map-root-user", "--mount")


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not may_mount(), reason="no mounting in a name space of one's own here")


def command(operator: Path) -> list[str]:
    call = ["--input", "x=float32[8,32]", "--input", "y=float32[8,32]", "--target", "virtual"]
    return [
        sys.executable,
        "-m",
        "ascendopt_tune",
        "tune",
        str(operator),
        *call,
        "--budget",
        "4",
        "--seed",
        "3",
        "--json",
    ]


def inside(argv: list[str]) -> None:
    """What runs where the file system is mounted: ``argv`` is its folder, the operator's, and how many bytes are left.

    Prints what was seen.
    """
    disk, operator, leave = Path(argv[0]), Path(argv[1]), argv[2]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", str(disk)], check=True)
    cache = disk / "cache"
    env = {**os.environ, "ASCENDOPT_CACHE_DIR": str(cache), "ASCENDOPT_BUILD_DIR": str(cache / "build")}

    def run(*args: str) -> list[object]:
        done = subprocess.run(args, capture_output=True, text=True, check=False, env=env)
        return [done.returncode, done.stdout, done.stderr]

    tune = command(operator)
    seen: dict[str, object] = {"full": run(sys.executable, __file__, "filling", str(disk), leave, *tune[3:])}
    subprocess.run(["mount", "-o", f"remount,size={_ROOM}", str(disk)], check=True)
    seen["journal"] = [path.read_text() for path in (cache / "journals").iterdir()]
    seen["left"] = [str(path) for name in ("entries", "tmp", "quarantine") for path in (cache / name).glob("*")]
    seen["again"] = run(*tune, "--resume")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    seen["read-only"] = run(*tune, "--retune")
    seen["verify"] = run(sys.executable, "-m", "ascendopt_tune", "cache", "verify")
    print(json.dumps(seen))


def filling(argv: list[str]) -> None:
    """The command line, whose disk has no more than ``argv[1]`` bytes left when the first evaluation has been told.

    The disk is made smaller instead of being filled: that takes no memory, and no time in which the run goes on.
    """
    disk, leave = Path(argv[0]), int(argv[1])
    sys.argv = ["ascendopt-tune", *argv[2:]]
    from ascendopt_tune.cli import main, progress
    from ascendopt_tune.search.engine import Progress

    update = progress.Display.update

    def told(self: progress.Display, event: Progress) -> None:
        update(self, event)
        if event.n == 1:
            found = os.statvfs(disk)
            size = (found.f_blocks - found.f_bfree) * found.f_frsize + leave
            subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)

    progress.Display.update = told  # type: ignore[method-assign]
    main()


@pytest.mark.parametrize("leave", [pytest.param(0, marks=pytest.mark.battery), 40_000])
def test_a_disk_that_fills_up_and_one_that_cannot_be_written(operator: Path, tmp_path: Path, leave: int) -> None:
    """The run ends with an error in words, no candidate is blamed, and with room again it goes on."""
    (disk := tmp_path / "disk").mkdir()
    done = subprocess.run(
        [*ALONE, sys.executable, __file__, "inside", str(disk), str(operator), str(leave)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    code, out, err = seen["full"]
    assert (code, "Traceback" in err) == (2, False), err
    assert "is full: 0 MiB free" in err.splitlines()[-1] or "No space left on device. Free s" in err.splitlines()[-1]
    assert str(disk) in json.loads(out)["error"]["message"]
    assert seen["left"] == []
    (journal,) = seen["journal"]
    assert "CompileFailed" not in journal
    told = sum(line.startswith("evaluation ") for line in err.splitlines())
    code, out, err = seen["again"]
    assert (code, f"going on after {told} evaluations" in err) == (0, True), err
    assert {trial["outcome"] for trial in json.loads(out)["history"]} == {"Timed"}
    code, _, err = seen["read-only"]
    assert (code, err.splitlines()[-1].startswith(f"error: the cache folder {disk}")) == (2, True), err
    assert "Read-only file system" in err
    assert seen["verify"][0] == 0


if __name__ == "__main__":
    {"inside": inside, "filling": filling}[sys.argv[1]](sys.argv[2:])
