"""Host programs: an operator's ``op_host`` sources, compiled to a shared library (see host_program.py for its use).

They are compiled against the project's own host headers (``vnpu/host/include``) and ``libvnpu_host.so``, which plays
CANN's part: contexts, registries, tiling data, platform queries. The same library serves a machine with a real CANN,
because tiling functions run on the host in both cases.

Everything is content-addressed, one object per source: a candidate that changes one tiling source compiles that one,
and one that changes only numbers compiles nothing (knobs.py).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ..errors import HostProgramError, ToolchainError
from ..files import write_whole
from ..nouns.operator import SHARED, Operator, Pair
from . import blocks, elsewhere, knobs, spares
from .blocks import BlockId
from .host_program import HostProgram, TilingResult
from .host_signature import HostDescription, TilingField, TilingStruct, dtype_column
from .missing import NAME_IT, where_it_is
from .toolkit import Toolkit, host_compiler, virtual

__all__ = [
    "HostDescription",
    "HostProgram",
    "TilingField",
    "TilingResult",
    "TilingStruct",
    "compile_host",
    "dtype_column",
    "find_host",
]

# CANN defines OP_TILING_LIB when it builds the tiling library and OP_PROTO_LIB for the shape library; one library is
# both here. The two OPS_UTILS texts are what its build passes to the log macros of shared operator headers.
_FLAGS = (
    "-std=c++17",
    "-O0",  # a tiling function runs for microseconds, its compilation is what a tuner waits for
    "-fPIC",
    "-fno-gnu-unique",
    "-ffp-contract=off",
    "-w",
    "-fmax-errors=20",
    "-DOP_TILING_LIB",
    "-DOP_PROTO_LIB",
    "-DLOG_CPP",
    "-DPROCESS_LOG",
    '-DOPS_UTILS_LOG_SUB_MOD_NAME="OP_TILING"',
    '-DOPS_UTILS_LOG_PACKAGE_TYPE=""',
)
_PRELUDE = "vnpu_host_prelude.h"
_LIBRARY = "libvnpu_host.so"
_WRAPPED = ("printf", "vprintf", "puts", "putchar", "_ZSt4cout")  # redirected by libvnpu_host.so into its log
# muldefs: definition, tiling and shape sources are separate libraries in CANN, so a helper may stand in each of them.
_LINK_FLAGS = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs,-z,muldefs", *(f"-Wl,--wrap={name}" for name in _WRAPPED))
_TIMEOUT_S = 900  # of the wall clock, on a busy machine; a candidate's compilation has a limit of its own
_LIFTS = 3  # compilations of one text: with all knobs, with fewer, with none; then one without marks


def compile_host(operator: Operator, pair: Pair, toolkit: Toolkit, out_dir: Path) -> HostProgram:
    """Compiles ``pair``'s host sources (and the operator's shared ones) below ``out_dir``.

    Results are found again by content, also by other processes using the same folder at the same time.

    Raises:
        HostProgramError: a source doesn't compile or link; the text has the compiler's first error with the user's file
            and line.
        ToolchainError: no compiler, or the toolkit lacks the host library.
    """
    home = _home(operator, toolkit)
    inline = _Inline(operator, pair, home, out_dir)
    for _ in range(_LIFTS + 1):
        lifted = inline.lifted()
        files, marks = inline.probed(lifted)
        try:
            path = _Build(operator, replace(pair, tiling=files), home, out_dir).program()
        except _CompilerError as error:
            if not lifted.table and not marks:
                raise _told(operator, error.log, pair == operator.baseline) from None
            inline.add(error.log)
        else:
            inline.keep()
            return _program(operator, home, path, lifted, marks)
    raise AssertionError("a text without knobs and marks compiles or is refused")


def find_host(operator: Operator, pair: Pair, toolkit: Toolkit, out_dir: Path) -> HostProgram | None:
    """What :func:`compile_host` gives, if it has nothing to compile; else None. Writes nothing."""
    home = _home(operator, toolkit)
    inline = _Inline(operator, pair, home, out_dir)
    lifted = inline.lifted()
    files, marks = inline.probed(lifted)
    path = _Build(operator, replace(pair, tiling=files), home, out_dir).found()
    return _program(operator, home, path, lifted, marks) if path is not None else None


def _home(operator: Operator, toolkit: Toolkit) -> Toolkit:
    if not operator.host_sources:
        raise HostProgramError(
            f"operator {operator.name} has no host sources.", "Put a tiling function into op_host/, or launch directly."
        )
    return toolkit if (toolkit.lib64 / _LIBRARY).exists() else virtual()  # a real CANN doesn't bring our library


def _program(
    operator: Operator, home: Toolkit, path: Path, lifted: knobs.Lifted, marks: Sequence[tuple[int, BlockId]]
) -> HostProgram:
    return HostProgram(path, home.lib64 / _LIBRARY, (operator.entry, operator.name), lifted.table, marks)


class _CompilerError(Exception):
    """A compiler or linker refused; ``log`` names the user's files."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


