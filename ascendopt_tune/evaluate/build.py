"""Compiles a pair once: host program and kernel go to a content-addressed folder that all processes share.

A kernel is named by everything its compiler sees (unit, sources, options, headers beside it, toolkit), so a change to
the tiling program alone finds the kernel again as long as tiling structs, key and dtype column stay the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..build.host import HostDescription, HostProgram, TilingResult, compile_host, find_host
from ..build.kernel import KernelUnit, kernel_unit
from ..build.machine_code import read_listing
from ..build.matmul_headers import MatmulHeaders, chosen
from ..build.object import rules_version, violations
from ..build.toolkit import Toolkit, host_compiler, virtual
from ..device.acl import Acl
from ..errors import KernelCompileError
from ..files import write_whole
from ..nouns.case import Case
from ..nouns.operator import Operator, Pair, Signature
from .limits import Confinement, ProcessLimits, Stopped, run_confined
from .protocol import TOOL_FOLDERS
from .sandbox import system_folders

_COMPILER_MEMORY = 8 << 30  # bytes of address space for one compiler process
_COMPILER_FILES = 1 << 30  # bytes of one file a compiler writes
_HEADERS = (".h", ".hpp", ".hh", ".inc", ".inl", ".cpp", ".cc")


@dataclass
class Builder:
    """Builds for one toolkit below ``folder``; ``reused`` names what was there already, since the last evaluation."""

    toolkit: Toolkit
    folder: Path
    limits: ProcessLimits
    work: Path
    reused: list[str] = field(default_factory=list)

    def host(self, operator: Operator, pair: Pair) -> HostProgram | Stopped:
        """The compiled host program.

        Raises:
            HostProgramError: it doesn't compile; the text has the user's file and line.
        """
        out = self.folder / "host"
        out.mkdir(parents=True, exist_ok=True)
        found = find_host(operator, pair, self.toolkit, out)
        if found is not None:
            self.reused.append("tiling")
            return found

        def task() -> None:
            compile_host(operator, pair, self.toolkit, out)

        how = self._compiler(operator, out)
        if self.toolkit.kind != "virtual":  # the host headers are the virtual toolkit's (build/host.py)
            how = replace(how, write=[*how.write, virtual().prefix])
        built = run_confined(task, how, "compiling the tiling program")
        return built if isinstance(built, Stopped) else compile_host(operator, pair, self.toolkit, out)

    def kernel(
        self,
        operator: Operator,
        pair: Pair,
        signature: Signature | None,
        case: Case,
        tiling: TilingResult | None,
        description: HostDescription | None,
    ) -> tuple[Path, str] | Stopped:
        """(binary file, kernel name in it).

        Raises:
            KernelCompileError: with the compiler's log.
            CaseError: the case fits no dtype column.
        """
        sources = self.work / "kernel"
        structs = description.tiling_structs if description is not None else ()
        unit = kernel_unit(operator, pair, signature, case, tiling, structs, sources)
        if (headers := self._matmul_headers()) is not None:
            unit = replace(unit, options=(*unit.options, *headers.options))
        out = self.folder / "kernel"
        out.mkdir(parents=True, exist_ok=True)
        binary = out / f"{self._name(operator, pair, unit, sources)}.o"
        if binary.exists():
            self.reused.append("kernel")
        else:

            def task() -> None:
                write_whole(binary, self._checked(operator, unit))

            how = self._compiler(operator, out)
            built = run_confined(task, how, "compiling the kernel")
            if isinstance(built, Stopped):
                return built
            if not binary.exists():
                raise KernelCompileError(f"{operator.kernel_main}: the compiler gave no binary.")
        return binary, unit.entry

    def _checked(self, operator: Operator, unit: KernelUnit) -> bytes:
        """The compiled kernel, if it is one that may be loaded. Raises KernelCompileError."""
        if self.toolkit.kind != "virtual":  # a real device runs the kernel apart from everything else
            return Acl(self.toolkit).compile(unit.source, unit.name, unit.options)
        listing = self.work / "kernel-listing"
        binary = Acl(self.toolkit).compile(unit.source, unit.name, (*unit.options, f"--vnpu-listing={listing}"))
        guarded = "clang" not in Path(host_compiler()).name
        wrong = violations(binary, read_listing(listing) if guarded else None)
        if wrong:
            raise KernelCompileError(
                f"{operator.kernel_main}: the kernel uses what no header of AscendC offers: {', '.join(wrong[:5])}."
            )
        return binary

    def _name(self, operator: Operator, pair: Pair, unit: KernelUnit, sources: Path) -> str:
        digest = hashlib.sha256()
        plain = str(sources)  # of this evaluation; says nothing about the content
        for text in (
            self.toolkit.version,
            rules_version(),
            unit.source,
            unit.name,
            *unit.options,
            unit.entry,
            str(operator.root),
        ):
            digest.update(text.replace(plain, "@").replace(str(sources.resolve()), "@").encode() + b"\0")
        digest.update(pair.kernel_hash.encode())
        for path, size, changed in _headers(operator.kernel_include_dirs):
            digest.update(f"{path} {size} {changed}\0".encode())
        return digest.hexdigest()[:32]

    def _matmul_headers(self) -> MatmulHeaders | None:
        return chosen(self.toolkit.prefix.parent) if self.toolkit.kind == "virtual" else None

    def _compiler(self, operator: Operator, out: Path) -> Confinement:
        """A compiler reads headers and the operator, not the user's other files: sources may include anything."""
        device = self.toolkit.kind != "virtual"
        own = [operator.root, *operator.kernel_include_dirs, *operator.host_include_dirs]
        own += [path.parent for _, path in operator.shared_sources]
        own += {path.parent for path in operator.library_sources}
        if (headers := self._matmul_headers()) is not None:
            own += headers.folders
        return Confinement(
            folder=self.work,
            timeout_s=self.limits.compile_s,
            memory_bytes=_COMPILER_MEMORY,
            open_files=self.limits.open_files,
            file_bytes=_COMPILER_FILES,
            read=[Path("/")] if device else [*system_folders(), *_compiler_folders(), *own],
            write=[out, self.toolkit.prefix, Path(os.devnull)],  # precompiled headers go to the toolkit
            tools=True,
            device=device,
        )


def _compiler_folders() -> list[Path]:
    """Where a compiler that the user chose, and what its environment names, may lie."""
    compiler = Path(host_compiler()).resolve()
    named = [Path(p) for v in TOOL_FOLDERS for p in os.environ.get(v, "").split(os.pathsep) if p]
    return [compiler.parent.parent, *named]


def _headers(folders: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Path, bytes and time of change of every header below the folders: what a compiler may read besides the pair."""
    found = []
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                if name.endswith(_HEADERS):
                    path = os.path.join(root, name)
                    status = os.stat(path)
                    found.append((path, status.st_size, status.st_mtime_ns))
    return sorted(found)
