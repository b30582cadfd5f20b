"""What belongs to an operator and lies outside of its folder: in its repository, as the build there finds it.

Three ways lead there: a build file that names another operator (a dependency), a header that is included by its name or
by a path, and a function that is called or registered and has its body elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from ..nouns.operator import SHARED
from .architectures import is_elsewhere
from .cmake_lists import BuildRules, bodies_of, repository, shared_include_dirs
from .texts import HEADERS, INCLUDE, KERNEL_SOURCES, SOURCES, TILING, is_foreign, read

_ANY_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_DEFINITION = re.compile(r"_def(?:_|$)")  # pp_matmul_default isn't one
_OPERATOR = re.compile(r"\bOP_ADD\(\s*(\w+)")
_OWN = ("op_kernel", "op_host")
_TILING_DATA = re.compile(r"\bBEGIN_TILING_DATA_DEF\b")
_ANSWERED = {"legacy_common_manager.h"}  # libvnpu_host.so has its body (vnpu/host/src/legacy.cpp)
_CALL = re.compile(r"\b(\w+)\s*\(")
_FUNCTION = re.compile(r"^[A-Za-z_][\w:<>&*\s]*?\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{", re.MULTILINE)


def registered_elsewhere(root: Path, host: Mapping[str, str], rules: BuildRules) -> tuple[Path, ...]:
    """Where the operator registers no tiling function: the source of a folder beside ``root`` that registers one for
    it (one program for operators of a kind), and those of that folder with functions that it calls."""
    texts = [*host.values(), *map(read, rules.host_sources)]
    names = [] if any(map(TILING.search, texts)) else [n for text in texts for n in _OPERATOR.findall(text)]
    if not names:
        return ()
    registers = re.compile(rf"\bIMPL_OP(?:_OPTILING)?\(\s*(?:{'|'.join(names)})\s*\)")
    sources = (p for p in sorted(root.parent.glob("*/op_host/**/*.cpp")) if not p.is_relative_to(root))
    ours = [p for p in sources if not is_elsewhere(p.relative_to(root.parent))]
    found = [p for p in ours if registers.search(read(p))][:1]
    beside = [p for p in ours if operators_of(root, [p]) == operators_of(root, found)]
    called = {word for p in found for word in _CALL.findall(read(p))}
    return (*found, *(p for p in beside if p not in found and called & set(_FUNCTION.findall(read(p)))))


def operators_of(root: Path, sources: Iterable[Path]) -> list[Path]:
    """The folders beside ``root`` that ``sources`` lie in."""
    return list(dict.fromkeys(root.parent / p.relative_to(root.parent).parts[0] for p in sources))


def called(own: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """Those of an operator's ``sources`` (by key) that define functions which its sources ``own`` call, and so on."""
    defined = {key: set(_FUNCTION.findall(text)) for key, text in sources.items() if key not in own}
    found: list[str] = []
    pending = [sources[key] for key in own if key in sources]
    while pending:
        words = set(_CALL.findall(pending.pop()))
        for key in [key for key, functions in defined.items() if key not in found and words & functions]:
            found.append(key)
            pending.append(sources[key])
    return found


def owners(root: Path, headers: Iterable[Path]) -> list[Path]:
    """The folders of the other operators that these headers belong to."""
    found = (p for header in headers if not header.is_relative_to(root) for p in header.parents if p.name == "op_host")
    return list(dict.fromkeys(p.parent for p in found))


def by_way(files: Mapping[str, str], above: Sequence[Path]) -> list[Path]:
    """Headers that these files include by their way from a folder ``above``, and so on from there, also by a path."""
    found: dict[Path, None] = {}
    pending = [(folder, name) for text in files.values() for name in INCLUDE.findall(text) for folder in above]
    while pending:
        folder, name = pending.pop()
        header = (folder / name).resolve()
        if header not in found and header.is_file() and any(header.is_relative_to(top) for top in above):
            found[header] = None
            pending += [(f, more) for more in INCLUDE.findall(read(header)) for f in (header.parent, *above)]
    return list(found)


def spare_sources(root: Path, folders: Sequence[Path], used: Sequence[Path]) -> tuple[Path, ...]:
    """Host sources in the folders of other operators that don't say what these operators are, and what they call of the
    repository's own library; none of the ``used``."""
    tilings, library = dependency_sources(folders)
    found = [*tilings, *library]
    return tuple(p for p in (*found, *bodies(root, list(map(read, found)))) if p not in used)