class _Inline:
    """The literals of one text that have to stay in it, as compilers told; remembered for the next values.

    Likewise whether the text can have marks where its blocks begin (blocks.py).
    """

    def __init__(self, operator: Operator, pair: Pair, toolkit: Toolkit, out_dir: Path) -> None:
        self._files, self._root = dict(pair.tiling), operator.root
        self._main = operator.host_sources[0]
        lifted = replace(pair, tiling=knobs.lift(self._files).files)
        key = _digest(_Build(operator, lifted, toolkit, out_dir).common_key, lifted.tiling_hash)
        self._file = out_dir / "knobs" / f"{key}-marks.json"
        known = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        self._places: frozenset[knobs.Place] = frozenset((path, number) for path, number in known.get("inline", ()))
        self._marks = bool(known.get("marks", True))
        self._tries = 0

    def lifted(self) -> knobs.Lifted:
        return knobs.lift(self._files, self._places)

    def probed(self, lifted: knobs.Lifted) -> tuple[dict[str, str], tuple[tuple[int, BlockId], ...]]:
        """The lifted files with marks, and the marks; without any, if the text can't have them."""
        own = any(blocks.TABLE in text for text in self._files.values())  # it would tell what it likes
        if self._marks and not own and blocks.names(lifted.files) == blocks.names(self._files):
            return blocks.probed(lifted.files, self._main)
        return dict(lifted.files), ()

    def add(self, log: str) -> None:
        """What the messages are about; all literals when they name none, or at the last try."""
        self._tries += 1
        if self._marks and (blocks.TABLE in log or self._tries == _LIFTS):
            self._marks = False
            return
        lines = re.findall(r"^(?:\s+from |In file included from )?(.+?):(\d+)", log, re.MULTILINE)
        at = [(path.removeprefix(f"{self._root}/"), int(line)) for path, line in lines]
        more = knobs.blamed(self._files, at, knobs.names_in(log)) - self._places
        self._places |= more if more and self._tries < _LIFTS - 1 else knobs.every(self._files)

    def keep(self) -> None:
        if self._tries:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, json.dumps({"inline": sorted(self._places), "marks": self._marks}))


