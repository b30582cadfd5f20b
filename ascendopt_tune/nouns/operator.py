"""Operator, Signature, Pair, Candidate: the nouns a tuning run passes along (design words, see CONTRIBUTING.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .case import DTYPES, AttrValue


@dataclass(frozen=True)
class ParamDef:
    """One input or output of the operator definition.

    ``dtypes[i]`` and ``formats[i]`` belong to dtype column i: the same index over all parameters is one supported
    combination. ``kind`` is ``required``, ``optional`` or ``dynamic`` (a tensor list). ``value_depend``: the tiling
    function reads the values on the host. ``init_values``: what an output holds before the kernel runs, one value or
    one per column.
    """

    name: str
    dtypes: tuple[str, ...]
    kind: str = "required"
    formats: tuple[str, ...] = ()
    value_depend: bool = False
    shape_from_kernel: bool = False  # the kernel decides the output's shape, and tells it
    init_values: tuple[float, ...] = ()


@dataclass(frozen=True)
class AttrDef:
    """One attribute; ``type`` is ``bool|int|float|str|list_int|list_float|list_bool``, empty where the
    definition names none; default None = required."""

    name: str
    type: str
    default: AttrValue | None = None


@dataclass(frozen=True)
class Signature:
    """The operator definition (CANN's OpDef) as data; parameters in the definition's order."""

    op_type: str
    inputs: tuple[ParamDef, ...]
    outputs: tuple[ParamDef, ...]
    attrs: tuple[AttrDef, ...] = ()
    has_infer_shape: bool = False
    has_tiling: bool = True

    def to_text(self) -> str:
        """One line for people: ``RmsNorm(x: float16|float32, gamma: ..., *, epsilon: float = 1e-06) -> y``."""

        def param(p: ParamDef) -> str:
            mark = {"optional": "?", "dynamic": "[]"}.get(p.kind, "")
            return f"{p.name}{mark}: {'|'.join(dict.fromkeys(p.dtypes))}"

        parts = [param(p) for p in self.inputs]
        if self.attrs:
            parts.append("*")
            parts += [f"{a.name}: {a.type}" + ("" if a.default is None else f" = {a.default}") for a in self.attrs]
        return f"{self.op_type}({', '.join(parts)}) -> {', '.join(p.name for p in self.outputs)}"


#: Folder of a pair's files that lie outside of the operator's.
SHARED = "shared"
#: Characters of all sources of a pair: what every step, from reading to compiling, gets through in seconds.
SOURCE_LIMIT = 8 << 20


@dataclass(frozen=True)
class Pair:
    """(tiling program, kernel program) as sources: path relative to the operator folder -> text."""

    tiling: Mapping[str, str]
    kernel: Mapping[str, str]

    @staticmethod
    def _digest(files: Mapping[str, str]) -> str:
        h = hashlib.sha256()
        for path in sorted(files):
            h.update(path.encode() + b"\0" + files[path].encode() + b"\0")
        return h.hexdigest()

    @property
    def tiling_hash(self) -> str:
        return self._digest(self.tiling)

    @property
    def kernel_hash(self) -> str:
        return self._digest(self.kernel)

    @property
    def hash(self) -> str:
        return hashlib.sha256((self.tiling_hash + self.kernel_hash).encode()).hexdigest()

    def oversize(self) -> str | None:
        """Why the sources are too large to be looked at, or None. CANN's largest operator, with what it shares with
        others, has 6 MiB."""
        size = sum(map(len, (*self.tiling.values(), *self.kernel.values())))
        if size <= SOURCE_LIMIT:
            return None
        return f"its sources have {size >> 20} MiB; at most {SOURCE_LIMIT >> 20} MiB are compiled."

    def with_tiling(self, path: str, text: str) -> Pair:
        return replace(self, tiling={**self.tiling, path: text})

    def with_kernel(self, path: str, text: str) -> Pair:
        return replace(self, kernel={**self.kernel, path: text})


@dataclass(frozen=True)
class DirectLaunch:
    """A kernel without tiling function: launched with a fixed block dim.

    ``parameters`` are the entry's (name, C type) in order; each is an input, an output or an attribute (a scalar passed
    by value) of the case's signature by that name, or ``workspace``.
    """

    block_dim: int
    defines: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Operator:
    """An operator as the tuner sees it.

    ``root`` is the folder the pair's paths are relative to. ``kernel_main`` and ``entry`` name the kernel file (a key
    of ``baseline.kernel``) and its ``__global__`` function. ``host_sources`` are the keys of ``baseline.tiling`` that
    are compiled (the others are headers); ``shared_sources`` says of keys that several operators share where those
    files really lie (foreach operators have their tiling in one common file). ``library_sources`` are compiled and
    linked as they are, and no part of the pair: a repository's own library for tiling programs; ``spare_sources``, of
    operators whose headers this one includes, and its own of tiling templates for other architectures that every chip
    asks, only where a function is missing otherwise; ``shape_sources``, the
    operator's own with shape functions that its build names in no way that is read, only where they build.
    ``elsewhere`` names functions that only sources for other architectures define, which are left out.
    ``reference`` computes the expected outputs from CPU tensors and attributes (see registry.py); None: the baseline is
    the specification.
    """

    name: str
    root: Path
    entry: str
    kernel_main: str
    baseline: Pair
    host_sources: tuple[str, ...] = ()
    shared_sources: tuple[tuple[str, Path], ...] = ()
    library_sources: tuple[Path, ...] = ()
    spare_sources: tuple[Path, ...] = ()
    shape_sources: tuple[Path, ...] = ()
    host_include_dirs: tuple[Path, ...] = ()
    kernel_include_dirs: tuple[Path, ...] = ()
    elsewhere: tuple[str, ...] = ()
    kernel_options: tuple[str, ...] = ()  # the operator's own compile options, e.g. --cce-auto-sync=off
    direct: DirectLaunch | None = None
    reference: Callable[..., Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # op.toml as read
    invariant: bool = False  # see :meth:`invariantly`

    def invariantly(self) -> Operator:
        """The operator whose only right results are the baseline's, bit for bit, and whose results are cached apart.

        A pair that keeps these keeps the baseline's order of reduction, so that no result depends on which case was
        tuned, nor how.
        """
        exact = {"rtol": 0.0, "atol": 0.0, "ratio": 0.0}
        settings = {**self.settings, "tolerance": dict.fromkeys(DTYPES, exact)}
        return replace(self, reference=None, settings=settings, invariant=True)

    @property
    def auto_sync(self) -> bool:
        """Built with the compiler's automatic synchronization? CANN's default is on (mechanics: --cce-auto-sync)."""
        return "--cce-auto-sync=off" not in self.kernel_options

    @property
    def in_place(self) -> tuple[str, ...]:
        """Inputs the kernel changes without the definition having an output for them (op.toml: ``in_place``).

        A case lists them as outputs after those of the definition; they are no kernel parameters of their own.
        """
        return tuple(self.settings.get("in_place", ()))


@dataclass(frozen=True)
class Candidate:
    """A pair proposed for a case: who proposed it, from which parent, and what was changed (one line)."""

    id: int
    pair: Pair
    parent: int | None
    proposer: str
    change: str
