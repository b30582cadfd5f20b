"""The few statements of an operator's CMakeLists.txt that decide how it is built.

Operator folders in CANN's project layout say there which host sources make the tiling and the shape library, which
folders are searched for headers, and which options the kernel compiler gets. This reads those statements as text; it
is no CMake interpreter: of variables it knows the folders below, ``set`` and ``file(GLOB ...)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files import read_plain

_FILE_BYTES = 4 << 20
# Libraries of the host side whose sources we want; ``opapi`` (hand-written aclnn interfaces) is not among them.
_HOST_TARGETS = ("optiling", "opsproto", "op_host_aclnn", "op_host_aclnnInner", "op_host_aclnnExc")
_STATEMENT = re.compile(r"(?P<name>\w+)\s*\((?P<body>[^()]*)\)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class BuildRules:
    """``host_sources``, ``include_dirs``: existing absolute paths; ``kernel_options`` with variables resolved."""

    host_sources: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    kernel_options: tuple[str, ...] = ()


def read_build_rules(folder: Path) -> BuildRules:
    """What ``folder/CMakeLists.txt`` says; nothing where there is no such file."""
    folder = folder.resolve()
    variables = _variables(folder)
    sources: dict[Path, None] = {}
    includes: dict[Path, None] = {}
    options: list[str] = []
    for name, words in _statements(folder / "CMakeLists.txt"):
        if name == "set" and words:
            variables[words[0]] = ";".join(_resolve(w, variables) for w in words[1:])
        elif name == "file" and words[:1] in (["GLOB"], ["GLOB_RECURSE"]) and len(words) > 2:
            found = [str(f) for w in words[2:] for f in _glob(folder, _resolve(w, variables))]
            variables[words[1]] = ";".join(found)
        elif name == "target_sources" and words and words[0] in _HOST_TARGETS:
            sources.update(dict.fromkeys(p for p in _paths(words[1:], folder, variables) if p.is_file()))
        elif name == "target_include_directories" and words and words[0] in _HOST_TARGETS:
            includes.update(dict.fromkeys(p for p in _paths(words[1:], folder, variables) if p.is_dir()))
        elif name == "add_ops_compile_options" and "OPTIONS" in words:
            options += [_resolve(w, variables) for w in words[words.index("OPTIONS") + 1 :]]
    common = variables.get("OP_COMMON_DIR")
    if common and (Path(common) / "inc").is_dir():
        includes[Path(common) / "inc"] = None  # the repository adds it to every host library
    return BuildRules(tuple(sources), tuple(includes), tuple(o for o in options if "${" not in o))


def shared_include_dirs(folder: Path) -> tuple[Path, ...]:
    """Folders called ``include`` or ``inc`` of the repository ``folder`` lies in, at most one level below an ancestor.

    A repository adds them to all its operators by statements of its own, which this module doesn't read.
    """
    found: dict[Path, None] = {}
    for parent in folder.resolve().parents:
        if not (parent / "CMakeLists.txt").is_file():
            break
        for pattern in ("include", "inc", "*/include", "*/inc"):
            found |= {p: None for p in sorted(parent.glob(pattern)) if p.is_dir()}
    return tuple(found)


def _variables(folder: Path) -> dict[str, str]:
    """CMake's folder variables, and OP_COMMON_DIR as the enclosing repository sets it."""
    variables = {"CMAKE_CURRENT_SOURCE_DIR": str(folder), "CMAKE_CURRENT_LIST_DIR": str(folder)}
    for parent in folder.parents:
        for name, words in _statements(parent / "CMakeLists.txt"):
            if name == "set" and len(words) == 2 and words[0] == "OP_COMMON_DIR":
                variables["CMAKE_SOURCE_DIR"] = str(parent)
                variables["OP_COMMON_DIR"] = words[1].replace("${CMAKE_CURRENT_SOURCE_DIR}", str(parent))
                return variables
    return variables


def _statements(file: Path) -> Iterator[tuple[str, list[str]]]:
    """(name, words) of each statement, comments dropped."""
    try:
        text = read_plain(file, _FILE_BYTES).decode(errors="replace")
    except OSError:
        return
    text = re.sub(r"#[^\n]*", "", text)
    for match in _STATEMENT.finditer(text):
        yield match["name"], [w.strip('"') for w in match["body"].split()]


def _resolve(word: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda m: variables.get(m[1], m[0]), word)


def _paths(words: list[str], folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    for word in words:
        for part in _resolve(word, variables).split(";"):
            if part not in ("", "PRIVATE", "PUBLIC", "INTERFACE") and "$" not in part:
                yield (folder / part).resolve()


def _glob(folder: Path, pattern: str) -> list[Path]:
    path = Path(pattern)
    if "$" in pattern or not path.name:
        return []
    base = path.parent if path.is_absolute() else folder / path.parent
    return sorted(base.glob(path.name)) if base.is_dir() else []