class _Build:
    """One pair's build: where its files are staged, which flags hold, how results are named."""

    def __init__(self, operator: Operator, pair: Pair, toolkit: Toolkit, out_dir: Path) -> None:
        self.operator, self.pair, self.toolkit, self.out_dir = operator, pair, toolkit, out_dir
        self.compiler = host_compiler()
        self.staged = out_dir / "sources" / pair.tiling_hash[:24]
        # The pair's files are found where they are staged; files that belong to no pair, in their real folders.
        real = dict(operator.shared_sources)
        folders = dict.fromkeys(real.get(s, operator.root / s).parent for s in operator.host_sources)
        own = [d.relative_to(operator.root) for d in operator.host_include_dirs if d.is_relative_to(operator.root)]
        includes = [f"-iquote{d}" for d in folders] + [_searched(d) for d in operator.host_include_dirs]
        self.library_flags = [*_FLAGS, *includes, f"-I{toolkit.include}"]
        mine = [self.staged / SHARED, *(self.staged / d for d in own)]
        self.flags = [*_FLAGS, *(f"-I{d}" for d in mine), *includes, f"-I{toolkit.include}"]
        self.flags.append(f"-fmacro-prefix-map={self.staged}={operator.root}")
        headers = {p: t for p, t in pair.tiling.items() if p not in operator.host_sources}
        common = [toolkit.version, compiler_version(self.compiler), *_FLAGS, *includes, str(operator.root)]
        self.library_key = _digest(*common)
        self.common_key = _digest(*common, json.dumps(headers, sort_keys=True))
        self._spares = out_dir / "programs" / f"{_digest(self.library_key, *operator.host_sources)}-spares.json"

    def program(self) -> Path:
        """The linked program. Raises _CompilerError."""
        found = self.found()
        if found is not None:
            return found
        self.stage()
        jobs = [(self.staged / s, self._object(s), self.flags) for s in self.operator.host_sources]
        jobs += [self._of_library(s) for s in (*self.operator.library_sources, *self._kept_spares())]
        with ThreadPoolExecutor(2) as pool:
            objects = list(pool.map(lambda job: self.object_of(*job), jobs))
        untried = [s for s in self.operator.spare_sources if s not in self._kept_spares()]
        if (linked := self._with_shapes(objects)) is not None:
            return linked
        while True:
            try:
                return self.link(objects, untried)
            except _CompilerError as error:
                more = spares.defining(error.log, untried)
                if not more:
                    raise
                untried = [s for s in untried if s not in more]
                compiled = {s: found for s in more if (found := self._compiled(s)) is not None}
                objects += compiled.values()
                self._keep_spares([*self._kept_spares(), *compiled])

    def _with_shapes(self, objects: Sequence[Path]) -> Path | None:
        """The program with what there is of the operator's own shape functions; None where it doesn't build with them,
        or there are none, or that was tried before."""
        if not self.operator.shape_sources or self._spares.exists():
            return None
        compiled = {s: found for s in self.operator.shape_sources if (found := self._compiled(s)) is not None}
        try:
            linked = self.link([*objects, *compiled.values()]) if compiled else None
        except _CompilerError:
            linked = None
        self._keep_spares(list(compiled) if linked is not None else [])
        return linked

    def found(self) -> Path | None:
        """The linked program, if it is there."""
        objects = [self._object(s) for s in self.operator.host_sources]
        objects += [self._library_object(s) for s in (*self.operator.library_sources, *self._kept_spares())]
        target = self._target(objects) if all(map(self._current, objects)) else None
        return target if target is not None and target.exists() else None

    def _of_library(self, source: Path) -> tuple[Path, Path, list[str]]:
        return source, self._library_object(source), self.library_flags

    def _compiled(self, spare: Path) -> Path | None:
        """The object of a neighbour's source; None where that doesn't compile here: it is nobody's who asked.

        A refusal holds until the source or what it includes changes: else each candidate would ask again.
        """
        source, target, flags = self._of_library(spare)
        if self._is_refused(source, target):
            return None
        try:
            return self.object_of(source, target, flags)
        except _CompilerError:
            self._refuse(source, target, flags)
            return None

    def _refuse(self, source: Path, target: Path, flags: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            deps = Path(temporary) / "d"
            try:  # headers that aren't there are among them, by the name they are included by
                self._run([self.compiler, *flags, "-include", _PRELUDE, "-M", "-MG", "-MF", str(deps), str(source)])
            except _CompilerError:
                return  # asked again
            read = {name: _file_digest(Path(name)) for name in self._shared_files(deps)}
            write_whole(target.with_suffix(".refused.json"), json.dumps(read))

    def _is_refused(self, source: Path, target: Path) -> bool:
        record = target.with_suffix(".refused.json")
        if not record.exists():
            return False
        try:
            known: dict[str, str] = json.loads(record.read_text(encoding="utf-8"))
        except ValueError:
            return False
        folders = (source.parent, *self.operator.host_include_dirs)
        come = (name for name, digest in known.items() if not digest and any((f / name).exists() for f in folders))
        return next(come, None) is None and all(_file_digest(Path(n)) == h for n, h in known.items())

    def _kept_spares(self) -> list[Path]:
        """The spare sources that a program of this operator needed before."""
        known = {str(s): s for s in (*self.operator.spare_sources, *self.operator.shape_sources)}
        if not known or not self._spares.exists():
            return []
        return [known[name] for name in json.loads(self._spares.read_text(encoding="utf-8")) if name in known]

    def _keep_spares(self, used: Sequence[Path]) -> None:
        self._spares.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._spares, json.dumps([str(s) for s in used]))

    def stage(self) -> None:
        """Writes the pair's files; renamed into place at once, so that nobody compiles half of them."""
        if self.staged.exists():
            return
        self.staged.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.staged.parent) as temporary:
            work = Path(temporary) / "files"
            for path, text in self.pair.tiling.items():
                file = work / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            try:
                work.rename(self.staged)
            except OSError:
                if not self.staged.exists():
                    raise

    def object_of(self, source: Path, target: Path, flags: Sequence[str]) -> Path:
        """The compiled object of one source."""
        if self._current(target):
            return target
        record = target.with_suffix(".deps.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        prelude = _precompiled(self.compiler, self.toolkit)
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            built, deps = Path(temporary) / "o", Path(temporary) / "d"
            command = [self.compiler, *flags, "-include", str(prelude), "-MD", "-MF", str(deps)]
            self._run([*command, "-c", str(source), "-o", str(built)])
            os.replace(built, target)
            write_whole(record, json.dumps({p: _file_digest(Path(p)) for p in self._shared_files(deps)}))
        return target

    def _object(self, name: str) -> Path:
        return self.out_dir / "objects" / f"{_digest(self.common_key, name, self.pair.tiling[name])}.o"

    def _library_object(self, source: Path) -> Path:
        """Of a source that isn't the pair's, and sees the pair's headers as the user wrote them."""
        return self.out_dir / "objects" / f"{_digest(self.library_key, str(source), _file_digest(source))}.o"

    def _current(self, target: Path) -> bool:
        """Is the object there, and are the files beside the pair's still those it was made of?"""
        record = target.with_suffix(".deps.json")
        if not target.exists() or not record.exists():
            return False
        try:
            known: dict[str, str] = json.loads(record.read_text(encoding="utf-8"))
        except ValueError:  # a process that wrote it was killed
            return False
        return all(h and _file_digest(Path(p)) == h for p, h in known.items())

    def _shared_files(self, deps: Path) -> list[str]:
        """The files a source included that are neither the pair's nor the toolkit's nor the system's."""
        own = (str(self.staged), str(self.toolkit.include), "/usr/")
        return sorted(name for name in _prerequisites(deps) if not name.startswith(own))

    def link(self, objects: Sequence[Path], untried: Sequence[Path] = ()) -> Path:
        """The program of these objects. What only sources for other architectures define is stubbed, unless one of the
        ``untried`` defines some of it. Raises _CompilerError."""
        target = self._target(objects)
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        lib64 = self.toolkit.lib64
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            built = Path(temporary) / "so"
            command = [self.compiler, *_LINK_FLAGS, *map(str, objects), "-o", str(built)]
            command += [f"-L{lib64}", f"-Wl,-rpath,{lib64}", "-lvnpu_host"]
            try:
                self._run(command)
            except _CompilerError as error:
                if spares.defining(error.log, untried) or not elsewhere.explains(error.log, self.operator.elsewhere):
                    raise
                missing = self._missing([*command, "-Wl,--no-demangle"])
                stubs = Path(temporary) / "elsewhere.cpp"
                stubs.write_text(elsewhere.stubs(missing), encoding="utf-8")
                self._run([*command, "-fPIC", str(stubs)])
            os.replace(built, target)
        return target

    def _missing(self, command: list[str]) -> str:
        """What the linker says."""
        try:
            self._run(command)
        except _CompilerError as error:
            return str(error)
        return ""

    def _target(self, objects: Sequence[Path]) -> Path:
        # Objects are named by what went in, so their contents only change with a shared header.
        key = _digest(*_LINK_FLAGS, str(self.toolkit.lib64), *(_file_digest(o) for o in objects))
        return self.out_dir / "programs" / f"{key}.so"

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except subprocess.TimeoutExpired as e:
            raise HostProgramError(
                f"compiling the host program of {self.operator.name} takes more than {_TIMEOUT_S} s."
            ) from e
        if done.returncode:
            log = done.stderr.replace(str(self.staged), str(self.operator.root))
            for key, path in self.operator.shared_sources:
                log = log.replace(str(self.operator.root / key), str(path))
            raise _CompilerError(log)


def _searched(folder: Path) -> str:
    """The option for a folder of headers; a repository's copies of CANN's inner headers come behind the toolkit's."""
    last = folder.name == "op_host" and folder.parent.name in ("inc", "include")
    return f"-idirafter{folder}" if last else f"-I{folder}"


def _told(operator: Operator, log: str, own: bool = False) -> HostProgramError:
    """One paragraph with the first error; a missing header or function is told as what it is.

    ``own``: the sources are the user's, who may have the header elsewhere.
    """
    name = operator.name
    missing = re.search(r"(?m)^(.+?:\d+):\d+: fatal error: (\S+): No such file", log)
    if missing:
        return HostProgramError(
            f"the host program of {name} includes {missing[2]!r} ({missing[1]}), which is neither the operator's "
            "nor among the host headers.",
            where_it_is(operator.root, missing[2]) if own else NAME_IT,
        )
    undefined = sorted(set(re.findall(r"undefined reference to `([^']+)'", log)))
    if undefined:
        return HostProgramError(
            f"the host program of {name} uses what none of its sources defines: {', '.join(undefined[:5])}.",
            "Add the source that defines it to op_host/ or to target_sources(optiling ...) in CMakeLists.txt.",
        )
    errors = re.findall(r"^(.+?:\d+):\d+: (?:fatal )?error: (.*)$", log, re.MULTILINE)
    if not errors:
        return HostProgramError(f"the host program of {name} doesn't build: {log.strip()[-800:]}")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    unknown = re.search(r"was not declared|does not name a type|has no member|is not a member", errors[0][1])
    hint = "Correct it there. If it is a name of CANN's own headers, it is missing in this project." if unknown else ""
    return HostProgramError(f"the host program of {name} doesn't compile: {errors[0][0]}: {errors[0][1]}{more}.", hint)


def _precompiled(compiler: str, toolkit: Toolkit) -> Path:
    """The header every host source starts with, precompiled in the toolkit on first use."""
    header = toolkit.include / _PRELUDE
    compiled = header.with_name(header.name + ".gch")
    # Only where the headers never change again; elsewhere, or in a read-only toolkit, it costs the time.
    finished = (toolkit.prefix / "complete").exists() and os.access(toolkit.include, os.W_OK)
    if compiled.exists() or not finished:
        return header
    with tempfile.TemporaryDirectory(dir=toolkit.include) as temporary:
        built = Path(temporary) / "gch"
        command = [compiler, *_FLAGS, f"-I{toolkit.include}", "-x", "c++-header", str(header), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolchainError(f"the host headers don't compile: {done.stderr[:800]}")
        os.replace(built, compiled)
    return header


def _prerequisites(deps: Path) -> list[str]:
    """The files in a rule for make as compilers write it: blanks and number signs behind a backslash, dollars twice."""
    text = deps.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    words = re.findall(r"(?:\\.|\S)+", text.partition(": ")[2])
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words]


@functools.cache
def compiler_version(compiler: str) -> str:
    """What the compiler says of itself; part of the name of all it makes."""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _file_digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""  # gone: it is as no recorded one
