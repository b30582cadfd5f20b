"""The house in order: sizes of files, names used once (CONTRIBUTING.md, Habits)."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from pathlib import Path

import ascendopt_tune

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ascendopt_tune"
SOURCES = ("*.py", "*.cpp", "*.h")
LINES = 600
LOOSE = 7


def test_no_file_outgrows_its_reader() -> None:
    folders = [PACKAGE, *(ROOT / name for name in ("tests", "benchmarks", "docs", "examples", "registry"))]
    files = [file for folder in folders for pattern in SOURCES for file in folder.rglob(pattern)]
    assert len(files) > 500
    long = {str(f.relative_to(ROOT)): n for f in files if (n := len(f.read_text().splitlines())) > LINES}
    assert long == {}, f"split what is above {LINES} lines"


def test_the_package_reads_from_its_folders() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= LOOSE


def test_public_class_names_are_used_once() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_files_of_tests_have_names_of_their_own() -> None:
    """Else ``pytest tests``, all folders in one go, is refused."""
    where: dict[str, list[str]] = defaultdict(list)
    for file in (ROOT / "tests").rglob("test_*.py"):
        where[file.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_every_public_name_is_found_where_the_package_says() -> None:
    assert sorted(ascendopt_tune._MODULE_OF) == sorted(ascendopt_tune.__all__)
    for name, module in ascendopt_tune._MODULE_OF.items():
        found = getattr(ascendopt_tune, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__module__.startswith("ascendopt_tune."), (name, module)


def test_what_is_left_to_test_all_is_there() -> None:
    """A test that was renamed must not run in each `make test` again unnoticed, nor a line name nothing."""
    lines = [line.partition("  # ")[0] for line in (ROOT / "tests/slow.txt").read_text().splitlines()]
    for line in (line for line in lines if line and not line.startswith("#")):
        file, _, name = line.partition("::")
        text = (ROOT / file).read_text()
        assert not name or f"def {name.partition('[')[0]}(" in text, line
