"""What a newcomer does in the first hour, from README and the tutorial it leads to: zero to tuned to served.

    python tests/first_hour.py               # `make first-hour`: a new environment, README's install command
    python tests/first_hour.py --installed   # with the package on PYTHONPATH; ASCENDOPT_BUDGET makes it shorter

In an empty folder, with an empty cache, the pages' own blocks are run as they stand there: an operator that the
registry doesn't have, and a model that no example has. Prints each step with its seconds, and raises where a newcomer
would be stuck.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from doc_blocks import ROOT, blocks, run_blocks

README = ROOT / "README.md"


class Newcomer:
    """A folder, and a shell in it. ``python`` and ``ascendopt-tune`` are those of ``bin``."""

    def __init__(self, home: Path, bin: Path) -> None:
        self.work = home / "work"
        self.work.mkdir()
        path = f"{bin}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "ASCENDOPT_CACHE_DIR": str(home / "cache")}

    def types(self, text: str, **more: str) -> str:
        """Runs ``text`` in a shell; what it prints. Raises SystemExit with what went wrong."""
        began = time.monotonic()
        done = subprocess.run(
            ["sh", "-euc", text],
            cwd=self.work, env={**self.environment, **more}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        print(f"{time.monotonic() - began:6.1f} s  {' && '.join(text.strip().splitlines())}", flush=True)
        if done.returncode:
            raise SystemExit(f"{text}\n{done.stdout}\n{done.stderr}")
        return done.stdout


def installed(home: Path) -> Path:
    """An environment in which README's install command with torch was run; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    commands = next(b.text for b in blocks(README) if "pip install" in b.text)
    (with_torch,) = [line for line in commands.splitlines() if "[torch]" in line]
    environment = {**os.environ, "PATH": f"{home / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", "-euc", with_torch], cwd=ROOT, env=environment, check=True)
    return home / "venv/bin"


def linked(home: Path) -> Path:
    """Programs that use the interpreter and the package at hand."""
    bin = home / "bin"
    bin.mkdir()
    for name, what in ("python", ""), ("ascendopt-tune", " -m ascendopt_tune"):
        (bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{what} "$@"\n')
        (bin / name).chmod(0o755)
    return bin


def first_hour(home: Path, bin: Path) -> None:
    """The tutorial from its first block to its last, then without the tuner."""
    someone = Newcomer(home, bin)
    assert "docs/tutorial.md" in README.read_text(), "README leads to the tutorial"
    said = []
    for block in run_blocks("docs/tutorial.md"):
        if block.what:
            (someone.work / block.what).write_text(block.text)
        else:
            said.append(someone.types(block.text))
    text = "\n".join(said)
    for promised in ("no rule is broken", "no hazard", "speedup ", "answered from the cache", "(64, 4096)"):
        assert promised in text, f"{promised!r} is not among what the tutorial's commands print"
    served = re.search(r"^softcap: (\d+) hits.*?(\d+) kept, \d+ misses, 0 tuned, 0 fallbacks", said[-1], re.MULTILINE)
    assert served is not None, said[-1]
    assert int(served[1]) + int(served[2]) >= 2, said[-1]
    assert (someone.work / "softcap.html").stat().st_size > 10_000
    assert "(64, 4096)" in someone.types("python serve.py", ASCENDOPT_DISABLE="1")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        first_hour(home, linked(home) if "--installed" in sys.argv else installed(home))
    print("zero to tuned to served")


if __name__ == "__main__":
    main()
