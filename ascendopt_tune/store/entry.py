"""Key and Entry: what a cached result is called and what it holds, with their JSON and file forms.

A result is a folder: ``entry.json`` says everything a person wants to know and lists the sha256 of each other file;
``tiling/`` and ``kernel/`` are the best pair's sources; ``kernel.bin`` and ``tiling.bin`` are what a launch needs.
``entry.json`` holds a digest of itself, so a truncated or edited one is noticed in any layer.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from ..build.host import TilingResult
from ..errors import CacheError
from ..files import MALFORMED, parse_json, read_plain
from ..nouns.case import Argument, AttrValue, Case
from ..nouns.chip import chip_key
from ..nouns.clocks import Interval, speedup_text
from ..nouns.operator import AttrDef, Operator, Pair, ParamDef, Signature
from ..nouns.profile import Profile

SCHEMA = 1  # of the key and of entry.json; a new number makes every older entry a miss
ENTRY_FILE = "entry.json"
FILE_BYTES = 256 << 20  # of one file of an entry; a compiled kernel has megabytes at most
FINISHED = ("budget", "exhausted")  # a search that ended otherwise can go on
#: What a run decided of its best pair.
WIN, NO_WIN, FRAGILE = "win", "no significant win", "no win that survives the clock's uncertainty"
_HEADERS = frozenset({".h", ".hpp", ".hh", ".inc", ".inl"})


def canonical(document: object) -> str:
    """JSON with one spelling per value: sorted keys, no spaces, infinities and NaN as ``{"float": "inf"}``."""
    return json.dumps(finite(document), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def finite(value: object) -> object:
    """The document with infinities and NaN spelled as :func:`canonical` does."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return value


def restore(value: Any) -> Any:
    """Inverse of the infinities' spelling in :func:`canonical`."""
    if isinstance(value, dict):
        return float(value["float"]) if value.keys() == {"float"} else {k: restore(v) for k, v in value.items()}
    return [restore(v) for v in value] if isinstance(value, list) else value


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Key:
    """What decides whether a cached result may serve a call.

    ``case`` and ``build`` are canonical JSON: the former of :meth:`Case.to_json`, the latter of everything besides the
    pair's text that shapes the program (options, macros, fixed block dim, files outside the pair). ``target`` keeps
    modelled results (``virtual``) apart from measured ones (``npu``).
    """

    operator: str
    baseline: str  # Pair.hash of the pair as the user wrote it
    build: str
    case: str
    chip: str
    target: str
    toolkit: str  # Toolkit.version
    schema: int = SCHEMA

    @staticmethod
    def of(operator: Operator, case: Case, *, chip: str, target: str, toolkit: str) -> Key:
        """The key of tuning ``operator`` for ``case``; ``chip`` is a name or a chip file.

        Raises:
            OSError: a file outside the pair can't be read.
            CaseError: nor can the chip file.
        """
        return Key(
            operator=operator.name,
            baseline=operator.baseline.hash,
            build=canonical(_build_document(operator)),
            case=canonical(case.to_json()),
            chip=chip_key(chip),
            target=target,
            toolkit=toolkit,
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "build": restore(json.loads(self.build)), "case": restore(json.loads(self.case))}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Key:
        texts = {name: canonical(document[name]) for name in ("build", "case")}
        return Key(**{**document, **texts})

    @property
    def hash(self) -> str:
        """sha256 of the canonical JSON: the entry's folder name."""
        return sha256(canonical(self.to_json()).encode())

    @property
    def call(self) -> str:
        """As :attr:`hash`, without the outputs: what a caller knows before anything has run."""
        document = self.to_json()
        del document["case"]["outputs"]
        return sha256(canonical(document).encode())