def searched(root: Path, rules: BuildRules, files: dict[str, str]) -> tuple[Path, ...]:
    """Folders that the operator's repository searches for headers: shared ones, and those of the operators this one
    depends on."""
    shared = shared_include_dirs(root)
    own = (d / "op_host" for d in rules.dependencies if (d / "op_host").is_dir())
    return tuple(dict.fromkeys([*(shared if rules.dependencies else _used(shared, files)), *own]))


def searched_by_kernels(root: Path, kernel: dict[str, str]) -> tuple[Path, ...]:
    """``op_kernel`` of the repository's shared folders, if a kernel file includes something of one by its name."""
    return _used(tuple(d for p in shared_include_dirs(root) if (d := p / "op_kernel").is_dir()), kernel)


def above(root: Path, rules: BuildRules, host: dict[str, str], shares: bool) -> tuple[Path, ...]:
    """Folders of the repository from which host sources name headers by their way: the top of one that shares headers,
    and those below it that have what is named (operators of one kind)."""
    above = repository(root)
    named = [p for p in above if _used((p,), host)]
    return tuple(dict.fromkeys([*named, *(above[-1:] if shares or rules.dependencies else ())]))


def _used(folders: tuple[Path, ...], files: dict[str, str]) -> tuple[Path, ...]:
    """All of ``folders`` if a file includes something from one of them (a header of one may include one of another)."""
    included = {name for text in files.values() for name in _ANY_INCLUDE.findall(text)}
    return folders if any((folder / name).is_file() for folder in folders for name in included) else ()


def shared_headers(
    root: Path, kernel: dict[str, str], folder: Path, include_dirs: Sequence[Path]
) -> tuple[tuple[str, Path], ...]:
    """(key beside the kernel, file) of headers outside ``root`` that the kernel includes by name, transitively.

    None at all where one of them includes something by a path: it would not be found from its new place.
    """
    found: dict[str, Path] = {}
    pending = [(root / path, text) for path, text in kernel.items()]
    while pending:
        file, text = pending.pop(0)
        for name in INCLUDE.findall(text):
            if (file.parent / name).is_file() and (file.parent.is_relative_to(root) or "/" in name):
                if not file.is_relative_to(root):
                    return ()
                continue
            header = next((d / name for d in include_dirs if (d / name).is_file()), None)
            if header is None or "/" in name or f"{folder}/{name}" in found or header.is_relative_to(root):
                continue
            found[f"{folder}/{name}"] = header
            pending.append((header, read(header)))
    return tuple(found.items())


def installed(root: Path, kernel: Mapping[str, str], folder: Path) -> tuple[tuple[str, Path], ...]:
    """(key, file) of headers that kernel files find where CANN's build installs them, and nowhere in the repository.

    It copies what lies in ``NAME/op_kernel`` to ``NAME`` beside the kernel's folder, be NAME an operator or a shared
    folder (``common/inc`` is ``inc``), so ``../NAME/x.h`` is the header ``x.h`` of ``op_kernel`` in the nearest folder
    called so. ``folder``: the main file's, which a compiler searches, too.
    """
    found: dict[str, Path] = {}
    pending = [(PurePosixPath(key).parent, root / key, text) for key, text in kernel.items()]
    while pending:
        beside, file, text = pending.pop()
        for name in INCLUDE.findall(text):
            keys = [os.path.normpath(base / name) for base in (beside, folder)]
            if any(key in kernel or key in found for key in keys) or ((file.parent / name).is_file() and ".." in name):
                continue
            for key in dict.fromkeys(keys):
                header = _installed_as(root, PurePosixPath(key))
                if header is not None:
                    found[key] = header
                    pending.append((PurePosixPath(key).parent, header, read(header)))
                    break
    return tuple(found.items())


def _installed_as(root: Path, key: PurePosixPath) -> Path | None:
    """The file that is installed as ``key`` beside the kernel's folder, which is none of the operator's own."""
    name, rest = "".join(key.parts[:1]), PurePosixPath(*key.parts[1:])
    if len(key.parts) < 2 or name in ("..", "/", *_OWN) or is_elsewhere(Path(key)):
        return None
    beside = (root.parent / name,)  # of operators that no repository's build lists
    places = (p for top in repository(root) for pattern in (name, f"*/{name}") for p in sorted(top.glob(pattern)))
    return next((f for p in (*beside, *places) if (f := p / "op_kernel" / rest).is_file()), None)


