"""The few statements of an operator's CMakeLists.txt that decide how it is built.

Operator folders in CANN's project layout say there which host sources make the tiling and the shape library, which
folders are searched for headers, and which options the kernel compiler gets. This reads those statements as text; it
is no CMake interpreter: of variables it knows the folders below, ``set`` and ``file(GLOB ...)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..files import read_plain
from .texts import SOURCES

_FILE_BYTES = 4 << 20
# Libraries of the host side whose sources we want; ``opapi`` (hand-written aclnn interfaces) is not among them.
_HOST_TARGETS = ("optiling", "opsproto", "op_host_aclnn", "op_host_aclnnInner", "op_host_aclnnExc")
# The same in CANN's own repositories, behind a variable that the build sets.
_HOST_OBJECTS = ("}_tiling_obj", "}_infer_obj")
# What ``add_modules_sources`` takes of the folder of host sources.
_HOST_MODULES = ("*_def*.cpp", "*_infershape*.cpp", "*_tiling*.cpp", "op_tiling/**/*.cpp")
_UNIT = "ascend910b"  # how the repositories call the architecture of all chips here
_STATEMENT = re.compile(r"(?P<name>\w+)\s*\((?P<body>[^()]*)\)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class BuildRules:
    """``host_sources``, ``include_dirs``: existing absolute paths; ``kernel_options`` with variables resolved.

    ``library_sources``: host sources outside of the folder that a pattern found, nobody named: a repository's library.
    ``dependencies``: folders of other operators whose host headers and kernel files this one uses by name.
    """

    host_sources: tuple[Path, ...] = ()
    library_sources: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    kernel_options: tuple[str, ...] = ()
    dependencies: tuple[Path, ...] = ()


def read_build_rules(folder: Path) -> BuildRules:
    """What ``folder/CMakeLists.txt`` says, and ``op_host/``'s where that one has subdirectories or isn't there."""
    folder = folder.resolve()
    read = _Reading(folder, _variables(folder))
    if read.take(folder) or not (folder / "CMakeLists.txt").is_file():
        read.take(folder / "op_host")
    common = read.variables.get("OP_COMMON_DIR")
    if common and (Path(common) / "inc").is_dir():
        read.includes[Path(common) / "inc"] = None  # the repository adds it to every host library
    options = tuple(o for o in read.options if "${" not in o)
    library = {p for p in read.sources if str(p) in read.globbed and not p.is_relative_to(folder)}
    own = tuple(p for p in read.sources if p not in library)
    return BuildRules(own, tuple(sorted(library)), tuple(read.includes), options, tuple(read.dependencies))


@dataclass
class _Reading:
    """What the statements read so far say; a method for each kind, given its words."""

    folder: Path
    variables: dict[str, str]
    sources: dict[Path, None] = field(default_factory=dict)
    globbed: set[str] = field(default_factory=set)
    includes: dict[Path, None] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    dependencies: dict[Path, None] = field(default_factory=dict)

    def take(self, folder: Path) -> bool:
        """Reads ``folder``'s statements; whether there are subdirectories (which ones is often a loop's matter)."""
        self.folder = folder
        self.variables |= dict.fromkeys(("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR"), str(folder))
        goes_on = False
        for name, words in _statements(folder / "CMakeLists.txt"):
            goes_on |= name == "add_subdirectory"
            statement = _READ.get(name)
            if statement is not None and words:
                statement(self, words)
        return goes_on

    def set(self, words: list[str]) -> None:
        self.variables[words[0]] = ";".join(_resolve(w, self.variables) for w in words[1:])

    def file(self, words: list[str]) -> None:
        if words[0] in ("GLOB", "GLOB_RECURSE") and len(words) > 2:
            below = words[0] == "GLOB_RECURSE"
            found = [str(f) for w in words[2:] for f in _glob(self.folder, _resolve(w, self.variables), below)]
            self.variables[words[1]] = ";".join(found)
            self.globbed |= {str(Path(f).resolve()) for f in found}

    def target_sources(self, words: list[str]) -> None:
        found = (p for p in self._of_host(words) if p.suffix in SOURCES and p.is_file())  # headers stand there, too
        self.sources.update(dict.fromkeys(found))

    def target_include_directories(self, words: list[str]) -> None:
        self.includes.update(dict.fromkeys(p for p in self._of_host(words) if p.is_dir()))

    def add_ops_compile_options(self, words: list[str]) -> None:
        if "OPTIONS" in words:
            self.options += [_resolve(w, self.variables) for w in words[words.index("OPTIONS") + 1 :]]

    def add_modules_sources(self, words: list[str]) -> None:
        """The macro with which CANN's own repositories add what they know by its name."""
        self._modules(words, self.folder)

    def add_all_modules_sources(self, words: list[str]) -> None:
        """Its newer form, for all folders of an operator at once: what is the host's is in ``op_host/``."""
        self._modules(words, self.folder / "op_host")

    def add_dependent_ops(self, words: list[str]) -> None:
        self._depends(_resolve(w, self.variables) for w in words)

    def _modules(self, words: list[str], host: Path) -> None:
        """``TILING_DIR`` has a folder of tilings for each ``COMPUTE_UNIT``; ``DEPENDENCIES`` are other operators."""
        given = _by_keyword([_resolve(w, self.variables) for w in words])
        units = [u for text in given.get("COMPUTE_UNIT", []) for u in text.split(";")]
        folders = [f for text in given.get("TILING_DIR", []) for f in text.split(";")]
        ours = {f for unit, f in zip(units, folders, strict=False) if unit == _UNIT}
        found = [f for pattern in _HOST_MODULES for f in sorted(host.glob(pattern))]
        found += [f for folder in sorted(ours) if folder for f in sorted((host / folder).glob("*.cpp"))]
        self.sources.update(dict.fromkeys(found))
        self._depends(given.get("DEPENDENCIES", []))

    def _depends(self, words: Iterable[str]) -> None:
        for name in (n for word in words for n in word.split(";") if n):
            self.dependencies.update(dict.fromkeys(_named(name, self.folder)))

    def _of_host(self, words: list[str]) -> Iterable[Path]:
        ours = words[0] in _HOST_TARGETS or words[0].endswith(_HOST_OBJECTS)
        return _paths(words[1:], self.folder, self.variables) if ours else ()


