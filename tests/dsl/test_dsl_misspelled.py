"""What breaks a rule is told with file and line on the command line, too, and a misspelled function with its name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import ascendopt_tune.dsl as tl


@tl.kernel
def capped_kernel(x, y, n):
    first, last = tl.split(n, tl.program_id(0), tl.num_programs(0), unit=16)
    for at in range(first, last, 1024):
        count = min(1024, last - at)
        v = tl.load(x + at + tl.arange(0, count))
        tl.store(y + at + tl.arange(0, count), tl.tanhh(v))


@tl.host
def capped(x: tl.float16, y: tl.float16):
    capped_kernel[tl.cores(4)](x, y, x.numel)
"""


def test_the_command_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "capped.py"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "ascendopt_tune", "dsl", "check", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    text = re.sub(r"\s+", " ", done.stderr)
    assert f"error: {file}:10: " in text
    assert "Did you mean 'tanh'?" in text
