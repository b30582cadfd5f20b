"""The benchmark's operators: ``operators.toml``, fixed before anything was tuned on it.

``list`` is ``test``, ``extended`` (who asks for it gets the test list and more) or ``development``, which shares no
operator with the others. Defaults of the search are chosen on the development list and elsewhere, never on the others.
``root`` is ``cann-ops`` (the default: ``path`` is below ``src`` of a checkout of cann-ops) or ``registry`` (``path``
names an operator that ships).
"""

from __future__ import annotations

import fnmatch
import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import CaseError, OperatorError, SettingsError
from ..nouns.case import Case, flatten
from ..nouns.operator import Operator, Signature
from ..settings import settings
from ..sources.project import load_project
from ..sources.registry import load_operator
from .sizes import SIZES, Letters, filled, shape

TEST, EXTENDED, DEVELOPMENT = "test", "extended", "development"
LISTS = (TEST, EXTENDED, DEVELOPMENT)
#: What the levels mean here; the paper counts 43, 77 and 7 operators and names none of them.
LEVELS = {
    1: "element by element: math, comparison, creation, copies",
    2: "rows and lists: foreach, activation, norm, quant, reduction, pooling, index, conversion",
    3: "several phases in one kernel: sampling, routing, scattered gradients, fused quantization",
}


#: Every so many-th operator of a level is in the sample that the more expensive comparisons run on.
SAMPLE = 3


@dataclass(frozen=True)
class BenchOperator:
    """One operator and its case at one size.

    ``domain``, ``values`` and ``initial`` are by position, as text keys of the TOML. ``sampled``: whether it is in the
    sample: the first, fourth, seventh, ... operator of its list and level, in the order of the digests of the paths,
    with all its sizes.
    """

    path: str
    size: str
    level: int
    list: str
    case: Case
    root: str = "cann-ops"
    domain: Mapping[str, Sequence[float]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)
    in_place: tuple[int, ...] = ()
    tolerance: Mapping[str, Any] = field(default_factory=dict)
    sampled: bool = False

    @property
    def elements(self) -> int:
        """Of the largest tensor."""
        return max(t.numel for t in flatten((*self.case.inputs, *self.case.outputs)))

    @property
    def name(self) -> str:
        return f"{self.path} {self.size}"

    def load(self) -> Operator:
        """The operator, unmodified; the baseline pair is its specification.

        Raises:
            OperatorError: its folder isn't there or has another layout.
            SettingsError: as ``check_sources``.
        """
        if self.root == "registry":
            return load_operator(self.path)
        return load_project(_cann_ops(self) / self.path)

    def with_settings(self, operator: Operator, signature: Signature) -> Operator:
        """``operator`` with what an op.toml would say of its inputs; ``signature`` names them."""
        if self.root == "registry":
            return operator
        inputs, outputs = signature.inputs, signature.outputs
        domain: dict[str, Mapping[str, Any]] = {}
        for i, (low, high) in self.domain.items():
            domain[inputs[int(i)].name] = {"low": low, "high": high}
        for i, values in self.values.items():
            domain[inputs[int(i)].name] = {"values": values}
        return replace(
            operator,
            settings={
                "domain": domain,
                "in_place": [inputs[i].name for i in self.in_place],
                "initial": {outputs[int(i)].name: value for i, value in self.initial.items()},
                "tolerance": self.tolerance,
            },
        )


@dataclass(frozen=True)
class LeftOut:
    """A size that an operator has no case of, and why."""

    path: str
    size: str
    list: str
    reason: str


def read(path: Path | None = None) -> tuple[BenchOperator, ...]:
    """The table, in its order; each operator at every size that it has a case of.

    Raises:
        CaseError: a line that can't be read, or an operator in the table twice.
    """
    return tuple(one for one in _entries(path) if isinstance(one, BenchOperator))


def left_out(path: Path | None = None) -> tuple[LeftOut, ...]:
    """The sizes that operators of the table have no case of. Raises CaseError as ``read``."""
    return tuple(one for one in _entries(path) if isinstance(one, LeftOut))


def _entries(path: Path | None) -> list[BenchOperator | LeftOut]:
    path = path or Path(__file__).with_name("operators.toml")
    found: dict[str, list[BenchOperator | LeftOut]] = {}
    for number, line in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["operator"], start=1):
        try:
            sized = [_operator(line, size) for size in SIZES]
        except (KeyError, ValueError, TypeError, SyntaxError, CaseError) as error:
            raise CaseError(f"{path}, operator {number} ({line.get('path')}): {error}.") from error
        if sized[0].path in found:
            raise CaseError(f"{path} has {sized[0].path} twice.", "An operator is in one list, once.")
        found[sized[0].path] = sized
    every = [one for sized in found.values() for one in sized]
    sample = _sample([one for one in every if isinstance(one, BenchOperator)])
    return [replace(o, sampled=o.path in sample) if isinstance(o, BenchOperator) else o for o in every]


