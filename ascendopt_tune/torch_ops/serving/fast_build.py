"""Compiles the fast path's library, beside who serves.

``python -m ascendopt_tune.torch_ops.serving.fast_build COMMAND...`` is how the process that does it is started.

One process compiles, however many want it, and renames the finished library into place. What the compiler says stays
beside it; if it fails, that is all there is, and nobody tries again for a day.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ToolchainError
from ...files import locked, write_whole
from ...store.scratch import Scratch

_HEEDED_S = 24 * 3600.0  # how long a failure keeps others from trying: memory or disk may have been short


def headers(torch: Path, torch_npu: Path) -> list[Path]:
    """Where the headers lie that the fast path needs, of packages in these folders and of Python.

    Raises ToolchainError if some are missing.
    """
    found = [torch / "include", torch / "include" / "torch" / "csrc" / "api" / "include"]
    found += [torch_npu / "include", torch_npu / "include" / "third_party" / "acl" / "inc"]
    found.append(Path(sysconfig.get_path("include")))
    for needed in (found[0] / "ATen", found[2] / "torch_npu", found[4] / "Python.h"):
        if not needed.exists():
            raise ToolchainError(
                f"the fast path can't be compiled: {needed} is missing.",
                "Install Python's headers (Debian: apt-get install python3-dev), or set ASCENDOPT_FAST_PATH=0.",
            )
    return found


@dataclass(frozen=True)
class Build:
    """``command`` makes ``file`` when ``-o FILE`` is added. ``file``'s name says what it is made from."""

    command: tuple[str, ...]
    file: Path

    @property
    def said(self) -> Path:
        """What the compiler said."""
        return self.file.with_suffix(".log")

    def failure(self) -> str | None:
        """Why there is no library, if compiling it failed lately."""
        if self.file.exists():
            return None
        try:
            if abs(time.time() - self.said.stat().st_mtime) > _HEEDED_S:
                return None
            return self.said.read_text(encoding="utf-8").strip()
        except OSError:
            return None

    def run(self, wait: bool) -> None:
        """Compiles, unless the library is there. ``wait``: for another process that compiles; else leaves it to that.

        Raises:
            ToolchainError: the compiler failed, now or lately.
            OSError: the folder can't be written, or the compiler can't be run.
        """
        if self.file.exists():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.file.with_suffix(".lock"), wait=wait))
            except BlockingIOError:
                return
            if not self.file.exists() and self.failure() is None:
                self._compile()
        if (reason := self.failure()) is not None:
            raise ToolchainError(
                f"the fast path can't be compiled: {reason}",
                f"Mend that and delete {self.said}, or set ASCENDOPT_FAST_PATH=0.",
            )

    def in_background(self) -> subprocess.Popen[bytes]:
        """Has a process of its own compile, which ends when that is done, whether or not this one still runs.

        Raises OSError if it can't be started.
        """
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(self.file), *self.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _compile(self) -> None:
        with Scratch(prefix="compiling-", parent=self.file.parent) as folder:
            made = folder / self.file.name
            done = subprocess.run(
                [*self.command, "-o", str(made)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
            text = done.stderr.strip()[:4000]
            if done.returncode:
                text = f"{self.command[0]} failed with exit code {done.returncode}.\n{text}"
            write_whole(self.said, text + "\n" if text else "")
            if not done.returncode:
                os.replace(made, self.file)


def main(arguments: Sequence[str]) -> None:
    with contextlib.suppress(OSError):
        os.nice(19)
    try:
        Build(tuple(arguments[1:]), Path(arguments[0])).run(wait=False)
    except ToolchainError:
        pass  # whoever looks for the library finds out
    except OSError:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
