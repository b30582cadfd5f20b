"""The C++ sources: no warning, and every header that kernels and host programs may include compiles alone."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import VNPU, host_compiler

INCLUDES = [f"-I{VNPU / 'include'}", f"-I{VNPU / 'host' / 'include'}", f"-I{VNPU}"]
STRICT = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
HEADERS = sorted(p for root in (VNPU / "include", VNPU / "host" / "include") for p in root.rglob("*.h"))
SOURCES = sorted(VNPU.rglob("*.cpp"))


def complaints(*arguments: str) -> str:
    done = subprocess.run(
        [host_compiler(), *STRICT, *INCLUDES, *arguments], capture_output=True, text=True, check=False
    )
    return done.stderr


def test_sources_compile_without_warnings() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda p: complaints(str(p)), SOURCES)
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
