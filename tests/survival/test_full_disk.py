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
    """What runs where the file system is mounted: ``argv`` is its folder and the operator's. Prints what was seen."""
    disk, operator = Path(argv[0]), Path(argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150m", "tmpfs", str(disk)], check=True)
    cache = disk / "cache"
    env = {**os.environ, "ASCENDOPT_CACHE_DIR": str(cache), "ASCENDOPT_BUILD_DIR": str(cache / "build")}

    def run(*args: str) -> list[object]:
        done = subprocess.run(args, capture_output=True, text=True, check=False, env=env)
        return [done.returncode, done.stdout, done.stderr]

    process = subprocess.Popen(command(operator), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith("evaluation 1"):
            fill(disk / "filler", 40_000)
    seen: dict[str, object] = {"full": [process.wait(), process.stdout.read(), said]}
    (disk / "filler").unlink()
    seen["journal"] = [path.read_text() for path in (cache / "journals").iterdir()]
    seen["left"] = [str(path) for name in ("entries", "tmp", "quarantine") for path in (cache / name).glob("*")]
    seen["again"] = run(*command(operator), "--resume")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    seen["read-only"] = run(*command(operator), "--retune")
    seen["verify"] = run(sys.executable, "-m", "ascendopt_tune", "cache", "verify")
    print(json.dumps(seen))


def fill(file: Path, leave: int) -> None:
    """Takes all the room there is but ``leave`` bytes."""
    with open(file, "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(1 << 16))
        except OSError:
            pass
    os.truncate(file, file.stat().st_size - leave)


def test_a_disk_that_fills_up_and_one_that_cannot_be_written(operator: Path, tmp_path: Path) -> None:
    """The run ends with an error in words, no candidate is blamed, and with room again it goes on."""
    (disk := tmp_path / "disk").mkdir()
    done = subprocess.run(
        [*ALONE, sys.executable, __file__, str(disk), str(operator)], capture_output=True, text=True, check=False
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
    inside(sys.argv[1:])
