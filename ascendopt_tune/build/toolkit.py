"""Which toolkit answers: a real CANN on the machine, or the virtual NPU, built here on first use.

The virtual toolkit is laid out as CANN's (``include/``, ``lib64/``) below the toolkit folder of ``paths.py``, one
folder per content hash of its sources, the compiler and the CPU's features. It is built in a temporary folder under a
lock and renamed into place, so that many processes may ask for it at once and none sees half of it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from .. import paths
from ..errors import ToolchainError
from ..files import locked
from ..settings import settings
from . import headers, matmul_headers, shipped

VNPU = Path(__file__).resolve().parent.parent / "vnpu"
_STANDARD = VNPU / "core" / "standard.h"
#: What the compiler said of the libraries' sources, a file of the toolkit: nothing, with a compiler that tests have.
WARNINGS = "warnings.txt"

# Values must not depend on the host's instruction set beyond speed: no contraction of a*b+c, wrapping integers.
# Nobody looks at floating point exceptions; with them in mind g++ does not vectorize selections between numbers.
_LIBRARY_FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fwrapv", "-fno-math-errno",
                  "-fno-trapping-math", "-fPIC", "-fvisibility=default", "-Wall", "-Wextra")  # fmt: skip
# What runs once a kernel or a program, and is a fifth of what there is to compile.
_ONCE, _ONCE_FLAGS = ("runtime", "host"), ("-O1",)
# The libraries as they are tested for errors of their own; see ASCENDOPT_SANITIZE in docs/settings.md.
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
_SANITIZED_FLAGS = ("-O0", "-g1", "-fno-omit-frame-pointer", *_SANITIZERS)
# Kernels spend their time in the library, so they are compiled for speed of compilation: -Og takes a third less than
# -O1 (rms_norm's kernel), and a launch of scalar reads alone a tenth more. Which of two loads through a pointer of its
# own a kernel makes, and is charged for, the optimization decides with either. -g1 gives reports their lines.
# The same list as in vnpu/runtime/rtc_compile.cpp: a precompiled header serves only compilations with its own flags.
KERNEL_FLAGS = ("-std=c++17", "-Og", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-ffunction-sections",
                "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-attributes", "-fno-omit-frame-pointer",
                "-fno-jump-tables", "-fno-stack-protector", "-fno-ident")  # fmt: skip
# g++ alone has all of them: every load and store of a kernel's own code as a call, see vnpu/core/guard.h.
GUARD_FLAGS = ("-fsanitize=kernel-address", "--param=asan-instrumentation-with-call-threshold=0",
               "--param=asan-stack=0", "--param=asan-globals=0")  # fmt: skip
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

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Toolkit:
    """``kind`` is ``virtual`` or ``cann``; ``version`` goes into cache keys."""

    kind: str
    prefix: Path
    version: str

    @property
    def include(self) -> Path:
        return self.prefix / "include"

    @property
    def lib64(self) -> Path:
        return self.prefix / "lib64"

    @property
    def target(self) -> str:
        """What a measurement with this toolkit is: ``virtual`` (modelled) or ``npu`` (measured)."""
        return "virtual" if self.kind == "virtual" else "npu"


def find(target: str = "auto", progress: Progress | None = None) -> Toolkit:
    """The toolkit for ``target``: ``auto`` is a real CANN where there is one, else the virtual NPU.

    Raises:
        ToolchainError: ``npu`` was asked for and there is no CANN, the virtual toolkit can't be built, or where the
            settings say (``matmul_headers``) there is no Matmul.
    """
    if target not in ("auto", "virtual", "npu"):
        raise ToolchainError(f"unknown target {target!r}.", "Targets: auto, virtual, npu.")
    prefix = real_cann() if target != "virtual" else None
    if prefix is not None:
        return Toolkit("cann", prefix, _cann_version(prefix))
    if target == "npu":
        raise ToolchainError(
            "no CANN toolkit was found (ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, /usr/local/Ascend).",
            "Install CANN >= 9.0 and source its set_env.sh, or use --target virtual.",
        )
    toolkit = virtual(progress) if progress else virtual()  # one toolkit per process, whoever asks
    others = matmul_headers.chosen(toolkit.prefix.parent)
    return replace(toolkit, version=f"{toolkit.version}-matmul-{others.digest}") if others is not None else toolkit


def real_cann() -> Path | None:
    """Prefix of the installed CANN toolkit that has the run-time compiler, or None."""
    roots = [os.environ.get("ASCEND_HOME_PATH"), os.environ.get("ASCEND_TOOLKIT_HOME")]
    roots += ["/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest", "/usr/local/Ascend/cann"]
    for root in roots:
        if root and (Path(root) / "lib64" / "libascendcl.so").exists():
            return Path(root)
    return None


def _cann_version(prefix: Path) -> str:
    for name in ("version.info", "version.cfg", "compiler/version.info"):
        file = prefix / name
        if file.exists():
            return "cann-" + hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    return "cann-unknown"


@cache
def host_compiler() -> str:
    """Path of the host C++ compiler: ``ASCENDOPT_CXX``, else g++, else clang++.

    Raises:
        ToolchainError: there is none, or the one that was named doesn't run.
    """
    wanted = settings().cxx
    for name in (wanted,) if wanted else ("g++", "clang++"):
        path = shutil.which(name)
        if path:
            return path
    raise ToolchainError(
        f"no C++ compiler: {f'{wanted} is not' if wanted else 'neither g++ nor clang++ is'} on PATH.",
        "Install g++ 12 or newer (Debian: apt-get install g++) or name one in ASCENDOPT_CXX.",
    )


def _source_hash() -> str:
    """Of what decides a modelled result: every source of the virtual NPU, and how it is compiled."""
    h = hashlib.sha256()
    for file in sorted(
        p for p in VNPU.rglob("*") if p.is_file() and p.suffix in (".h", ".hpp", ".cpp", ".map", ".toml")
    ):
        h.update(str(file.relative_to(VNPU)).encode() + b"\0" + file.read_bytes() + b"\0")
    for recipe in (Path(__file__), Path(headers.__file__)):
        h.update(recipe.read_bytes())
    return h.hexdigest()[:16]


def _machine_hash(compiler: str) -> str:
    """Of what decides whether a built toolkit runs here: a home folder may be shared by machines of other kinds."""
    h = hashlib.sha256(subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout)
    h.update(" ".join(sorted(shipped.processor_features())).encode())  # -march=native
    return h.hexdigest()[:8]


@cache
def virtual(progress: Progress | None = None) -> Toolkit:
    """The virtual NPU's toolkit; compiles it on first use (once per machine, some tens of seconds).

    Args:
        progress: told in a line what is being built; default: one line on stderr when a build is needed.

    Raises:
        ToolchainError: no compiler, the compiler fails, or the toolkit folder can't be written.
    """
    compiler = host_compiler()
    # The version goes into cache keys, so it must not name this machine: a result may be shipped to another one.
    version = _source_hash()
    folder = paths.toolkit_dir()
    prefix = folder / f"{version}-{_machine_hash(compiler)}{'-sanitized' if settings().sanitize else ''}"
    toolkit = Toolkit("virtual", prefix, f"vnpu-{version}-{platform.machine()}")
    if (prefix / "complete").exists():
        return toolkit
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{prefix.name}.lock"):
            if not (prefix / "complete").exists():
                say = progress or (lambda text: print(text, file=sys.stderr, flush=True))
                with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as work:
                    made = Path(work) / "toolkit"
                    made.mkdir()  # with the rights that the user's umask gives: others may be meant to read it
                    if not _take_built(compiler, version, made, say):
                        say("building the virtual NPU's toolkit (once; takes a minute or two) ...")
                        _build(compiler, made, "native")
                    if _source_hash() != version:
                        raise ToolchainError(
                            f"the virtual NPU's sources in {VNPU} changed while they were being compiled.", "Try again."
                        )
                    shutil.rmtree(prefix, ignore_errors=True)
                    os.rename(made, prefix)
                _build_precompiled_header(compiler, prefix)
                (prefix / "complete").write_text(version + "\n")
    except OSError as e:
        raise ToolchainError(
            f"the virtual toolkit can't be written to {folder}: {e.strerror or e}.",
            "Free some space, or point ASCENDOPT_CACHE_DIR at a folder you can write.",
        ) from e
    return toolkit


def _take_built(compiler: str, version: str, work: Path, say: Progress) -> bool:
    """Whether a toolkit that was built elsewhere serves here; then it is copied into ``work``."""
    built = paths.built_toolkit()
    if built is None or settings().sanitize:
        return False
    why = shipped.why_not(built, version, compiler)
    if why:
        say(f"the built toolkit in {built} is not used: {why}")
        return False
    say("taking the virtual NPU's toolkit, which is built already (once; takes seconds) ...")
    shipped.take(built, work)
    return True


def build_for_others(out: Path, progress: Progress) -> shipped.Built:
    """Builds a virtual toolkit into ``out``, an empty or new folder, that machines of this kind can take.

    Args:
        progress: told in a line what is being built.

    Raises:
        ToolchainError: no compiler, it fails, an architecture that this isn't prepared for, or a folder with something
            in it.
    """
    compiler = host_compiler()
    about = shipped.Built.here(_source_hash(), compiler)
    if about is None:
        raise ToolchainError(f"there is no built toolkit for {platform.machine()}.", "It is for x86_64 and aarch64.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ToolchainError(f"{out} is not empty.", "Name a new folder.")
        progress(f"building the virtual NPU's toolkit for {about.march} (takes a minute or two) ...")
        _build(compiler, out, about.march)
        about.write(out)
    except OSError as e:
        raise ToolchainError(f"the toolkit can't be written to {out}: {e.strerror or e}.") from e
    return about


def _run(command: list[str], what: str) -> str:
    """What the command wrote to stderr."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(
            f"building the virtual toolkit failed at {what} (exit code {done.returncode}):\n"
            f"{done.stderr.strip()[:4000]}\n",
            "A C++17 compiler with _Float16 is needed (g++ >= 12 or clang++ >= 15); see `ascendopt-tune doctor`.",
        )
    return done.stderr


