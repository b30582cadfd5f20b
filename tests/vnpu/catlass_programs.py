"""Programs of catlass as they are: host program and kernels of one, made of its templates, on the virtual NPU.

The host program is compiled first. It says which kernels it may launch (catlass_program.h), and each becomes an entry
of the kernels' translation unit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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
SEEDED = """import numpy, pathlib, runpy, sys
numpy.random.seed(7)
del sys.argv[0]
if "import torch" in pathlib.Path(sys.argv[0]).read_text():
    import torch
    torch.manual_seed(7)
runpy.run_path(sys.argv[0], run_name="__main__")"""
#: Where the device's compiler compiles, catlass takes AscendC's number of bits; of its own one int4b_t has 8.
BITS = """#include "kernel_operator.h"
#include "catlass/numeric_size.hpp"
template <> struct Catlass::SizeOfBits<AscendC::int4b_t> : AscendC::SizeOfBits<AscendC::int4b_t> {};
"""
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
    names = {(m[1], m[2] or "") for m in LAUNCH.finditer(text) if m[1] != "KernelAdapter"}

    def call(m: re.Match[str]) -> str:
        function = f"CatlassAdapter<{m[2]}>" if m[1] == "KernelAdapter" else f"Catlass_{m[1]}{m[2] or ''}"
        return f"(CatlassLaunch<{function}>{{static_cast<uint32_t>({m[3]}), {m[4]}}})("

    tags = (f'struct Catlass_{n}{t} {{ static std::string text() {{ return "{n}{t and f"<{t}>"}"; }} }};\n'
            for n, t in sorted(names))  # fmt: skip
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
        # What the folder's build compiles; the others are included by one of these.
        sources = [example / name for name in re.findall(r"\w+\.cpp", (example / "CMakeLists.txt").read_text())]
        self.source = next(s for s in sources if " main(" in s.read_text())
        self.others = sorted(set(sources) - {self.source})
        self.text = self.source.read_text()
        # The program reads what the folder's script has written, from paths relative to the folder or to the checkout.
        self.folder = work / "examples" / example.name
        self.folder.mkdir(parents=True)
        (self.folder / "examples").symlink_to(work / "examples")
        self.program = work / "output/bin" / example.name
        self.program.parent.mkdir(parents=True)
        self.script = next(example.glob("*gen_data*.py"), None)
        checkout = next(p for p in example.parents if (p / "include/catlass").is_dir())
        catlass, common = checkout / "include", checkout / "examples/common"
        self.options = [*DEFINES, f"-std={standard}", f"-I{catlass}", f"-I{common}", f"-I{example}"]
        for kind in ("gemm", "gemv", "conv"):
            name = f"catlass/{kind}/device/device_{kind}.hpp"
            original = (catlass / name).read_text()
            for side, text in (("host", launched(original)), ("kernel", LAUNCH.sub("AOT_HOST_LAUNCH(", original))):
                (work / side / name).parent.mkdir(parents=True, exist_ok=True)
                (work / side / name).write_text(text)

    def build(self, sync: str = "off") -> None:
        """``sync``: whether the compiler synchronizes by itself, which catlass' own build leaves to it."""
        prefix, work = toolkit.virtual().prefix, self.work
        head = '#include "kernel_operator.h"\n#include "catlass_program.h"\n' + BITS
        (work / "program.cpp").write_text(head + launched(self.text))
        options = ["-O1", "-w", "-DTILING_KEY_VAR=0", "-DVNPU_AUTO_SYNC=0", f"-I{work}/host", *self.options,
                   f"-I{prefix}/include", f"-I{HERE}"]  # fmt: skip
        whole = _run(["g++", *options, "-E", str(work / "program.cpp")], work)
        (work / "program.ii").write_text(_run([str(specializer(self.tools))], work, whole))
        _run(["g++", *options, str(work / "program.ii"), *map(str, self.others), f"-L{prefix}/lib64", "-lascendcl",
              "-lvnpu", "-lvnpu_host", f"-Wl,-rpath,{prefix}/lib64", "-o", str(self.program)], work)  # fmt: skip
        options = [f"--cce-auto-sync={sync}", "--npu-arch=dav-2201", f"-I{work}/kernel", *self.options]
        (work / "kernels.o").write_bytes(device().compile(self._kernels(), self.source.name, options))

    def make(self, *arguments: str) -> None:
        """Inputs and expected outputs, by the folder's own script."""
        _run([*self._script(), *arguments], self.folder)

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """What the virtual NPU tells of the launches. A script that compares is run in place of its program.

        Raises:
            AssertionError: the program fails, or its own comparison does.
        """
        compares = self.script is not None and self.script.stem.endswith("compare")
        command = self._script() if compares else [str(self.program)]
        told = _run([*command, *arguments], self.folder, AOT_BINARY=str(self.work / "kernels.o"),
                    AOT_REPORTS=str(self.work / "reports"))  # fmt: skip
        assert "Compare success" in told, told[-500:]
        return [json.loads(line) for line in (self.work / "reports").read_text().splitlines()]

    def _script(self) -> list[str]:
        """The command of a copy of the script, which finds its files and the program from where it is."""
        assert self.script is not None
        copy = self.folder / self.script.name
        copy.write_text(self.script.read_text())
        return [sys.executable, "-c", SEEDED, str(copy)]

    def _kernels(self) -> str:
        text = "#define AOT_HOST_LAUNCH(...) ((void)0)\n#define main aot_host_main\n#include <algorithm>\n"
        text += "#include <string>\n" + BITS
        text += LAUNCH.sub("AOT_HOST_LAUNCH(", self.text) + "\n"
        cores = "__cube__ " if "__attribute__((aic))" in self.text else ""
        for line in _run([str(self.program)], self.work, AOT_LIST="1").splitlines():
            name, function, types = line.split("|")
            declared = ", ".join(f"{t} p{i}" for i, t in enumerate(split(types)))
            given = ", ".join(f"p{i}" for i in range(len(split(types))))
            text += f'extern "C" __global__ __aicore__ {cores}void {name}({declared}) {{ {function}({given}); }}\n'
        return text
