"""A file is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ascendopt_tune.files import replacing, write_whole

WRITER = """
import sys
from pathlib import Path
from ascendopt_tune.files import write_whole
print("ready", flush=True)
while True:
    for letter in "ab":
        write_whole(Path(sys.argv[1]), letter * 100_000)
"""


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "deps.json"
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seen = set()
            while len(seen) < 2:
                seen.add(path.read_text() if path.exists() else "a" * 100_000)
            process.send_signal(signal.SIGKILL)
        seen.add(path.read_text())
        assert seen == {"a" * 100_000, "b" * 100_000}


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    write_whole(path, "old", durable=True)

    def fail(error: type[BaseException]) -> None:
        with replacing(path) as new:
            assert (new.parent, new.suffix) == (path.parent, path.suffix)
            new.write_text("half")
            raise error

    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            fail(error)
    with pytest.raises(FileNotFoundError) as gone:
        write_whole(tmp_path / "no folder" / "file", "text")
    assert gone.value.filename == str(tmp_path / "no folder" / "file")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.npz"]


def test_links_devices_and_permissions(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(path)
    mask = os.umask(0o027)
    try:
        write_whole(link, b"\xff")
    finally:
        os.umask(mask)
    assert link.is_symlink()
    assert path.read_bytes() == b"\xff"
    assert path.stat().st_mode & 0o777 == 0o640
    code = "from ascendopt_tune.files import *; write_whole(Path('/dev/stdout'), 'text')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "text"
