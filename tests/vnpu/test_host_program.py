"""A C++ host program written for CANN compiles against the toolkit's prefix and runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ascendopt_tune.build.toolkit import host_compiler, virtual


def test_host_program(tmp_path: Path) -> None:
    toolkit = virtual()
    program = tmp_path / "host_program"
    build = subprocess.run(
        [host_compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{toolkit.prefix}/include",
         str(Path(__file__).with_name("host_program.cpp")), f"-L{toolkit.prefix}/lib64", "-lascendcl", "-lacl_rtc",
         f"-Wl,-rpath,{toolkit.prefix}/lib64", "-o", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert build.returncode == 0, build.stderr
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "all checks passed" in run.stdout
