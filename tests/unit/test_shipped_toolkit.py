"""A toolkit that was built elsewhere is taken where it fits; where it does not, a line says why, and one is built."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ascendopt_tune.build import shipped, toolkit
from ascendopt_tune.build.shipped import Built, why_not
from ascendopt_tune.errors import ToolchainError
from ascendopt_tune.settings import override


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """Version 12 of a compiler that compiles nothing."""
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\necho 12.2.0\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def about(compiler: str, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setattr(shipped, "processor_features", lambda: {"avx2", "f16c"})
    return Built("1234", shipped.platform.machine(), "any", ("avx2",), "g++ 12", "glibc 2.17")


def made(folder: Path, about: Built) -> Path:
    (folder / "lib64").mkdir(parents=True)
    (folder / "lib64" / "libvnpu.so").write_text("a library")
    about.write(folder)
    return folder


def test_what_fits_fits(tmp_path: Path, about: Built, compiler: str) -> None:
    assert why_not(made(tmp_path / "t", about), "1234", compiler) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": "5678"}, "other sources of the virtual NPU"),
        ({"machine": "riscv64"}, "it is for riscv64"),
        ({"compiler": "g++ 14"}, r"g\+\+ 14 built it, here is g\+\+ 12"),
        ({"compiler": "clang++ 12"}, r"clang\+\+ 12 built it"),
        ({"features": ("avx2", "avx512f")}, "this processor lacks avx512f"),
        ({"libc": "glibc 99.1"}, "it needs glibc 99.1, here is"),
    ],
)
def test_what_differs_is_said(tmp_path: Path, about: Built, compiler: str, change: dict[str, object], why: str) -> None:
    said = why_not(made(tmp_path / "t", replace(about, **change)), "1234", compiler)  # type: ignore[arg-type]
    assert re.search(why, said), said


@pytest.mark.parametrize("text", [None, "", "[]", '{"version": "1234"}', '{"features": 3}'])
def test_a_folder_that_does_not_say_what_it_is(tmp_path: Path, about: Built, compiler: str, text: str | None) -> None:
    folder = made(tmp_path / "t", about)
    (folder / "built.json").unlink()
    if text is not None:
        (folder / "built.json").write_text(text)
    assert "it has no readable built.json" in why_not(folder, "1234", compiler)


@pytest.mark.parametrize(("version", "built_here"), [("1234", False), ("5678", True)])
def test_it_is_taken_or_one_is_built(
    tmp_path: Path, about: Built, compiler: str, version: str, built_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []
    monkeypatch.setattr(toolkit, "host_compiler", lambda: compiler)
    monkeypatch.setattr(toolkit, "_source_hash", lambda: version)
    monkeypatch.setattr(toolkit, "_build", lambda compiler, work, march: built.append(work))
    monkeypatch.setattr(toolkit, "_build_precompiled_header", lambda compiler, prefix: None)
    said: list[str] = []
    folder = made(tmp_path / "t", about)
    with override(toolkit_dir=tmp_path / "here", toolkit_built=folder):
        found = toolkit.virtual.__wrapped__(said.append)
    assert bool(built) == built_here
    assert (found.lib64 / "libvnpu.so").exists() != built_here
    assert any("is not used: it is of other sources" in line for line in said) == built_here
    assert (found.prefix / "complete").exists()
    if built_here:
        anew = tmp_path / "anew"
        anew.mkdir()
        assert found.prefix.stat().st_mode == anew.stat().st_mode, "who may read a new folder may read the toolkit"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ToolchainError, match="is not empty"):
        toolkit.build_for_others(tmp_path, lambda text: None)
    assert (tmp_path / "mine").read_text() == "mine"