def libraries() -> dict[str, list[Path]]:
    """The toolkit's own libraries, by name: their sources."""
    return {
        "libvnpu.so": [*(VNPU / "core").glob("*.cpp"), *(VNPU / "semantics").glob("*.cpp")],
        "libascendcl.so": [p for p in (VNPU / "runtime").glob("*.cpp") if not p.name.startswith("rtc")],
        "libacl_rtc.so": list((VNPU / "runtime").glob("rtc*.cpp")),
        "libvnpu_host.so": [*(VNPU / "host" / "src").glob("*.cpp"), VNPU / "core" / "chip_file.cpp"],
    }


def _build(compiler: str, work: Path, march: str) -> None:
    include, lib64, objects = work / "include", work / "lib64", work / "objects"
    lib64.mkdir()
    objects.mkdir()
    for folder in (VNPU / "include", VNPU / "host" / "include"):
        shutil.copytree(folder, include, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.gch"))
    headers.write_forwarding_headers(VNPU / "forwarding.toml", include)
    shutil.copytree(VNPU / "chips", work / "chips")
    command = [compiler, *_LIBRARY_FLAGS, f"-march={march}", *(_SANITIZED_FLAGS if settings().sanitize else ())]
    command += [f"-I{folder}" for folder in (VNPU / "include", VNPU / "host" / "include", VNPU)]
    ccache = shutil.which("ccache")  # for those who develop the virtual NPU and rebuild it often
    if ccache:
        command.insert(0, ccache)
    else:  # ccache keeps nothing of a source that begins with a precompiled header
        standard = Path(shutil.copy(_STANDARD, objects))
        _run([*command, "-x", "c++-header", str(standard), "-o", f"{standard}.gch"], "precompiling standard.h")
        command += ["-include", str(standard)]

    def compile_one(source: Path) -> str:
        name = source.relative_to(VNPU)
        more = _ONCE_FLAGS if name.parts[0] in _ONCE and not settings().sanitize else ()
        return _run([*command, *more, "-c", str(source), "-o", str(objects / _object(source))], str(name))

    sources = sorted({s for group in libraries().values() for s in group}, key=lambda s: -s.stat().st_size)
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        (work / WARNINGS).write_text("".join(pool.map(compile_one, sources)))
    (objects / "libvnpu.map").write_text(_version_script(machine_functions()))
    for name, group in libraries().items():
        needs = {"libascendcl.so": ["-lvnpu", "-ldl"], "libvnpu.so": ["-pthread", "-ldl"]}.get(name, ["-ldl"])
        inputs = [str(objects / _object(s)) for s in sorted(group)]
        _link(compiler, lib64, name, [*inputs, *needs], objects)
    empty = work / "stub.cpp"
    empty.write_text("")
    for name in _STUBS:
        # torch_npu looks functions up through these names; they only lead to libascendcl.
        _link(compiler, lib64, name, [str(empty), "-Wl,--no-as-needed", "-lascendcl"], objects)
    empty.unlink()
    shutil.rmtree(objects)


def _object(source: Path) -> str:
    return "-".join(source.relative_to(VNPU).parts) + ".o"


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
    _run([*command, "-o", str(lib64 / name), *rest], f"linking {name}")


def _build_precompiled_header(compiler: str, prefix: Path) -> None:
    # In place: a precompiled header remembers where it was made.
    header = prefix / "include" / "kernel_operator.h"
    guard = () if "clang" in Path(compiler).name else GUARD_FLAGS
    command = [compiler, *KERNEL_FLAGS, *guard, f"-I{prefix / 'include'}"]
    command += ["-x", "c++-header", str(header)]
    _run([*command, "-o", str(header) + ".gch"], "precompiling kernel_operator.h")
