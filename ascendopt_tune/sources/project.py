"""Operators from the user's files: a folder in CANN's project layout, or one kernel file for direct launch.

CANN's layout: ``op_host/`` (definition, tiling, shape functions), ``op_kernel/`` (the kernel), and often a
``CMakeLists.txt`` that says which sources and options belong to the operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from ..errors import OperatorError
from ..files import read_plain, resolved
from ..nouns.operator import SHARED, SOURCE_LIMIT, DirectLaunch, Operator, Pair
from .architectures import functions_elsewhere, is_elsewhere
from .cmake_lists import BuildRules, bodies_of, read_build_rules, repository, shared_include_dirs
from .conditions import unused_branches
from .several import host_of, kernels_of, plain

_SHOWN = 4  # operators that a message names
_SOURCES = (".cpp", ".cc")
_HEADERS = (".h", ".hpp", ".inc")
_KERNEL_SOURCES = (".cpp", ".cc", ".asc")
_ENTRY = re.compile(r"__global__(?:\s+|__\w+__|\[\w+\]|__attribute__\(\(.*?\)\))*\s*void\s+(\w+)\s*\(")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_KERNEL_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)\((\w+(?:\s*,\s*\w+)*)\)(.*__global__.*)$", re.MULTILINE)
_ANY_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_NUMBER = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\d+)[uUlL]*\s*$", re.MULTILINE)
_DEFINITION = re.compile(r"\bOP_ADD\b")
_OPERATOR = re.compile(r"\bOP_ADD\(\s*(\w+)")
_TILING = re.compile(r"\bIMPL_OP(_OPTILING)?\b|\bSetTiling\b")
_TILING_DATA = re.compile(r"\bBEGIN_TILING_DATA_DEF\b")
_OTHER_LIBRARIES = re.compile(r'"opdev/(?:make_)?op_executor\.h"|^\s*REG_OP\s*\(', re.MULTILINE)
_FUNCTION = re.compile(r"^[A-Za-z_][\w:<>&*\s]*?\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


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
        raise OperatorError(f"the name of the folder {root} is no UTF-8 text.", "Rename it.") from None
    for part in ("op_host", "op_kernel"):
        if not (root / part).is_dir():
            below = _operators_below(root)
            there = f"There are operators below it, for example {', '.join(below[:_SHOWN])}. " if below else ""
            raise OperatorError(
                f"{root} has no {part}/ folder, so it is no operator in CANN's project layout.",
                f"{there}Give the folder that has op_host/ and op_kernel/; for a single kernel file use --kernel.",
            )
    kernel = _read_files(root, "op_kernel", _KERNEL_SOURCES + _HEADERS)
    main, entry, others = _find_entry(root, kernel, wanted)
    host = {p: t for p, t in _read_files(root, "op_host", _SOURCES + _HEADERS).items() if not _is_foreign(Path(p), t)}
    if wanted or plain(entry) != plain(root.name):
        host, kernel = host_of(host, entry), kernels_of(kernel, others, main)
    rules = read_build_rules(root)
    registered = _registered_elsewhere(root, host, rules)
    own, shared = _host_sources(root, host, rules, registered)
    if not own and not shared:
        raise OperatorError(f"{root / 'op_host'} has no host sources.", "Put the definition and tiling function there.")
    # Shared sources are part of the pair: they hold the tiling function that is to be tuned.
    tilings, library = _dependency_sources(rules.dependencies)
    common = tuple((f"{SHARED}/{p.name}", p) for p in (*shared, *tilings))
    host |= {key: _read(path) for key, path in common}
    kernel_includes, options = _split_options([*rules.kernel_options, *kernel_options])
    beside = _neighbours(root, host)
    named = {**host, **{str(header): text for header, text in beside.items()}}
    searched = tuple(dict.fromkeys([*_searched(root, rules, {**named, **kernel}), *(p.parent for p in registered)]))
    above = _above(root, rules, named, bool(searched))
    beside_headers = [p for p in _bodies_by_name(root, named, above) if p not in (*shared, *tilings, *library)]
    # So is the header that says what their tiling data are, and what leads to it.
    definitions = _shared_definitions(root, host, (*rules.include_dirs, *searched, *above))
    host |= {key: _read(path) for key, path in definitions}
    # So are headers of the kernel that lie in a folder several operators include.
    headers = _shared_headers(root, kernel, Path(main).parent, (*kernel_includes, *searched))
    headers += _dependency_kernels(rules.dependencies)
    kernel |= {key: _read(path) for key, path in headers}
    return Operator(
        name=entry if wanted else root.name,
        root=root,
        entry=entry,
        kernel_main=main,
        baseline=Pair(tiling=host, kernel=kernel),
        host_sources=own + tuple(key for key, _ in common),
        shared_sources=common + definitions + headers,
        library_sources=(*rules.library_sources, *library, *beside_headers),
        host_include_dirs=tuple(
            dict.fromkeys([root / "op_host", *rules.include_dirs, *searched, *above, *_outside_of(root, beside)])
        ),
        kernel_include_dirs=tuple(dict.fromkeys([*kernel_includes, *searched])),
        kernel_options=options,
        elsewhere=functions_elsewhere((root, *rules.dependencies, *_operators_of(root, registered))),
    )


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
    found = _entries(files[file.name])
    base, _, arguments = entry.partition("<")
    if base not in found:
        known = f"Its kernels: {', '.join(found)}." if found else "It has no __global__ function."
        raise OperatorError(f"{file} has no kernel called {entry!r}.", known)
    given = tuple(defines)
    macros = [found for text in files.values() for found in _NUMBER.findall(_COMMENT.sub(" ", text))]
    template = _template_arguments(files[file.name], base, arguments)
    return Operator(
        name=name or file.stem,
        root=file.parent,
        entry=entry,
        kernel_main=file.name,
        baseline=Pair(tiling={}, kernel=files),
        kernel_include_dirs=tuple(dict.fromkeys([file.parent, *(p.parent for p in _outside(file.parent, files))])),
        direct=DirectLaunch(
            block_dim,
            given,
            parameters_of(files[file.name], base, template, (*macros, *given)),
        ),
    )


def kernels_in(kernel_file: Path) -> dict[str, int | None]:
    """The ``__global__`` functions of a file, each with the number of blocks its ``<<<>>>`` launch there says, if any.

    Raises:
        OperatorError: no such file.
    """
    file = kernel_file.expanduser()
    if not file.is_file():
        raise OperatorError(f"the kernel file {kernel_file} does not exist.", "Check the path given to --kernel.")
    text = _COMMENT.sub(" ", _read(file))
    found: dict[str, int | None] = {}
    for entry in _entries(text):
        launch = re.search(rf"\b{entry}\s*(?:<[^<>]*>)?\s*<<<\s*(\w+)", text)
        value = launch[1] if launch is not None else ""
        named = re.search(rf"\b{value}\s*=\s*(\d+)\s*[;,]", text) if value and not value.isdigit() else None
        number = value if value.isdigit() else named[1] if named is not None else ""
        found[entry] = int(number) if number else None
    return found


def template_parameters(text: str, entry: str) -> list[tuple[str, str]]:
    """(kind, name) of a kernel's template parameters: ``("typename", "T")``, ``("int", "N")``; empty for others.

    A kernel of that name with C's linkage is the one that is launched, whatever templates there are beside it.
    """
    text = _compiled(text)
    entry = re.escape(entry)
    plain = re.search(rf'\bextern\s*"C"[^;{{}}()]*\bvoid\s+{entry}\s*\(', text)
    found = re.search(rf"\btemplate\s*<([^<>]*)>[^;{{}}()]*\bvoid\s+{entry}\s*\(", text) if plain is None else None
    parts = [part.partition("=")[0].split() for part in found[1].split(",")] if found else []
    return [(" ".join(words[:-1]), words[-1]) for words in parts]


def parameters_of(
    text: str, entry: str, arguments: Sequence[str] = (), defines: Iterable[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """(name, C type) of the kernel's parameters, as written in its definition; a template's with its arguments.

    Raises:
        OperatorError: which parameters there are hangs on a macro that neither ``defines`` nor the text gives a number.
    """
    names = [name for _, name in template_parameters(text, entry)]
    known = dict([*_NUMBER.findall(text), *defines])
    compiled = _compiled(text, {name: int(value) for name, value in known.items() if value.isdigit()})
    match = re.search(rf"\bvoid\s+{re.escape(entry)}\s*\(([^)]*)\)", _pasted(compiled))
    listed = match[1] if match else ""
    if unknown := re.search(r"^\s*#\s*(?:el)?if\w*\s+(.*?)\s*$", listed, re.MULTILINE):
        raise OperatorError(
            f"which parameters {entry} has hangs on whether {unknown[1]}.", "Say so: -D MACRO=NUMBER for its macros."
        )
    found = []
    for part in listed.split(",") if listed.strip() not in ("", "void") else []:
        words = re.findall(r"\w+|\*", part.partition("=")[0])
        words = [w for w in words if not w.startswith("__")]  # address qualifiers
        words[:-1] = [dict(zip(names, arguments, strict=False)).get(w, w) for w in words[:-1]]
        found.append((words[-1], " ".join(words[:-1])))
    return tuple(found)


def _compiled(text: str, macros: Mapping[str, int] | None = None) -> str:
    """The text without comments, and blanks for branches of ``#if`` that are known to be left out."""
    compiled = bytearray(_COMMENT.sub(" ", text).encode())
    for start, end in unused_branches(bytes(compiled), macros):
        compiled[start:end] = re.sub(rb"[^\n]", b" ", bytes(compiled[start:end]))
    return compiled.decode()


