"""The virtual NPU's own libraries: of which sources each is, how it is compiled, and what it offers.

Sources are compiled joined: most of what a compiler does for one of them is reading headers and making functions of
templates that its neighbours read and make as well, so each library has a few generated sources that include several of
its own (``joined``). File-local names have to differ within a library, then: two helpers of one name would be overloads
of each other, and a call might find the other file's without a word (``tests/unit/test_joined_sources.py``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import ToolchainError
from ..settings import settings

VNPU = Path(__file__).resolve().parent.parent / "vnpu"
#: What the compiler said of the libraries' sources, a file of the toolkit: nothing, with a compiler that tests have.
WARNINGS = "warnings.txt"

# Values must not depend on the host's instruction set beyond speed: no contraction of a*b+c, wrapping integers.
# Nobody looks at floating point exceptions; with them in mind g++ does not vectorize selections between numbers.
_FLAGS = ("-std=c++17", "-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fPIC",
          "-fvisibility=default", "-Wall", "-Wextra")  # fmt: skip
# The machine itself is what kernels spend their time in; the others run once a kernel or a program.
_MACHINE, _MACHINE_SPEED, _ONCE_SPEED = "libvnpu.so", "-O3", "-O1"
# The libraries as they are tested for errors of their own; see ASCENDOPT_SANITIZE in docs/settings.md.
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
_SANITIZED_FLAGS = ("-O0", "-g1", "-fno-omit-frame-pointer", *_SANITIZERS)
#: How many sources are generated of each library's. Eight of the machine's keep as many processors busy, and four
#: would take as long together.
PARTS = {_MACHINE: 8, "libascendcl.so": 1, "libacl_rtc.so": 1, "libvnpu_host.so": 1}
#: What libvnpu.so answers the compiler's checks with; kernel binaries refer to it.
GUARD_FUNCTIONS = (
    *(f"__asan_{kind}{size}_noabort" for kind in ("load", "store") for size in (1, 2, 4, 8, 16, "N")),
    *(
        f"__wrap_{name}"
        for name in (
            "memcpy",
            "memmove",
            "memset",
            "modf",
            "modff",
            "frexp",
            "frexpf",
            "sincos",
            "sincosf",
            "_Unwind_Resume",
        )
    ),
    "__asan_handle_no_return",
)
# The library every kernel binary and host program needs, and those torch_npu looks up by name.
_STUBS = (
    "libacl_op_compiler.so",
    "libhccl.so",
    "libge_runner.so",
    "libgraph.so",
    "libacl_tdt_channel.so",
    "libmspti.so",
)

_DECLARATION = re.compile(
    r"^(?!constexpr|inline|template|using|static|namespace|struct|class|enum)"
    r"(?:\[\[\w+\]\] )?[A-Za-z][\w:<>]*(?:[\s*&]+[A-Za-z][\w:<>]*)*[\s*&]+(\w+)\(",
    re.MULTILINE,
)


def libraries() -> dict[str, list[Path]]:
    """The toolkit's own libraries, by name: their sources, in the order of their names."""
    runtime = sorted((VNPU / "runtime").glob("*.cpp"))
    return {
        _MACHINE: sorted([*(VNPU / "core").glob("*.cpp"), *(VNPU / "semantics").glob("*.cpp")]),
        "libascendcl.so": [p for p in runtime if not p.name.startswith("rtc")],
        "libacl_rtc.so": [p for p in runtime if p.name.startswith("rtc")],
        "libvnpu_host.so": [VNPU / "core" / "chip_file.cpp", *sorted((VNPU / "host" / "src").glob("*.cpp"))],
    }