def _operator(line: Mapping[str, Any], size: str) -> BenchOperator | LeftOut:
    given = dict(line)
    letters: Letters | str = [given.pop(name) for name in SIZES][SIZES.index(size)]
    if given["list"] not in LISTS or given["level"] not in LEVELS:
        raise ValueError(f"list {given['list']!r}, level {given['level']}")
    if isinstance(letters, str):
        return LeftOut(given["path"], size, given["list"], letters)

    def argument(text: Any) -> Any:
        if isinstance(text, list):
            return [shape(t, letters) for t in text]
        return None if text == "-" else shape(text, letters)

    inputs, outputs = ([argument(a) for a in given.pop(name)] for name in ("inputs", "outputs"))
    document = {"inputs": inputs, "outputs": outputs, "attrs": filled(given.pop("attrs", {}), letters)}
    rest = filled(given, letters) | {"in_place": tuple(given.get("in_place", ()))}
    return BenchOperator(size=size, case=Case.from_json(document), **rest)


def _sample(operators: Sequence[BenchOperator]) -> set[str]:
    """The paths that are sampled, by the rule of ``BenchOperator``."""
    found: set[str] = set()
    for name in (DEVELOPMENT, EXTENDED):
        for level in LEVELS:
            paths = {o.path for o in listed(operators, name) if o.level == level}
            found.update(sorted(paths, key=_digest)[::SAMPLE])
    return found


def _digest(path: str) -> bytes:
    return hashlib.sha256(path.encode()).digest()


def check_sources(operators: Sequence[BenchOperator]) -> None:
    """What these operators need can be found: better said now than an hour into a run.

    Raises:
        SettingsError: one is of cann-ops, and no checkout of it is configured.
    """
    for one in operators:
        if one.root != "registry":
            _cann_ops(one)


def _cann_ops(one: BenchOperator) -> Path:
    root = settings().cann_ops
    if root is None:
        raise SettingsError(
            f"{one.path} is an operator of cann-ops, and ASCENDOPT_CANN_OPS is not set.",
            "Set it to a checkout of cann-ops, or choose others by --operators.",
        )
    sources = root / "src"
    if not sources.is_dir():
        raise SettingsError(
            f"ASCENDOPT_CANN_OPS is {root}, which has no folder src.", "Set it to the top of a checkout of cann-ops."
        )
    return sources


def listed(table: Sequence[BenchOperator], name: str) -> list[BenchOperator]:
    """The operators of a list, in the table's order."""
    lists = (TEST, EXTENDED) if name == EXTENDED else (name,)
    return [o for o in table if o.list in lists]


def chosen(
    table: Sequence[BenchOperator], patterns: Sequence[str], name: str, sizes: Sequence[str] = SIZES
) -> tuple[BenchOperator, ...]:
    """Operators of the list ``name`` whose path fits one of the patterns (``math/*``), all of it without patterns, at
    these sizes.

    They are mixed: wherever a run of them is interrupted, each level has had its share, and a level's operators come
    in an order that their names decide and nothing else (by the digest of the path). An operator's sizes follow each
    other.

    Raises:
        OperatorError: a pattern that fits no operator of the list.
    """
    found = listed(table, name)
    for pattern in patterns:
        if not any(fnmatch.fnmatch(o.path, pattern) for o in found):
            raise OperatorError(
                f"no operator of the {name} list fits {pattern!r}.",
                "`ascendopt-tune bench operators` lists them.",
            )
    wanted = [o for o in found if not patterns or any(fnmatch.fnmatch(o.path, p) for p in patterns)]
    order = {path: place for place, path in enumerate(_mixed(wanted))}
    return tuple(sorted((o for o in wanted if o.size in sizes), key=lambda o: (order[o.path], SIZES.index(o.size))))


def each_nth(cases: Sequence[BenchOperator], nth: int) -> tuple[BenchOperator, ...]:
    """Each ``nth`` operator's cases."""
    kept = set(list(dict.fromkeys(o.path for o in cases))[::nth])
    return tuple(o for o in cases if o.path in kept)


def _mixed(operators: Sequence[BenchOperator]) -> list[str]:
    places: list[tuple[float, int, str]] = []
    for level in LEVELS:
        of = sorted({o.path for o in operators if o.level == level}, key=_digest)
        places += [((i + 0.5) / len(of), level, path) for i, path in enumerate(of)]
    return [path for _, _, path in sorted(places)]