def _template_arguments(text: str, entry: str, given: str) -> list[str]:
    """The arguments of ``scale<half>``. Raises OperatorError where they don't fit the kernel."""
    arguments = [a.strip() for a in given.rstrip("> ").split(",") if a.strip()]
    template = template_parameters(text, entry)
    if len(arguments) > len(template) or (template and not arguments):
        wanted = ", ".join(f"{kind} {name}" for kind, name in template)
        text = f"is a template <{wanted}>" if template else "is no template"
        raise OperatorError(f"{entry} {text}.", f"Name it as --entry '{entry}{'<...>' if template else ''}'.")
    return arguments


def _read_files(root: Path, part: str, suffixes: tuple[str, ...]) -> dict[str, str]:
    files = sorted(p for p in (root / part).rglob("*") if p.suffix in suffixes and p.is_file())
    return {p.relative_to(root).as_posix(): _read(p) for p in files if not is_elsewhere(p.relative_to(root))}


def _read(file: Path) -> str:
    try:
        return read_plain(file, SOURCE_LIMIT).decode("utf-8-sig", errors="replace")  # its mark is none of C++'s
    except OSError as e:
        raise OperatorError(f"{file} can't be read: {e.strerror}.") from e


def _is_foreign(path: Path, text: str) -> bool:
    """Hand-written aclnn interfaces and graph nodes belong to other libraries and need headers nobody else does."""
    if {"op_api", "op_graph"} & set(path.parts):
        return True
    return path.name.startswith("aclnn_") or path.stem.endswith("_l0") or bool(_OTHER_LIBRARIES.search(text))