def joined(sources: list[Path], parts: int) -> list[list[Path]]:
    """The sources in at most ``parts`` lists, about as many bytes in each. Neighbours stay neighbours: by name they are
    of one family, which share the most, and what is set up before ``main`` keeps its order."""
    sizes = [source.stat().st_size for source in sources]
    lists: list[list[Path]] = [[] for _ in range(parts)]
    for i, source in enumerate(sources):
        middle = sum(sizes[:i]) + sizes[i] // 2
        lists[middle * parts // sum(sizes)].append(source)
    return [part for part in lists if part]


def build(compiler: str, work: Path, march: str) -> None:
    """Compiles and links the libraries into ``work/lib64``, and writes what the compiler remarked.

    Raises:
        ToolchainError: the compiler fails.
    """
    lib64, objects = work / "lib64", work / "objects"
    lib64.mkdir()
    objects.mkdir()
    parts = {
        f"{library}-{i}.cpp": part
        for library, sources in libraries().items()
        for i, part in enumerate(joined(sources, PARTS[library]))
    }
    ccache = shutil.which("ccache")  # for those who develop the virtual NPU and rebuild it often
    command = [*((ccache,) if ccache else ()), os.path.abspath(compiler), *_FLAGS, f"-march={march}"]
    command += [f"-I{folder}" for folder in (VNPU / "include", VNPU / "host" / "include", VNPU)]
    # The folder is another one each time, of which ccache must not know: it asks for names and where debuggers look.
    command.append(f"-fdebug-prefix-map={objects}=.")

    def compile_part(name: str) -> str:
        text = [f'#include "{source.relative_to(VNPU).as_posix()}"\n' for source in parts[name]]
        (objects / name).write_text("".join(text))
        speed = _MACHINE_SPEED if name.startswith(_MACHINE) else _ONCE_SPEED
        flags = _SANITIZED_FLAGS if settings().sanitize else (speed,)
        return run([*command, *flags, "-c", name, "-o", f"{name}.o"], name, objects)

    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        (work / WARNINGS).write_text("".join(pool.map(compile_part, parts)))
    (objects / "libvnpu.map").write_text(_version_script(machine_functions()))
    for library in libraries():
        needs = {"libascendcl.so": ["-lvnpu", "-ldl"], _MACHINE: ["-pthread", "-ldl"]}.get(library, ["-ldl"])
        compiled = [f"{objects / name}.o" for name in parts if name.startswith(library)]
        _link(compiler, lib64, library, [*compiled, *needs], objects)
    empty = objects / "stub.cpp"
    empty.write_text("")
    for name in _STUBS:
        # torch_npu looks functions up through these names; they only lead to libascendcl.
        _link(compiler, lib64, name, [str(empty), "-Wl,--no-as-needed", "-lascendcl"], objects)
    shutil.rmtree(objects)


def run(command: list[str], what: str, folder: Path | None = None) -> str:
    """What a compiler wrote to stderr.

    Args:
        what: names what is built, for the error's text.
        folder: where the compiler runs; default: the process's own working directory.

    Raises:
        ToolchainError: it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise ToolchainError(
            f"building the virtual toolkit failed at {what} (exit code {done.returncode}):\n"
            f"{done.stderr.strip()[:4000]}\n",
            "A C++17 compiler with _Float16 is needed (g++ >= 12 or clang++ >= 15); see `ascendopt-tune doctor`.",
        )
    return done.stderr


def kernel_functions() -> list[str]:
    """What libvnpu.so offers to kernels, in namespace vnpu."""
    return _declared(sorted((VNPU / "include" / "vnpu").glob("*.h")))


def machine_functions() -> list[str]:
    """What libvnpu.so offers: to kernels, and to libascendcl.so."""
    return sorted({*kernel_functions(), *_declared([VNPU / "core" / n for n in ("launch.h", "memory.h")])})


def _declared(files: list[Path]) -> list[str]:
    found: set[str] = set()
    for header in files:
        # A declaration begins in the first column: type words, the name, an opening parenthesis.
        found.update(_DECLARATION.findall(re.sub(r"//.*", "", header.read_text())))
    return sorted(found)


def _version_script(names: list[str]) -> str:
    """C functions as they are, others in namespace vnpu; everything else stays inside the library."""
    c_names = [*GUARD_FUNCTIONS, *(name for name in names if name.startswith("vnpu_"))]
    plain = "".join(f"  {name};\n" for name in c_names)
    cpp = "".join(f"    vnpu::{name}[!_a-z0-9]*;\n" for name in names if not name.startswith("vnpu_"))
    return f'{{\nglobal:\n{plain}  extern "C++" {{\n{cpp}  }};\nlocal:\n  *;\n}};\n'


def _link(compiler: str, lib64: Path, name: str, rest: list[str], generated: Path) -> None:
    command = [compiler, "-shared", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", f"-L{lib64}"]
    command += _SANITIZERS if settings().sanitize else ()
    script = name.replace(".so", ".map")
    for exports in (VNPU / "runtime" / script, VNPU / "host" / script, generated / script):
        if exports.exists():
            command.append(f"-Wl,--version-script={exports}")
    run([*command, "-o", str(lib64 / name), *rest], f"linking {name}")