def _build_document(operator: Operator) -> dict[str, object]:
    outside = hashlib.sha256()
    files: list[tuple[str, Path]] = []
    for folder in (*operator.host_include_dirs, *operator.kernel_include_dirs):
        files += [
            (str(p.relative_to(folder)), p) for p in sorted(folder.rglob("*")) if p.suffix in _HEADERS and p.is_file()
        ]
    files += [(p.name, p) for p in (*operator.library_sources, *operator.spare_sources)]
    for name, path in files:
        outside.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    direct = operator.direct
    return {
        "entry": operator.entry,
        "kernel_main": operator.kernel_main,
        "kernel_options": operator.kernel_options,
        "host_sources": operator.host_sources,
        "direct": {"block_dim": direct.block_dim, "defines": direct.defines} if direct else None,
        "outside": outside.hexdigest(),
        **({"invariant": True} if operator.invariant else {}),
    }


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from. ``outcomes`` counts evaluations by kind, ``created`` is UTC in ISO 8601.

    ``moves`` are the winner's changes in numbers (``Move.to_json``), for searches nearby; ``baseline_tiling`` is the
    ``tiling_hash`` of the pair as the user wrote it.
    """

    seed: int
    budget: int
    evaluations: int
    outcomes: Mapping[str, int]
    tools: Mapping[str, str]
    created: str
    changes: tuple[str, ...] = ()  # what the winner changed, one line per step from the baseline
    reference: str = "baseline"  # what results were compared with: "reference.py" or "baseline"
    checks: int = 0  # outputs compared when the winner was confirmed
    decision: str = ""  # "win", or why the baseline is kept (search/acceptance.py)
    moves: tuple[tuple[Any, ...], ...] = ()
    baseline_tiling: str = ""
    cases: tuple[str, ...] = ()  # tuned for several cases together: the hashes of their keys
    common_pair: str = ""  # the hash of their common pair; this entry's own unless the baseline is faster here
    ended: str = ""  # why the search ended (SearchResult.stop), or "reuse": there was none; "": an older version's
    specification: str = ""  # what results were judged by (sources/specification.py); "": an older version's

    def finished(self, budget: int) -> bool:
        """Whether a search with this budget would find no more: it ended by itself, or has spent as much."""
        return self.ended in (*FINISHED, "reuse", "") or self.evaluations >= budget

    def answers(self, specification: str) -> bool:
        """Whether results were judged by this: what is right in one domain need not be in another."""
        return self.specification in ("", specification)

    def suffices(self, specification: str, budget: int, unfinished: bool) -> bool:
        """Whether no search is to begin, or to go on; ``unfinished``: a search that could go on is accepted."""
        return self.answers(specification) and (unfinished or self.finished(budget))

    @property
    def search_text(self) -> str:
        """How far the search came, for people: ``40 of 40 evaluations``, ``11 of 40 evaluations, unfinished: ...``."""
        text = f"{self.evaluations} of {self.budget} evaluations"
        if self.ended == "exhausted":
            return f"{text}, nothing left to try"
        return text if self.finished(self.budget) else f"{text}, unfinished: {self.ended}"


@dataclass(frozen=True)
class Entry:
    """One tuned case: the best pair, what a launch of it needs, and what it was measured to bring.

    ``binary`` and ``kernel_name`` go to the run-time loader, ``tiling`` to the launch; a kernel of direct launch has a
    ``tiling`` with its block dim and no data. ``signature`` is None where the operator has no definition. ``interval``:
    of the speedup over plausible clocks; None for measured times and for the pair as written.
    """

    key: Key
    pair: Pair
    binary: bytes
    kernel_name: str
    tiling: TilingResult
    baseline: Profile
    best: Profile
    provenance: Provenance
    signature: Signature | None = None
    interval: Interval | None = None

    @property
    def speedup_text(self) -> str:
        """The speedup as people read it, with its interval."""
        return speedup_text(self.speedup, self.interval)

    @property
    def speedup(self) -> float:
        """Baseline's task duration over the best pair's; > 1 is faster."""
        return self.baseline.task_duration_us / self.best.task_duration_us

    @property
    def case(self) -> Case:
        """The case it was tuned for."""
        return Case.from_json(self.key.to_json()["case"])

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The case's outputs."""
        return self.case.outputs

    @property
    def improved(self) -> bool:
        """Whether the best pair is another one than the user's."""
        return self.pair.hash != self.key.baseline

    @property
    def common(self) -> bool:
        """Whether the pair is that of several cases tuned together."""
        return self.provenance.common_pair == self.pair.hash

    def to_files(self) -> dict[str, bytes]:
        """Every file of the entry's folder by relative path, ``entry.json`` last.

        Raises CacheError for a source path that would leave the folder.
        """
        files = {f"tiling/{_inside(p)}": text.encode() for p, text in self.pair.tiling.items()}
        files |= {f"kernel/{_inside(p)}": text.encode() for p, text in self.pair.kernel.items()}
        files |= {"kernel.bin": self.binary, "tiling.bin": self.tiling.data}
        launch = {k: v for k, v in asdict(self.tiling).items() if k != "data"}
        document: dict[str, Any] = {
            "key": self.key.to_json(),
            "speedup": self.speedup,
            **(self.interval.to_json() if self.interval is not None else {}),
            "baseline": self.baseline.to_json(),
            "best": self.best.to_json(),
            "provenance": asdict(self.provenance),
            "kernel_name": self.kernel_name,
            "launch": launch,
            "signature": asdict(self.signature) if self.signature else None,
            "files": {name: sha256(data) for name, data in sorted(files.items())},
        }
        document = json.loads(canonical(document))
        document["digest"] = sha256(canonical(document).encode())
        return {**files, ENTRY_FILE: (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()}

    @staticmethod
    def from_files(read: Callable[[str], bytes]) -> Entry:
        """The entry whose files ``read`` returns by relative path.

        Raises:
            CacheError: a file is missing, altered or truncated, or ``entry.json`` has other fields than it should; the
                text names it.
        """
        document = read_document(read)
        try:
            return Entry._of(document, read)
        except MALFORMED as error:
            raise CacheError(f"{ENTRY_FILE} does not have the expected fields ({error}).") from error

    @staticmethod
    def _of(document: Mapping[str, Any], read: Callable[[str], bytes]) -> Entry:
        contents: dict[str, bytes] = {}
        for name, digest in document["files"].items():
            contents[name] = _read(read, _inside(name))
            if sha256(contents[name]) != digest:
                raise CacheError(f"{name} is altered or truncated: its sha256 is not the recorded one.")
        sources = {
            kind: {n.removeprefix(f"{kind}/"): b.decode() for n, b in contents.items() if n.startswith(f"{kind}/")}
            for kind in ("tiling", "kernel")
        }
        launch = {**document["launch"], "initial_values": tuple(document["launch"].get("initial_values", ()))}
        provenance = {**document["provenance"], "changes": tuple(document["provenance"]["changes"])}
        provenance["cases"] = tuple(provenance.get("cases", ()))
        provenance["moves"] = tuple(tuple(m) for m in provenance.get("moves", ()))
        str(Case.from_json(document["key"]["case"]))  # it is one
        return Entry(
            key=typed(Key.from_json(document["key"])),
            pair=Pair(sources["tiling"], sources["kernel"]),
            binary=contents["kernel.bin"],
            kernel_name=document["kernel_name"],
            tiling=typed(TilingResult(data=contents["tiling.bin"], **launch)),
            baseline=_measured(Profile.from_json(document["baseline"])),
            best=_measured(Profile.from_json(document["best"])),
            provenance=typed(Provenance(**provenance)),
            signature=signature_from_json(document["signature"]),
            interval=Interval.from_json(document),
        )


_SIMPLE: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "bool": (bool,), "float": (int, float), "bytes": (bytes,),
}  # fmt: skip
T = TypeVar("T")


