"""The libraries export what is declared and nothing else; the headers declare what is exported."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from ascendopt_tune.build.host import _WRAPPED
from ascendopt_tune.build.libraries import GUARD_FUNCTIONS, VNPU, machine_functions
from ascendopt_tune.build.toolkit import Toolkit, host_compiler, virtual

LIBRARIES = ("libascendcl.so", "libacl_rtc.so")
DECLARED_BY_OPERATORS = {  # in common headers that come with their sources, or asked for by name (host/src/legacy.cpp)
    "ops::ToString",
    *(f"Ops::NN::LegacyCommonMgr::{name}" for name in ("LegacyCommonMgr", "~LegacyCommonMgr", "GetInstance")),
    "LegacyTilingPrepareForOpCache",
    "LegacyTilingParsePrepareForOpCache",
}
STUBS = (
    "libacl_op_compiler.so",
    "libhccl.so",
    "libge_runner.so",
    "libgraph.so",
    "libacl_tdt_channel.so",
    "libmspti.so",
)
HEADERS = sorted(path.name for path in (VNPU / "include" / "acl").glob("*.h"))
WITHOUT_HEADER = re.compile(r"Msprof|mspti|rt[A-Z]|vnpu_")  # torch_npu calls these, or we; no host program does


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


def demangled(library: Path) -> set[str]:
    """Functions and variables a library defines: qualified names without parameters; no templates of the standard's."""
    command = ["nm", "-DC", "--defined-only", str(library)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (re.match(r"\w+ [TBDR] (.+)", line) for line in out.splitlines())
    return {re.sub(r"\(.*|\[abi:\w+\]", "", m[1]) for m in found if m is not None}


def declarations(header: Path) -> set[str]:
    """Names of functions that a header declares without defining them, members too."""
    root = Parser(Language(tree_sitter_cpp.language())).parse(header.read_bytes()).root_node
    found = set()

    def visit(node: Node) -> None:
        if node.type in ("template_declaration", "friend_declaration", "compound_statement", "preproc_def"):
            return
        if node.type in ("declaration", "field_declaration"):
            function = node.child_by_field_name("declarator")
            while function is not None and function.type in ("pointer_declarator", "reference_declarator"):
                function = function.named_children[-1]
            text = (node.text or b"").decode()
            if function is not None and function.type == "function_declarator" and not re.search(r"=\s*\w+;$", text):
                name = function.child_by_field_name("declarator")
                if name is not None and name.type in ("identifier", "field_identifier", "operator_name"):
                    found.add((name.text or b"").decode())
            return
        for child in node.named_children:
            visit(child)

    visit(root)
    return found


def test_the_machine_exports_what_its_headers_declare(toolkit: Toolkit) -> None:
    headers = [*(VNPU / "include" / "vnpu").glob("*.h"), VNPU / "core" / "launch.h", VNPU / "core" / "memory.h"]
    declared_ones = set().union(*(declarations(h) for h in headers))
    assert set(machine_functions()) == declared_ones, "the linker's list is the one that the headers declare"
    exported = {name.removeprefix("vnpu::") for name in demangled(toolkit.lib64 / "libvnpu.so")}
    declared_ones |= set(GUARD_FUNCTIONS)  # the compiler calls these: they are declared nowhere
    assert exported - declared_ones == set(), "exported but not declared"
    assert declared_ones - exported == set(), "declared but not exported"


def test_the_host_library_exports_what_its_headers_declare(toolkit: Toolkit) -> None:
    headers = list((VNPU / "host" / "include").rglob("*.h"))
    declared_ones = set().union(*(declarations(h) for h in headers))
    exported = demangled(toolkit.lib64 / "libvnpu_host.so")
    classes = set(re.findall(r"\b(?:class|struct) (\w+)", "\n".join(h.read_text() for h in headers)))
    known = {f"__wrap_{name}" for name in _WRAPPED} | DECLARED_BY_OPERATORS
    for name in exported - known:
        last = name.split("::")[-1]
        if not name.startswith("vnpu_ctx_") and not name.startswith("vnpu_host_"):
            assert last in declared_ones or last.removeprefix("~") in classes, f"{name}: exported but not declared"
    assert declared_ones - {name.split("::")[-1] for name in exported} == set(), "declared but not exported"


def test_the_c_interface_of_the_host_library_is_the_one_that_is_called(toolkit: Toolkit) -> None:
    exported = {n for n in demangled(toolkit.lib64 / "libvnpu_host.so") if re.match(r"vnpu_(ctx|host)_\w+$", n)}
    text = (VNPU.parent / "build" / "host_program.py").read_text()
    called = set(re.findall(r"\bvnpu_(?:ctx|host)_\w*[a-z]\b", text))
    families = set(re.findall(r"\b(vnpu_ctx_\w+_)\{", text))  # the rest of the name is an attribute's type
    assert called - exported == set(), "called but not exported"
    assert {n for n in exported - called if not n.startswith(tuple(families))} == set(), "exported but never called"


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