def _entries(text: str) -> list[str]:
    return list(dict.fromkeys(_ENTRY.findall(_pasted(_COMMENT.sub(" ", text)))))


def _pasted(text: str) -> str:
    """The text and, behind it, the bodies of its macros that define kernels, for every use of them.

    So are kernels written that exist for several types: ``DECLARE(half)`` defines ``scale_half``.
    """
    text = re.sub(r"\\\s*\n", " ", text)
    parts = [text]
    for name, listed, body in _KERNEL_MACRO.findall(text):
        parameters = [parameter.strip() for parameter in listed.split(",")]
        for given in re.findall(rf"^\s*{name}\(([^()]*)\)", text, re.MULTILINE):
            arguments = [argument.strip() for argument in given.split(",")]
            if len(arguments) == len(parameters):
                parts.append(_expanded(body, dict(zip(parameters, arguments, strict=True))))
    return "\n".join(parts)


def _expanded(body: str, values: Mapping[str, str]) -> str:
    """The macro's body with its parameters' values, pasted where ``##`` says so."""
    either = "|".join(values)
    body = re.sub(rf"\s*##\s*({either})\b|\b({either})\b", lambda m: values[m[1] or m[2]], body)
    return re.sub(r"\s*##\s*", "", body)


def _find_entry(root: Path, kernel: dict[str, str], wanted: str) -> tuple[str, str, dict[str, str]]:
    """(path, function) of the kernel: the wanted one, the one called as the folder or as its file, else the only one;
    and the path of each kernel that might have been meant, by its function."""
    found = [(p, e) for p, t in kernel.items() if Path(p).suffix in _KERNEL_SOURCES for e in _entries(t)]
    if not found:
        raise OperatorError(
            f'no file in {root / "op_kernel"} has a kernel (an `extern "C" __global__ __aicore__ void` function).',
            "Check that the kernel source is in op_kernel/.",
        )
    named = [f for f in found if f[1] == Path(f[0]).stem] or found  # not <name>_apt.cpp, for other chips
    names = ", ".join(dict.fromkeys(e for _, e in named))
    if wanted:
        preferred = [f for f in named if plain(f[1]) == plain(wanted)] or [
            f for f in found if plain(f[1]) == plain(wanted)
        ]
        if not preferred:
            raise OperatorError(f"{root / 'op_kernel'} has no kernel called {wanted}.", f"Its kernels: {names}.")
    else:
        preferred = [f for f in found if f[1] == root.name] or named
        preferred = [f for f in preferred if Path(f[0]).stem == f[1]] or preferred
    if len(preferred) > 1:
        raise OperatorError(
            f"{root / 'op_kernel'} has several kernels ({names}), none called {wanted or root.name}.",
            f"Name the operator behind the folder: {root}:{preferred[0][1]}.",
        )
    return *preferred[0], {e: p for p, e in named}