def typed(value: T) -> T:
    """The dataclass, if its fields of simple types hold values of them. Raises ValueError."""
    for f in fields(value):  # type: ignore[arg-type]
        wanted, found = _SIMPLE.get(str(f.type)), getattr(value, f.name)
        if wanted is not None and (not isinstance(found, wanted) or (isinstance(found, bool) and wanted != (bool,))):
            raise ValueError(f"{f.name} = {found!r:.40} is no {f.type}")
    return value


def _measured(profile: Profile) -> Profile:
    if not 0 < typed(profile).task_duration_us < math.inf:
        raise ValueError(f"task_duration_us = {profile.task_duration_us!r}")
    return profile


def read_document(read: Callable[[str], bytes]) -> dict[str, Any]:
    """``entry.json`` alone, checked against its own digest. Raises CacheError."""
    try:
        document = parse_json(_read(read, ENTRY_FILE))
        digest = document.pop("digest")
        found = sha256(canonical(document).encode())
        restored = dict(restore(document))
    except MALFORMED:
        raise CacheError(f"{ENTRY_FILE} is truncated or not JSON.") from None
    if found != digest:
        raise CacheError(f"{ENTRY_FILE} is altered: its digest is not the recorded one.")
    return restored


def folder_reader(folder: Path) -> Callable[[str], bytes]:
    return lambda name: read_plain(folder / name, FILE_BYTES)


def _read(read: Callable[[str], bytes], name: str) -> bytes:
    try:
        return read(name)
    except OSError as error:
        raise CacheError(f"{name} can't be read: {error.strerror or error}.") from error


def _inside(path: str) -> str:
    """``path`` if it stays below the folder it is relative to; else CacheError."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise CacheError(
            f"the source path {path!r} leaves the entry's folder.", "Keep an operator's files in its folder."
        )
    return path


def signature_from_json(document: Mapping[str, Any] | None) -> Signature | None:
    """Inverse of ``dataclasses.asdict`` of a Signature that went through JSON."""
    if document is None:
        return None

    def param(d: Mapping[str, Any]) -> ParamDef:
        lists = {name: tuple(d[name]) for name in ("dtypes", "formats", "init_values") if name in d}
        return ParamDef(**{**d, **lists})

    def attr(d: Mapping[str, Any]) -> AttrDef:
        default: AttrValue | None = tuple(d["default"]) if isinstance(d["default"], list) else d["default"]
        return AttrDef(d["name"], d["type"], default)

    return Signature(
        **{
            **document,
            "inputs": tuple(map(param, document["inputs"])),
            "outputs": tuple(map(param, document["outputs"])),
            "attrs": tuple(map(attr, document["attrs"])),
        }
    )
