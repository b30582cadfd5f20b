"""Programs of catlass as they are: host program and kernels of one, made of its templates, on the virtual NPU.

The host program is compiled first. It says which kernels it may launch (catlass_program.h), and each becomes an entry
of the kernels' translation unit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from test_cube import device

from ascendopt_tune.build import toolkit

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parents[1] / "ascendopt_tune" / "vnpu" / "runtime"
LAUNCH = re.compile(
    r"(?:Catlass::)?\b(\w+)(?:<(\w+)>)?\s*<<<\s*([^<>;{},]*?)\s*,[^,;{}]*,\s*(\w+)\s*>>>\s*\(",
)
DEFINES = ["-DCATLASS_ARCH=2201", "-DL2_CACHE_HINT"]
FILTER = """#include <iostream>
#include <iterator>
#include "rtc_aggregates.h"
#include "rtc_specialize.h"
int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << vnpu_rtc::with_aggregates(vnpu_rtc::with_partial_specializations(text));
}
"""


def _run(command: list[str], work: Path, given: str | None = None, **environment: str) -> str:
    done = subprocess.run(command, input=given, env={**os.environ, **environment}, cwd=work, capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, (done.stderr or done.stdout)[-3000:]
    return done.stdout


@cache
def specializer(folder: Path) -> Path:
    """The run-time compiler's own step for g++ before 14, as a program: host code needs it, too."""
    (folder / "filter.cpp").write_text(FILTER)
    parts = (RUNTIME / f"rtc_{part}.cpp" for part in ("aggregates", "specialize", "tokens"))
    sources = [folder / "filter.cpp", *parts]
    _run(["g++", "-std=c++17", "-O1", f"-I{RUNTIME}", *map(str, sources), "-o", str(folder / "filter")], folder)
    return folder / "filter"


def launched(text: str) -> str:
    """``text`` with every ``K<<<blocks, l2, stream>>>(arguments)`` as a call."""
    names = {m[1] for m in LAUNCH.finditer(text) if m[1] != "KernelAdapter"}

    def call(m: re.Match[str]) -> str:
        function = f"CatlassAdapter<{m[2]}>" if m[1] == "KernelAdapter" else f"Catlass_{m[1]}"
        return f"(CatlassLaunch<{function}>{{static_cast<uint32_t>({m[3]}), {m[4]}}})("

    tags = (f'struct Catlass_{n} {{ static std::string text() {{ return "{n}"; }} }};\n' for n in sorted(names))
    return "".join(tags) + LAUNCH.sub(call, text)


def split(types: str) -> list[str]:
    """The types of a list, at its outermost commas."""
    parts, depth = [""], 0
    for c in types:
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


class Program:
    """``example``: the folder of one; what is built lies in ``work``. ``standard``: of C++, as g++ needs it."""

    def __init__(self, example: Path, work: Path, tools: Path, standard: str) -> None:
        self.work, self.tools = work, tools
        self.source = next(example.glob("*.cpp"))
        self.text = self.source.read_text()
        catlass = example.parents[1] / "include"
        self.options = [*DEFINES, f"-std={standard}", f"-I{catlass}", f"-I{example.parent / 'common'}", f"-I{example}"]
        for kind in ("gemm", "gemv"):
            name = f"catlass/{kind}/device/device_{kind}.hpp"
            original = (catlass / name).read_text()
            for side, text in (("host", launched(original)), ("kernel", LAUNCH.sub("AOT_HOST_LAUNCH(", original))):
                (work / side / name).parent.mkdir(parents=True, exist_ok=True)
                (work / side / name).write_text(text)

    def build(self) -> None:
        prefix, work = toolkit.virtual().prefix, self.work
        head = '#include "kernel_operator.h"\n#include "catlass_program.h"\n'
        (work / "program.cpp").write_text(head + launched(self.text))
        options = ["-O1", "-w", "-DTILING_KEY_VAR=0", "-DVNPU_AUTO_SYNC=0", f"-I{work}/host", *self.options,
                   f"-I{prefix}/include", f"-I{HERE}"]  # fmt: skip
        whole = _run(["g++", *options, "-E", str(work / "program.cpp")], work)
        (work / "program.ii").write_text(_run([str(specializer(self.tools))], work, whole))
        _run(["g++", *options, str(work / "program.ii"), f"-L{prefix}/lib64", "-lascendcl", "-lvnpu", "-lvnpu_host",
              f"-Wl,-rpath,{prefix}/lib64", "-o", str(work / "program")], work)  # fmt: skip
        options = ["--cce-auto-sync=off", "--npu-arch=dav-2201", f"-I{work}/kernel", *self.options]
        (work / "kernels.o").write_bytes(device().compile(self._kernels(), self.source.name, options))

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """What the virtual NPU tells of the launches.

        Raises:
            AssertionError: the program fails, or its own comparison does.
        """
        told = _run([str(self.work / "program"), *arguments], self.work, AOT_BINARY=str(self.work / "kernels.o"),
                    AOT_REPORTS=str(self.work / "reports"))  # fmt: skip
        assert "Compare success" in told, told[-500:]
        return [json.loads(line) for line in (self.work / "reports").read_text().splitlines()]

    def _kernels(self) -> str:
        text = "#define AOT_HOST_LAUNCH(...) ((void)0)\n#define main aot_host_main\n#include <string>\n"
        text += LAUNCH.sub("AOT_HOST_LAUNCH(", self.text) + "\n"
        cores = "__cube__ " if "__attribute__((aic))" in self.text else ""
        for line in _run([str(self.work / "program")], self.work, AOT_LIST="1").splitlines():
            name, function, types = line.split("|")
            declared = ", ".join(f"{t} p{i}" for i, t in enumerate(split(types)))
            given = ", ".join(f"p{i}" for i in range(len(split(types))))
            text += f'extern "C" __global__ __aicore__ {cores}void {name}({declared}) {{ {function}({given}); }}\n'
        return text
