"""Samples of asc-devkit as they are, host and kernel: ``<<<>>>`` is a call, their own scripts make inputs and judge."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from test_cube import device

from ascendopt_tune.build import toolkit

HERE = Path(__file__).resolve().parent
EXAMPLES = "examples/01_simd_cpp_api"
LAUNCH = re.compile(
    r"\b(?P<kernel>\w+)(?:\s*<(?P<values>[\w\s,]+)>)?\s*<<<(?!>>>)(?P<blocks>[^;{}]*?),[^,;{}]*,\s*(?P<stream>\w+)\s*>>>\s*"
    r"\((?P<given>[^;]*?)\);"
)
#: The host's, which binaries of kernels have nothing of.
REGISTRATION = re.compile(r"^REGISTER_TILING_DATA_CLASS\(.*?\);?$", re.MULTILINE)
CONSTANT = re.compile(r"constexpr\s+(?:static\s+)?u?int\d+_t\s+(\w+)\s*=\s*(\d+);")
#: Runs a script of numpy's with the same random numbers every time.
SEEDED = """import numpy, runpy, sys
numpy.random.seed(7)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")"""
HEAD = "#define main aot_host_main\n#define AOT_HOST_LAUNCH(...) ((void)0)\n#include <string>\n#include <vector>\n"


@dataclass(frozen=True)
class Sample:
    """``scenario``: its SCENARIO_NUM; ``make``, ``check``: for its scripts. ``hazards``: what it forgot to order.

    ``defines``: macros of its build files.
    ``values``: of template parameters of the host function that launches.
    ``inputs``: writes ``input/`` and ``output/`` in a folder, where its own script needs what isn't here.
    """

    folder: str
    scenario: int = 0
    make: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    inputs: Callable[[Path], None] | None = None

    @property
    def name(self) -> str:
        return self.folder.rsplit("/", 1)[1] + (f"-{self.scenario}" if self.scenario else "")


def instances(text: str, given: Sequence[tuple[str, str]] = ()) -> str:
    """Functions that call the templates which are launched, with ``given`` and the constants of its own host code."""
    constants, added = {**dict(CONSTANT.findall(text)), **dict(given)}, ""
    for launch in LAUNCH.finditer(text):
        if launch["values"] is None:
            continue
        cores = re.search(rf"(__cube__|__vector__|__mix__\([^)]*\)) void {launch['kernel']}\b", text)
        assert cores is not None
        values = ", ".join(constants.get(v.strip(), v.strip()) for v in launch["values"].split(","))
        names = [f"p{i}" for i in range(launch["given"].count(",") + 1)]
        added += f'extern "C" __global__ {cores[1]} void aot_{launch["kernel"]}('
        added += ", ".join(f"GM_ADDR {n}" for n in names) + ") { "
        added += f"{launch['kernel']}<{values}>({', '.join(names)}); }}\n"
    return added


def _call(launch: re.Match[str]) -> str:
    name = ("aot_" if launch["values"] else "") + launch["kernel"]
    made = f'DirectLaunch{{"{name}", static_cast<uint32_t>({launch["blocks"]}), {launch["stream"]}}}'
    return f"({made})({launch['given']});"


def build(
    folder: Path,
    work: Path,
    defines: tuple[str, ...] = (),
    more: Sequence[str] = (),
    values: Sequence[tuple[str, str]] = (),
) -> None:
    """The kernels as a binary, with ``more`` options, and the program around them (direct_program.h)."""
    source, prefix = next(folder.glob("*.asc")), toolkit.virtual().prefix
    text = source.read_text()
    options = ["--cce-auto-sync=off", "--npu-arch=dav-2201", f"-I{folder}", *defines, *more]
    kernels = HEAD + REGISTRATION.sub("", LAUNCH.sub("AOT_HOST_LAUNCH();", text)) + "\n" + instances(text, values)
    (work / "kernels.o").write_bytes(device().compile(kernels, source.name, options))
    head = '#include "direct_program.h"\n#include "kernel_operator.h"\n'
    (work / "program.cpp").write_text(head + LAUNCH.sub(_call, text))
    command = ["g++", "-std=c++17", "-O0", "-w", "-DTILING_KEY_VAR=0", "-DVNPU_AUTO_SYNC=0", *defines,
               f"-I{prefix}/include", f"-I{folder}", f"-I{HERE}", str(work / "program.cpp"), f"-L{prefix}/lib64",
               "-lascendcl", "-lvnpu", "-lvnpu_host", f"-Wl,-rpath,{prefix}/lib64",
               "-o", str(work / "program")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def run(sample: Sample, checkout: Path, work: Path, more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Builds (with ``more`` options), feeds, runs and checks the sample; what the virtual NPU tells of its launches.

    Raises:
        AssertionError: the sample's own check doesn't pass.
    """
    folder = checkout / EXAMPLES / sample.folder
    for name in ("input", "output"):
        (work / name).mkdir()
    defines = tuple(f"-D{name}={sample.scenario}" for name in ("SCENARIO_NUM", "SCENARIO") if sample.scenario)
    build(folder, work, (*defines, *sample.defines), more, sample.values)
    if sample.inputs is not None:
        sample.inputs(work)
    else:
        fill = [sys.executable, "-c", SEEDED, str(folder / "scripts/gen_data.py"), *sample.make]
        subprocess.run(fill, cwd=work, check=True, capture_output=True)
    environment = {**os.environ, "AOT_BINARY": str(work / "kernels.o"), "AOT_REPORTS": str(work / "reports")}
    done = subprocess.run([str(work / "program")], cwd=work, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    verify = next((folder / "scripts").glob("verify*.py"), None)
    if verify is None:  # the program judges itself
        assert "test pass!" in done.stdout, done.stdout[-400:]
        return [json.loads(line) for line in (work / "reports").read_text().splitlines()]
    check = sample.check or ("output/output.bin", "output/golden.bin")
    sizes = [(work / name).stat().st_size for name in check if name.endswith(".bin")]
    assert sizes[::2] == sizes[1::2]  # what came out, what has to
    command = [sys.executable, str(verify), *check]
    told = subprocess.run(command, cwd=work, capture_output=True, text=True)
    assert "pass" in told.stdout.lower(), told.stdout[-400:]
    return [json.loads(line) for line in (work / "reports").read_text().splitlines()]