_READ = {
    "set": _Reading.set,
    "file": _Reading.file,
    "target_sources": _Reading.target_sources,
    "target_include_directories": _Reading.target_include_directories,
    "add_modules_sources": _Reading.add_modules_sources,
    "add_all_modules_sources": _Reading.add_all_modules_sources,
    "add_dependent_ops": _Reading.add_dependent_ops,
    "add_ops_compile_options": _Reading.add_ops_compile_options,
}


def _by_keyword(words: Iterable[str]) -> dict[str, list[str]]:
    """The words behind each word in capitals."""
    found: dict[str, list[str]] = {}
    key = ""
    for word in words:
        if re.fullmatch(r"[A-Z_]{3,}", word):
            key = word
        else:
            found.setdefault(key, []).append(word)
    return found


def _named(name: str, folder: Path) -> Iterator[Path]:
    """The nearest folder of that name beside an ancestor of ``folder``, or one level below it, with sources in it."""
    for parent in folder.parents:
        for pattern in (name, f"*/{name}"):
            found = [p for p in sorted(parent.glob(pattern)) if (p / "op_host").is_dir() or (p / "op_kernel").is_dir()]
            if found:
                yield found[0]
                return
        if not (parent.parent / "CMakeLists.txt").is_file():
            return


def repository(folder: Path) -> tuple[Path, ...]:
    """The folders above ``folder`` that belong to its repository, the top last: those with a CMakeLists.txt, and single
    ones between them that have none (a folder of folders whose operators the top lists itself); more of them where the
    top says by its license that it is one.
    """
    found: list[Path] = []
    skipped: list[Path] = []
    for parent in folder.parents:
        if (parent / "CMakeLists.txt").is_file():
            found += [*skipped, parent]
            skipped = []
        elif skipped or not found:
            break
        else:
            skipped.append(parent)
    above = list(folder.parents)
    top = next((i for i, parent in enumerate(above) if _is_top(parent)), -1)
    return tuple(above[: top + 1] if top + 1 > len(found) else found)


def _is_top(folder: Path) -> bool:
    return (folder / "CMakeLists.txt").is_file() and any((folder / name).exists() for name in ("LICENSE", ".git"))


def shared_include_dirs(folder: Path) -> tuple[Path, ...]:
    """Folders called ``include`` or ``inc`` of the repository ``folder`` lies in, at most one level below an ancestor,
    and their ``op_host``, as CANN's own repositories search it (cmake/variables.cmake).

    A repository adds them to all its operators by statements of its own, which this module doesn't read.
    """
    found: dict[Path, None] = {}
    for parent in repository(folder.resolve()):
        for pattern in ("include", "inc", "*/include", "*/inc"):
            for place in sorted(parent.glob(pattern)):
                found |= {p: None for p in (place, place / "op_host") if p.is_dir()}
    return tuple(found)


def bodies_of(include: Path) -> Path | None:
    """Where the bodies of a shared folder's headers are: its ``src``; None where there is none."""
    nested = include.name == "op_host"
    place = include.parent.parent / "src" / "op_host" if nested else include.parent / "src"
    return place if place.is_dir() else None


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


def _glob(folder: Path, pattern: str, below: bool) -> list[Path]:
    path = Path(pattern)
    if "$" in pattern or not path.name:
        return []
    base = path.parent if path.is_absolute() else folder / path.parent
    if not base.is_dir():
        return []
    return sorted(base.rglob(path.name) if below else base.glob(path.name))