def within(root: Path, kernel: Mapping[str, str]) -> dict[str, str]:
    """(key, text) of the operator's own files that kernel files include by a path and that lie neither in
    ``op_kernel`` nor in ``op_host``, which is the tiling program's."""
    found: dict[str, str] = {}
    pending = list(kernel.items())
    while pending:
        key, text = pending.pop()
        for name in INCLUDE.findall(text):
            other = os.path.normpath(PurePosixPath(key).parent / name)
            beside = not {"..", "/", *_OWN}.intersection(PurePosixPath(other).parts[:1])
            if beside and (root / other).is_file() and other not in {**kernel, **found}:
                found[other] = read(root / other)
                pending.append((other, found[other]))
    return found


def beside_kernel(root: Path, kernel: Mapping[str, str]) -> list[Path]:
    """Folders to search for headers that kernel files include by their way through the repository: where the way begins
    and where it ends."""
    found: dict[Path, None] = {}
    for key, text in kernel.items():
        for name in INCLUDE.findall(text):
            file = (root / key).parent / name
            header = file.resolve()
            if ".." in PurePosixPath(name).parts and header.is_file() and not header.is_relative_to(root):
                found[(root / key).parent] = None
    return [*found, *(p.parent for p in outside(root, kernel))]


def shared_definitions(root: Path, host: dict[str, str], include_dirs: Sequence[Path]) -> tuple[tuple[str, Path], ...]:
    """(key, file) of headers outside ``root`` that define tiling data, and of what includes them or they include.

    None at all where one of them includes something by a path out of its folder: it would not be found from its place.
    """
    found: dict[str, Path] = {}
    for included in dict.fromkeys(name for text in host.values() for name in INCLUDE.findall(text)):
        together: dict[str, Path] = {}
        pending: list[tuple[tuple[str, Path] | None, str]] = [(None, included)]
        while pending:
            beside, name = pending.pop()
            key, header = _definition(beside, name, include_dirs)
            if header is None or key in together or header.is_relative_to(root):
                continue
            together[key] = header
            pending += [((key, header), more) for more in INCLUDE.findall(read(header))]
        if any(_TILING_DATA.search(read(p)) for p in together.values()):
            found |= together
    return () if any(".." in key for key in found) else tuple(found.items())


def _definition(beside: tuple[str, Path] | None, name: str, include_dirs: Sequence[Path]) -> tuple[str, Path | None]:
    """Key and file of what is included as ``name``, by the header ``beside`` (its key and file) or by a source."""
    if beside is not None and (beside[1].parent / name).is_file():
        return str(PurePosixPath(beside[0]).parent / name), beside[1].parent / name
    return f"{SHARED}/{name}", next((d / name for d in include_dirs if (d / name).is_file()), None)


def neighbours(root: Path, host: dict[str, str]) -> dict[Path, str]:
    """Headers of the repository that host files include by a path from where they are, and so on from there, with their
    texts: a compiler has to be let read them, and what they include is searched for as well. They lie outside of
    ``root``, or in it and are no part of the pair (those for other architectures).
    """
    top = repository(root)[-1:]
    found: dict[Path, str] = {}
    seen = {(root / path).resolve() for path in host}
    pending = [((root / path).parent, text) for path, text in host.items()]
    while pending:
        folder, text = pending.pop()
        for included in INCLUDE.findall(text):
            header = (folder / included).resolve()
            if not top or header in seen or not header.is_relative_to(top[0]) or not header.is_file():
                continue
            seen.add(header)
            found[header] = read(header)
            pending.append((header.parent, found[header]))
    return found


def outside_of(root: Path, headers: Iterable[Path]) -> list[Path]:
    """The folders of those ``headers`` that lie outside of ``root``."""
    return [p.parent for p in headers if not p.is_relative_to(root)]


def outside(root: Path, files: Mapping[str, str]) -> list[Path]:
    """Headers outside ``root`` that these files of it include by a path from where they are, and so on from there."""
    found: dict[Path, None] = {}
    pending = [((root / path).parent, text) for path, text in files.items()]
    while pending:
        folder, text = pending.pop()
        for included in INCLUDE.findall(text):
            header = (folder / included).resolve()
            if (
                header.suffix in HEADERS
                and header not in found
                and not header.is_relative_to(root)
                and header.is_file()
            ):
                found[header] = None
                pending.append((header.parent, read(header)))
    return list(found)


