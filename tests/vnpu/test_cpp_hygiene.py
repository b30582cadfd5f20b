"""The C++ sources: no warning, and every header that kernels and host programs may include compiles alone."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ascendopt_tune.build.headers import forwarding_headers
from ascendopt_tune.build.libraries import VNPU, WARNINGS, libraries
from ascendopt_tune.build.toolkit import host_compiler, virtual

REPO = Path(__file__).resolve().parents[2]
INCLUDES = [f"-I{VNPU / 'include'}", f"-I{VNPU / 'host' / 'include'}", f"-I{VNPU}"]
STRICT = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
HEADERS = sorted(p for root in (VNPU / "include", VNPU / "host" / "include") for p in root.rglob("*.h"))
SOURCES = sorted(VNPU.rglob("*.cpp"))


def complaints(*arguments: str, includes: list[str] = INCLUDES) -> str:
    command = [host_compiler(), *STRICT, *includes, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_sources_compile_without_warnings() -> None:
    """They are compiled with -Wall -Wextra when the toolkit is built, all of them: no need to do it twice."""
    assert (virtual().prefix / WARNINGS).read_text() == ""
    built = {source for group in libraries().values() for source in group}
    assert built == set(SOURCES)


def test_the_prelude_leaves_no_code_in_a_tiling_program(tmp_path: Path) -> None:
    """What every tiling program begins with is not compiled again: an empty one has no function of it."""
    include = virtual().include
    (tmp_path / "empty.cpp").touch()
    command = [host_compiler(), "-std=c++17", "-O0", "-fPIC", "-w", f"-I{include}", "-include"]
    command += [str(include / "vnpu_host_prelude.h"), "-c", str(tmp_path / "empty.cpp"), "-o", str(tmp_path / "o")]
    subprocess.run(command, check=True)
    symbols = subprocess.run(["nm", "-C", str(tmp_path / "o")], capture_output=True, text=True, check=True).stdout
    assert "vnpu_knobs" in symbols
    assert [line for line in symbols.splitlines() if re.match(r"[0-9a-f]+ [WV] ", line)] == []


@pytest.mark.parametrize("library", libraries())
def test_sources_compile_alone(library: str) -> None:
    """Each includes what it uses, which a build that begins each with a precompiled header doesn't tell."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda source: complaints(str(source)), sorted(libraries()[library]))
    assert not (text := "\n".join(t for t in found if t)), text


@pytest.mark.parametrize("root", ["include", "host/include"])
def test_headers_compile_alone(root: str, tmp_path: Path) -> None:
    def check(header: Path) -> str:
        unit = tmp_path / f"{header.stem}-{abs(hash(header))}.cpp"
        unit.write_text(f'#include "{header}"\n')
        return complaints(str(unit))

    with ThreadPoolExecutor(2) as pool:
        found = pool.map(check, [h for h in HEADERS if h.is_relative_to(VNPU / root)])
    assert not (text := "\n".join(t for t in found if t)), text


def test_forwarding_headers_are_those_of_the_list() -> None:
    """The toolkit has each, it leads to a header with a text of its own, and no other header of ours only forwards."""
    listed = forwarding_headers(VNPU / "forwarding.toml")
    own = {str(h.relative_to(VNPU / root)): h for root in ("include", "host/include") for h in HEADERS
           if h.is_relative_to(VNPU / root)}  # fmt: skip
    include = virtual().include
    for name, text in listed.items():
        assert (include / name).read_text() == text
        assert text.split('"')[1] in own, name
    assert not listed.keys() & own.keys()

    def forwards(header: Path) -> bool:
        lines = [line for line in header.read_text().splitlines() if line and not line.startswith(("//", "#pragma"))]
        return len(lines) == 1 and lines[0].startswith('#include "')

    assert [name for name, header in own.items() if forwards(header)] == []


def test_forwarding_headers_compile_alone(tmp_path: Path) -> None:
    unit = tmp_path / "unit.cpp"
    unit.write_text("".join(f'#include "{name}"\n' for name in forwarding_headers(VNPU / "forwarding.toml")))
    # From the toolkit alone: its copies may be of another checkout, and two files are two headers for #pragma once.
    assert not (text := complaints(str(unit), includes=[f"-I{virtual().include}"])), text


def test_the_core_has_no_name_of_the_language() -> None:
    """String literals of core/ name no API: those that reports need are handed to it (core/words.h)."""
    rows = (REPO / "docs" / "api_names.csv").read_text().splitlines()
    names = {n for row in rows if (n := row.rpartition(",")[0].rpartition(",")[2])[:1].isupper()}
    for file in sorted((VNPU / "core").iterdir()):
        code = "\n".join(line.partition("//")[0] for line in file.read_text().splitlines())
        words = {w for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code) for w in re.findall(r"\w+", text)}
        assert not (words & names), f"{file.name}: {sorted(words & names)}"
