"""Operators from the user's files: a folder in CANN's project layout, or one kernel file for direct launch.

CANN's layout: ``op_host/`` (definition, tiling, shape functions), ``op_kernel/`` (the kernel), and often a
``CMakeLists.txt`` that says which sources and options belong to the operator.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import OperatorError
from ..files import resolved
from ..nouns.operator import SHARED, DirectLaunch, Operator, Pair
from . import around
from .architectures import asked_elsewhere, functions_elsewhere, is_elsewhere
from .cmake_lists import BuildRules, read_build_rules
from .kernels import entries, find_entry, parameters_of, template_arguments
from .several import host_of, kernels_of, plain
from .texts import COMMENT, HEADERS, INCLUDE, KERNEL_SOURCES, NUMBER, SOURCES, TILING, is_foreign, read

_SHOWN = 4  # operators that a message names
_DEFINITION = re.compile(r"\bOP_ADD\b")
_SHAPES = re.compile(r"\bIMPL_OP_INFERSHAPE\b|\bSetInferShape\s*\(|\.\s*InferShape\s*\(")


def load_project(folder: Path, kernel_options: Sequence[str] = (), wanted: str = "") -> Operator:
    """The operator in ``folder`` (the one that has ``op_host/`` and ``op_kernel/``).

    Args:
        kernel_options: compile options in addition to those of the folder's CMakeLists.txt.
        wanted: which of the folder's operators, by its definition's or its kernel's name; default: the one called as
            the folder, else the only one.

    Raises:
        OperatorError: no such folder, no kernel, no host sources, no operator ``wanted``, or several and none called
            as the folder.
    """
    root = resolved(folder)
    if not root.is_dir():
        raise OperatorError(f"{folder} is not a folder.", "Give the folder that has op_host/ and op_kernel/.")
    try:
        str(root).encode()  # names of folders go into sources and keys
    except UnicodeEncodeError:
        if (names := sys.getfilesystemencoding()) != "utf-8":  # a locale's, where nobody says otherwise
            raise OperatorError(
                f"Python reads names of files as {names} here, and the folder {root} has other characters.",
                "Set PYTHONUTF8=1.",
            ) from None
        raise OperatorError(f"the name of the folder {root} is no UTF-8 text.", "Rename it.") from None
    for part in ("op_host", "op_kernel"):
        if not (root / part).is_dir():
            below = _operators_below(root)
            there = f"There are operators below it, for example {', '.join(below[:_SHOWN])}. " if below else ""
            raise OperatorError(
                f"{root} has no {part}/ folder, so it is no operator in CANN's project layout.",
                f"{there}Give the folder that has op_host/ and op_kernel/; for a single kernel file use --kernel.",
            )
    kernel = _read_files(root, "op_kernel", KERNEL_SOURCES + HEADERS)
    main, entry, others = find_entry(root, kernel, wanted)
    host = {p: t for p, t in _read_files(root, "op_host", SOURCES + HEADERS).items() if not is_foreign(Path(p), t)}
    if wanted or plain(entry) != plain(root.name):
        host, kernel = host_of(host, entry), kernels_of(kernel, others, main)
    kernel |= around.within(root, kernel)
    rules = read_build_rules(root)
    registered = around.registered_elsewhere(root, host, rules)
    own, shared = _host_sources(root, host, rules, registered)
    if not own and not shared:
        raise OperatorError(f"{root / 'op_host'} has no host sources.", "Put the definition and tiling function there.")
    # Shared sources are part of the pair: they hold the tiling function that is to be tuned.
    tilings, library = around.dependency_sources(rules.dependencies)
    common = tuple((f"{SHARED}/{p.name}", p) for p in (*shared, *tilings))
    host |= {key: read(path) for key, path in common}
    kernel_includes, options = _split_options([*rules.kernel_options, *kernel_options])
    beside = around.neighbours(root, host)
    named = {**host, **{str(header): text for header, text in beside.items()}}
    searched = tuple(
        dict.fromkeys([*around.searched(root, rules, {**named, **kernel}), *(p.parent for p in registered)])
    )
    above = around.above(root, rules, named, bool(searched))
    owners = around.owners(root, [*beside, *around.by_way(named, above)])
    beside_headers = [p for p in around.bodies_by_name(root, named, above) if p not in (*shared, *tilings, *library)]
    # What they call themselves has its bodies in the repository's library.
    theirs = around.bodies(root, [read(p) for p in beside_headers])
    beside_headers += [p for p in theirs if p not in (*shared, *tilings, *library, *beside_headers)]
    # So is the header that says what their tiling data are, and what leads to it.
    definitions = around.shared_definitions(root, host, (*rules.include_dirs, *searched, *above))
    host |= {key: read(path) for key, path in definitions}
    kernel, headers, ways = _with_headers(root, kernel, main, rules, (*kernel_includes, *searched))
    sources = own + tuple(key for key, _ in common)
    return Operator(
        name=entry if wanted else root.name,
        root=root,
        entry=entry,
        kernel_main=main,
        baseline=Pair(tiling=host, kernel=kernel),
        host_sources=sources,
        shared_sources=common + definitions + headers,
        library_sources=(*rules.library_sources, *library, *beside_headers),
        spare_sources=_spare_sources(root, owners, [*shared, *tilings, *library, *beside_headers], host, sources),
        shape_sources=_shape_sources(root, host, sources, rules.library_sources),
        host_include_dirs=tuple(
            dict.fromkeys([root / "op_host", *rules.include_dirs, *searched, *above, *around.outside_of(root, beside)])
        ),
        kernel_include_dirs=tuple(dict.fromkeys([*kernel_includes, *searched, *ways])),
        kernel_options=options,
        elsewhere=functions_elsewhere((root, *rules.dependencies, *around.operators_of(root, registered), *owners)),
    )


def _with_headers(
    root: Path, kernel: dict[str, str], main: str, rules: BuildRules, includes: Sequence[Path]
) -> tuple[dict[str, str], tuple[tuple[str, Path], ...], list[Path]]:
    """A kernel's files with headers of folders that several operators include, which are part of the pair;
    (key, file) of these headers; and the folders that its sources are searched in besides."""
    headers = around.shared_headers(root, kernel, Path(main).parent, includes)
    headers += around.dependency_kernels(rules.dependencies)
    files = {**kernel, **{key: read(path) for key, path in headers}}
    beside = {key: text for key, text in files.items() if (root / key).is_file()}
    reached = {str(path): read(path) for path in around.outside(root, beside)}
    ways = [*around.searched_by_kernels(root, {**files, **reached}), *around.beside_kernel(root, beside)]
    installed = around.installed(root, files, Path(main).parent)
    return {**files, **{key: read(path) for key, path in installed}}, headers + installed, ways


def _operators_below(root: Path) -> list[str]:
    """Folders with ``op_host/`` and ``op_kernel/``, up to three levels down."""
    hosts = (p for depth in range(1, 4) for p in sorted(root.glob("/".join(["*"] * depth + ["op_host"]))))
    return [str(p.parent) for p in hosts if (p.parent / "op_kernel").is_dir()]


def load_direct(
    kernel_file: Path, entry: str, block_dim: int, defines: Iterable[tuple[str, str]] = (), name: str = ""
) -> Operator:
    """A kernel without tiling function, launched on ``block_dim`` blocks.

    The pair's kernel is the file and what it includes from its own folder downwards; a host ``main`` and ``<<<>>>``
    launches in it are left as they are. Headers that it includes by a path out of its folder (``../op_host/tiling.h``)
    are read where they are.

    Args:
        entry: the ``__global__`` function; one that is a template with its arguments, ``scale<half>``.

    Raises:
        OperatorError: no such file, no ``__global__`` function called ``entry``, or a block dim below 1; template
            arguments that are missing, or too many.
    """
    file = resolved(kernel_file)
    if not file.is_file():
        raise OperatorError(f"the kernel file {kernel_file} does not exist.", "Check the path given to --kernel.")
    if block_dim < 1:
        raise OperatorError(f"block dim {block_dim} is below 1.", "Give the number of blocks the kernel needs.")
    files = _with_includes(file.parent, file.name)
    found = entries(files[file.name])
    base, _, arguments = entry.partition("<")
    if base not in found:
        known = f"Its kernels: {', '.join(found)}." if found else "It has no __global__ function."
        raise OperatorError(f"{file} has no kernel called {entry!r}.", known)
    given = tuple(defines)
    macros = [found for text in files.values() for found in NUMBER.findall(COMMENT.sub(" ", text))]
    template = template_arguments(files[file.name], base, arguments)
    return Operator(
        name=name or file.stem,
        root=file.parent,
        entry=entry,
        kernel_main=file.name,
        baseline=Pair(tiling={}, kernel=files),
        kernel_include_dirs=tuple(
            dict.fromkeys([file.parent, *(p.parent for p in around.outside(file.parent, files))])
        ),
        direct=DirectLaunch(
            block_dim,
            given,
            parameters_of(files[file.name], base, template, (*macros, *given)),
        ),
    )


def _read_files(root: Path, part: str, suffixes: tuple[str, ...]) -> dict[str, str]:
    files = sorted(p for p in (root / part).rglob("*") if p.suffix in suffixes and p.is_file())
    return {p.relative_to(root).as_posix(): read(p) for p in files if not is_elsewhere(p.relative_to(root))}


def _host_sources(
    root: Path, host: dict[str, str], rules: BuildRules, registered: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """(the pair's sources, shared ones outside the folder): those CMakeLists.txt names, else all of op_host/.

    Definition and tiling function are needed here whichever library they were written for: an author who wants no
    aclnn interface generated names no definition, one who relies on CANN's own tiling function names no tiling, and
    what a repository's own build functions add is not named at all. What they call comes with them.
    """
    own = [p.relative_to(root).as_posix() for p in rules.host_sources if p.is_relative_to(root)]
    own = [p for p in own if p in host]
    shared = [p for p in rules.host_sources if not p.is_relative_to(root)]
    sources = [p for p in host if Path(p).suffix in SOURCES]
    if not own:
        own = sources
    others = [read(p) for files in (*around.dependency_sources(rules.dependencies), registered) for p in files]
    bodies = around.bodies(root, [*host.values(), *others])
    shared += [p for p in (*around.siblings(root, host), *bodies, *registered) if p not in shared]
    for registration in (_DEFINITION, TILING):
        texts = [*(host[p] for p in own), *map(read, shared)]
        if not any(registration.search(t) for t in texts):
            own += [p for p in sources if registration.search(host[p])]
            own += around.called(own, {p: host[p] for p in sources})
    return tuple(own), tuple(shared)


def _spare_sources(
    root: Path, owners: Sequence[Path], used: Sequence[Path], host: dict[str, str], linked: Iterable[str]
) -> tuple[Path, ...]:
    """Sources that are compiled when a function is missing: those for other architectures that what is ``linked`` (keys
    of ``host``) asks on every chip, and neighbours' sources, none of the ``used``."""
    sources = set(linked)
    headers = (text for key, text in host.items() if key not in sources)
    asked = asked_elsewhere(root, (host[key] for key in sources), headers)
    found = around.spare_sources(root, owners, used)
    return (*asked, *found, *(s for s in around.led_to(root, used) if s not in found))


def _shape_sources(
    root: Path, host: dict[str, str], linked: Iterable[str], library: Iterable[Path]
) -> tuple[Path, ...]:
    """Sources of the folder that register shape functions, where none of those that are linked does (keys of ``host``,
    and a library's files)."""
    texts = [*(host[key] for key in linked), *map(read, library)]
    if any(_SHAPES.search(COMMENT.sub(" ", text)) for text in texts):
        return ()
    others = ((p, text) for p, text in host.items() if Path(p).suffix in SOURCES and (root / p).is_file())
    return tuple(root / p for p, text in others if _SHAPES.search(COMMENT.sub(" ", text)))


def _split_options(words: Iterable[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """(include folders, options that matter to the kernel); warnings and debug levels are the author's own."""
    includes: dict[Path, None] = {}
    options: dict[str, None] = {}
    for word in words:
        if word.startswith("-I"):
            includes[Path(word[2:])] = None
        elif word.startswith(("-D", "--cce-")):
            options[word] = None
    return tuple(includes), tuple(options)


def _with_includes(root: Path, main: str) -> dict[str, str]:
    """The file and what it includes by quotes from below ``root``, transitively."""
    files: dict[str, str] = {}
    pending = [main]
    while pending:
        path = pending.pop()
        files[path] = read(root / path)
        for included in INCLUDE.findall(files[path]):
            for base in ((root / path).parent, root):
                target = (base / included).resolve()
                if target.is_file() and target.is_relative_to(root):
                    relative = target.relative_to(root).as_posix()
                    if relative not in files and relative not in pending:
                        pending.append(relative)
                    break
    return files