def siblings(root: Path, host: dict[str, str]) -> list[Path]:
    """Sources of neighbouring operators whose headers the host files include by a path that leads out of ``root``.

    One library holds all operators of a repository, so the bodies of such a header, in the source of the same name
    beside it, are found there.
    """
    found: dict[Path, None] = {}
    for path, text in host.items():
        for included in INCLUDE.findall(text):
            header = ((root / path).parent / included).resolve()
            if not header.is_relative_to(root) and header.is_file():
                found |= {s: None for s in map(header.with_suffix, SOURCES) if s.is_file()}
    return list(found)


def led_to(root: Path, sources: Sequence[Path]) -> list[Path]:
    """What ``sources`` of neighbours lead to in turn: those beside headers that they include by a path, and so on; not
    what is for another architecture."""
    found: dict[Path, None] = {}
    pending = [(s.parent, read(s)) for s in sources if not s.is_relative_to(root)]
    while pending:
        folder, text = pending.pop(0)
        for included in INCLUDE.findall(text):
            header = (folder / included).resolve()
            beside = map(header.with_suffix, SOURCES) if header.is_file() and not header.is_relative_to(root) else ()
            more = [s for s in beside if s.is_file() and s not in found and s not in sources and not _is_elsewhere(s)]
            found |= dict.fromkeys(more)
            pending += [(s.parent, read(s)) for s in more]
    return list(found)


def _is_elsewhere(source: Path) -> bool:
    """Is a host source of any operator for another architecture?"""
    folder = next((p.parent for p in source.parents if p.name == "op_host"), source.parent)
    return is_elsewhere(source.relative_to(folder))


def bodies_by_name(root: Path, files: Mapping[str, str], above: Sequence[Path]) -> list[Path]:
    """Sources beside headers that are included by their way from a folder ``above``, where they have a body for a
    function that ``files`` call."""
    words = {word for text in files.values() for word in _CALL.findall(text)}
    found: dict[Path, None] = {}
    for name in dict.fromkeys(n for text in files.values() for n in INCLUDE.findall(text)):
        header = next((folder / name for folder in above if (folder / name).is_file()), None)
        if header is None or header.is_relative_to(root):
            continue
        for source in filter(Path.is_file, map(header.with_suffix, SOURCES)):
            if words & set(_FUNCTION.findall(read(source))):
                found[source] = None
    return list(found)


def dependency_sources(folders: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """(sources with tiling functions, the rest of their library) of the operators that one depends on."""
    tilings: list[Path] = []
    library: list[Path] = []
    for folder in folders:
        for file in sorted((folder / "op_host").rglob("*.cpp")):
            inside = file.relative_to(folder)
            other = _DEFINITION.search(file.stem) or "infershape" in file.stem  # what the other operator is
            if not other and not is_elsewhere(inside) and not is_foreign(inside, read(file)):
                (tilings if "_tiling" in file.stem else library).append(file)
    return tuple(tilings), tuple(library)


def dependency_kernels(folders: Sequence[Path]) -> tuple[tuple[str, Path], ...]:
    """(key, file) of kernel files of the operators that one depends on: beside its own, in folders of their names."""
    return tuple(
        (f"{folder.name}/{file.relative_to(folder / 'op_kernel').as_posix()}", file)
        for folder in folders
        for file in sorted((folder / "op_kernel").rglob("*"))
        if file.suffix in KERNEL_SOURCES + HEADERS and not is_elsewhere(file.relative_to(folder))
    )


def bodies(root: Path, texts: Sequence[str]) -> list[Path]:
    """Sources of the repository's own library with functions that these texts call: what ``include/a/b.h`` of the
    repository declares has its body in ``src/a/b.cpp`` beside that folder."""
    folders = {f: bodies for f in shared_include_dirs(root) if (bodies := bodies_of(f)) is not None}
    pending = [name for text in texts for name in _ANY_INCLUDE.findall(text)]
    words = {word for text in texts for word in _CALL.findall(text)}
    seen: set[str] = set()
    found: dict[Path, None] = {}
    while pending:
        name = pending.pop()
        header = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if name in seen or header is None:
            continue
        seen.add(name)
        pending += _ANY_INCLUDE.findall(read(header))
        if header.name in _ANSWERED:
            continue
        folder = next(f for f in folders if header == f / name)
        body = (folders[folder] / name).with_suffix(".cpp")
        if body.is_file() and words & set(_FUNCTION.findall(read(body))):
            found[body] = None
            pending += _ANY_INCLUDE.findall(read(body))  # what it calls has a body, too
            words |= set(_CALL.findall(read(body)))
    return list(found)
