"""The libraries export what is declared and nothing else; the headers declare what is exported."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import VNPU, Toolkit, host_compiler, virtual

LIBRARIES = ("libascendcl.so", "libacl_rtc.so")
STUBS = ("libacl_op_compiler.so", "libhccl.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so")
HEADERS = sorted(path.name for path in (VNPU / "include" / "acl").glob("*.h"))
WITHOUT_HEADER = re.compile(r"Msprof|rt[A-Z]")  # torch_npu links against these; no host program calls them


@pytest.fixture(scope="module")
def toolkit() -> Toolkit:
    return virtual()


def declared(library: str) -> set[str]:
    """The names in the library's version script."""
    text = (VNPU / "runtime" / library).with_suffix(".map").read_text()
    return set(re.findall(r"^ +(\w+);$", text, re.MULTILINE))


def symbols(library: Path, *options: str) -> set[str]:
    """C symbols of a library's dynamic table, without versions."""
    out = subprocess.run(["nm", "-D", *options, str(library)], capture_output=True, text=True, check=True).stdout
    names = (line.split()[-1].split("@")[0] for line in out.splitlines())
    return {name for name in names if not name.startswith("_")}


def header_functions() -> set[str]:
    text = "\n".join((VNPU / "include" / "acl" / header).read_text() for header in HEADERS)
    return set(re.findall(r"ACL_FUNC_VISIBILITY [\w *]+?\b(\w+)\(", text))


@pytest.mark.parametrize("library", LIBRARIES)
def test_exports_are_the_declared_ones(toolkit: Toolkit, library: str) -> None:
    exported = symbols(toolkit.lib64 / library, "--defined-only")
    assert exported - declared(library) == set(), "exported but not declared"
    assert declared(library) - exported == set(), "declared but not exported"


def test_headers_declare_the_exports() -> None:
    exports = {name for library in LIBRARIES for name in declared(library) if not WITHOUT_HEADER.match(name)}
    assert header_functions() == exports


@pytest.mark.parametrize("library", STUBS)
def test_stub_leads_to_the_runtime(toolkit: Toolkit, library: str) -> None:
    out = subprocess.run(
        ["readelf", "-d", str(toolkit.lib64 / library)], capture_output=True, text=True, check=True
    ).stdout
    assert f"soname: [{library}]" in out
    assert "Shared library: [libascendcl.so]" in out


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="torch_npu is not installed")
def test_torch_npu_finds_every_symbol_it_links_against() -> None:
    spec = importlib.util.find_spec("torch_npu")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "lib"
    needed: set[str] = set()
    for name in ("libtorch_npu.so", "libtensorpipe.so", "libnpu_profiler.so"):
        needed |= symbols(folder / name, "--undefined-only")
    runtime = {name for name in needed if re.match(r"acl[A-Z]|acl(rt|op|mdl)[A-Z]|rt[A-Z]|Hccl|Msprof", name)}
    assert len(runtime) >= 84
    assert runtime - declared("libascendcl.so") == set()


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("language", ["c++", "c"])
def test_header_compiles_alone(toolkit: Toolkit, header: str, language: str) -> None:
    standard = "-std=c++17" if language == "c++" else "-std=c11"
    done = subprocess.run(
        [host_compiler(), "-x", language, standard, "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable",
         "-Wno-unused-variable", f"-I{toolkit.include}", "-fsyntax-only", "-"],
        input=f'#include "acl/{header}"\n', capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