def _host_sources(
    root: Path, host: dict[str, str], rules: BuildRules, registered: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """(the pair's sources, shared ones outside the folder): those CMakeLists.txt names, else all of op_host/.

    Definition and tiling function are needed here whichever library they were written for: an author who wants no
    aclnn interface generated names no definition, one who relies on CANN's own tiling function names no tiling.
    """
    own = [p.relative_to(root).as_posix() for p in rules.host_sources if p.is_relative_to(root)]
    own = [p for p in own if p in host]
    shared = [p for p in rules.host_sources if not p.is_relative_to(root)]
    sources = [p for p in host if Path(p).suffix in _SOURCES]
    if not own:
        own = sources
    others = [_read(p) for files in (*_dependency_sources(rules.dependencies), registered) for p in files]
    bodies = _bodies(root, [*host.values(), *others])
    shared += [p for p in (*_siblings(root, host), *bodies, *registered) if p not in shared]
    for registration in (_DEFINITION, _TILING):
        texts = [*(host[p] for p in own), *map(_read, shared)]
        if not any(registration.search(t) for t in texts):
            own += [p for p in sources if registration.search(host[p])]
    return tuple(own), tuple(shared)


def _registered_elsewhere(root: Path, host: Mapping[str, str], rules: BuildRules) -> tuple[Path, ...]:
    """Where the operator registers no tiling function: the source of a folder beside ``root`` that registers one for
    it (one program for operators of a kind), and those of that folder with functions that it calls."""
    texts = [*host.values(), *map(_read, rules.host_sources)]
    names = [] if any(map(_TILING.search, texts)) else [n for text in texts for n in _OPERATOR.findall(text)]
    if not names:
        return ()
    registers = re.compile(rf"\bIMPL_OP(?:_OPTILING)?\(\s*(?:{'|'.join(names)})\s*\)")
    sources = (p for p in sorted(root.parent.glob("*/op_host/**/*.cpp")) if not p.is_relative_to(root))
    ours = [p for p in sources if not is_elsewhere(p.relative_to(root.parent))]
    found = [p for p in ours if registers.search(_read(p))][:1]
    beside = [p for p in ours if _operators_of(root, [p]) == _operators_of(root, found)]
    called = {word for p in found for word in re.findall(r"\b(\w+)\s*\(", _read(p))}
    return (*found, *(p for p in beside if p not in found and called & set(_FUNCTION.findall(_read(p)))))


def _operators_of(root: Path, sources: Iterable[Path]) -> list[Path]:
    """The folders beside ``root`` that ``sources`` lie in."""
    return list(dict.fromkeys(root.parent / p.relative_to(root.parent).parts[0] for p in sources))


def _searched(root: Path, rules: BuildRules, files: dict[str, str]) -> tuple[Path, ...]:
    """Folders that the operator's repository searches for headers: shared ones, and those of the operators this one
    depends on."""
    shared = shared_include_dirs(root)
    own = (d / "op_host" for d in rules.dependencies if (d / "op_host").is_dir())
    return tuple(dict.fromkeys([*(shared if rules.dependencies else _used(shared, files)), *own]))


def _above(root: Path, rules: BuildRules, host: dict[str, str], shares: bool) -> tuple[Path, ...]:
    """Folders of the repository from which host sources name headers by their way: the top of one that shares headers,
    and those below it that have what is named (operators of one kind)."""
    above = repository(root)
    named = [p for p in above if _used((p,), host)]
    return tuple(dict.fromkeys([*named, *(above[-1:] if shares or rules.dependencies else ())]))


def _used(folders: tuple[Path, ...], files: dict[str, str]) -> tuple[Path, ...]:
    """All of ``folders`` if a file includes something from one of them (a header of one may include one of another)."""
    included = {name for text in files.values() for name in _ANY_INCLUDE.findall(text)}
    return folders if any((folder / name).is_file() for folder in folders for name in included) else ()


def _shared_headers(
    root: Path, kernel: dict[str, str], folder: Path, include_dirs: Sequence[Path]
) -> tuple[tuple[str, Path], ...]:
    """(key beside the kernel, file) of headers outside ``root`` that the kernel includes by name, transitively.

    None at all where one of them includes something by a path: it would not be found from its new place.
    """
    found: dict[str, Path] = {}
    pending = [(root / path, text) for path, text in kernel.items()]
    while pending:
        file, text = pending.pop(0)
        for name in _INCLUDE.findall(text):
            if (file.parent / name).is_file() and (file.parent.is_relative_to(root) or "/" in name):
                if not file.is_relative_to(root):
                    return ()
                continue
            header = next((d / name for d in include_dirs if (d / name).is_file()), None)
            if header is None or "/" in name or f"{folder}/{name}" in found or header.is_relative_to(root):
                continue
            found[f"{folder}/{name}"] = header
            pending.append((header, _read(header)))
    return tuple(found.items())


def _shared_definitions(root: Path, host: dict[str, str], include_dirs: Sequence[Path]) -> tuple[tuple[str, Path], ...]:
    """(key, file) of headers outside ``root`` that define tiling data, and of what includes them or they include.

    None at all where one of them includes something by a path out of its folder: it would not be found from its place.
    """
    found: dict[str, Path] = {}
    for included in dict.fromkeys(name for text in host.values() for name in _INCLUDE.findall(text)):
        together: dict[str, Path] = {}
        pending: list[tuple[tuple[str, Path] | None, str]] = [(None, included)]
        while pending:
            beside, name = pending.pop()
            key, header = _definition(beside, name, include_dirs)
            if header is None or key in together or header.is_relative_to(root):
                continue
            together[key] = header
            pending += [((key, header), more) for more in _INCLUDE.findall(_read(header))]
        if any(_TILING_DATA.search(_read(p)) for p in together.values()):
            found |= together
    return () if any(".." in key for key in found) else tuple(found.items())


def _definition(beside: tuple[str, Path] | None, name: str, include_dirs: Sequence[Path]) -> tuple[str, Path | None]:
    """Key and file of what is included as ``name``, by the header ``beside`` (its key and file) or by a source."""
    if beside is not None and (beside[1].parent / name).is_file():
        return str(PurePosixPath(beside[0]).parent / name), beside[1].parent / name
    return f"{SHARED}/{name}", next((d / name for d in include_dirs if (d / name).is_file()), None)


def _neighbours(root: Path, host: dict[str, str]) -> dict[Path, str]:
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
        for included in _INCLUDE.findall(text):
            header = (folder / included).resolve()
            if not top or header in seen or not header.is_relative_to(top[0]) or not header.is_file():
                continue
            seen.add(header)
            found[header] = _read(header)
            pending.append((header.parent, found[header]))
    return found


def _outside_of(root: Path, headers: Iterable[Path]) -> list[Path]:
    """The folders of those ``headers`` that lie outside of ``root``."""
    return [p.parent for p in headers if not p.is_relative_to(root)]


def _outside(root: Path, files: Mapping[str, str]) -> list[Path]:
    """Headers outside ``root`` that these files of it include by a path from where they are, and so on from there."""
    found: dict[Path, None] = {}
    pending = [((root / path).parent, text) for path, text in files.items()]
    while pending:
        folder, text = pending.pop()
        for included in _INCLUDE.findall(text):
            header = (folder / included).resolve()
            if (
                header.suffix in _HEADERS
                and header not in found
                and not header.is_relative_to(root)
                and header.is_file()
            ):
                found[header] = None
                pending.append((header.parent, _read(header)))
    return list(found)


def _siblings(root: Path, host: dict[str, str]) -> list[Path]:
    """Sources of neighbouring operators whose headers the host files include by a path that leads out of ``root``.

    One library holds all operators of a repository, so the bodies of such a header, in the source of the same name
    beside it, are found there.
    """
    found: dict[Path, None] = {}
    for path, text in host.items():
        for included in _INCLUDE.findall(text):
            header = ((root / path).parent / included).resolve()
            if not header.is_relative_to(root) and header.is_file():
                found |= {s: None for s in map(header.with_suffix, _SOURCES) if s.is_file()}
    return list(found)


def _bodies_by_name(root: Path, files: Mapping[str, str], above: Sequence[Path]) -> list[Path]:
    """Sources beside headers that are included by their way from a folder ``above``, where they have a body for a
    function that ``files`` call."""
    words = {word for text in files.values() for word in re.findall(r"\b(\w+)\s*\(", text)}
    found: dict[Path, None] = {}
    for name in dict.fromkeys(n for text in files.values() for n in _INCLUDE.findall(text)):
        header = next((folder / name for folder in above if (folder / name).is_file()), None)
        if header is None or header.is_relative_to(root):
            continue
        for source in filter(Path.is_file, map(header.with_suffix, _SOURCES)):
            if words & set(_FUNCTION.findall(_read(source))):
                found[source] = None
    return list(found)


def _dependency_sources(folders: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """(sources with tiling functions, the rest of their library) of the operators that one depends on."""
    tilings: list[Path] = []
    library: list[Path] = []
    for folder in folders:
        for file in sorted((folder / "op_host").rglob("*.cpp")):
            inside = file.relative_to(folder)
            other = "_def" in file.stem or "infershape" in file.stem  # what the other operator is
            if not other and not is_elsewhere(inside) and not _is_foreign(inside, _read(file)):
                (tilings if "_tiling" in file.stem else library).append(file)
    return tuple(tilings), tuple(library)


def _dependency_kernels(folders: Sequence[Path]) -> tuple[tuple[str, Path], ...]:
    """(key, file) of kernel files of the operators that one depends on: beside its own, in folders of their names."""
    return tuple(
        (f"{folder.name}/{file.relative_to(folder / 'op_kernel').as_posix()}", file)
        for folder in folders
        for file in sorted((folder / "op_kernel").rglob("*"))
        if file.suffix in _KERNEL_SOURCES + _HEADERS and not is_elsewhere(file.relative_to(folder))
    )


def _bodies(root: Path, texts: Sequence[str]) -> list[Path]:
    """Sources of the repository's own library with functions that these texts call: what ``include/a/b.h`` of the
    repository declares has its body in ``src/a/b.cpp`` beside that folder."""
    folders = {f: bodies for f in shared_include_dirs(root) if (bodies := bodies_of(f)) is not None}
    pending = [name for text in texts for name in _ANY_INCLUDE.findall(text)]
    words = {word for text in texts for word in re.findall(r"\b(\w+)\s*\(", text)}
    seen: set[str] = set()
    found: dict[Path, None] = {}
    while pending:
        name = pending.pop()
        header = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if name in seen or header is None:
            continue
        seen.add(name)
        pending += _ANY_INCLUDE.findall(_read(header))
        folder = next(f for f in folders if header == f / name)
        body = (folders[folder] / name).with_suffix(".cpp")
        if body.is_file() and words & set(_FUNCTION.findall(_read(body))):
            found[body] = None
            pending += _ANY_INCLUDE.findall(_read(body))  # what it calls has a body, too
            words |= set(re.findall(r"\b(\w+)\s*\(", _read(body)))
    return list(found)


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
        files[path] = _read(root / path)
        for included in _INCLUDE.findall(files[path]):
            for base in ((root / path).parent, root):
                target = (base / included).resolve()
                if target.is_file() and target.is_relative_to(root):
                    relative = target.relative_to(root).as_posix()
                    if relative not in files and relative not in pending:
                        pending.append(relative)
                    break
    return files
