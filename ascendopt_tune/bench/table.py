"""The benchmark's operators: ``operators.toml``, fixed before anything was tuned on it.

``list`` is ``test``, ``extended`` (who asks for it gets the test list and more) or ``development``, which shares no
operator with the others. Defaults of the search are chosen on the development list and elsewhere, never on the others.
``root`` is ``cann-ops`` (the default: ``path`` is below ``src`` of a checkout of cann-ops) or ``registry`` (``path``
names an operator that ships).
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..case import Case
from ..errors import CaseError, OperatorError, SettingsError
from ..operator import Operator, Signature
from ..project import load_project
from ..registry import load_operator
from ..settings import settings

TEST, EXTENDED, DEVELOPMENT = "test", "extended", "development"
LISTS = (TEST, EXTENDED, DEVELOPMENT)
#: What the levels mean here; the paper counts 43, 77 and 7 operators and names none of them.
LEVELS = {
    1: "element by element: math, comparison, creation, copies",
    2: "rows and lists: foreach, activation, norm, quant, reduction, pooling, index, conversion",
    3: "several phases in one kernel: sampling, routing, scattered gradients, fused quantization",
}


@dataclass(frozen=True)
class BenchOperator:
    """One operator and its case. ``domain``, ``values`` and ``initial`` are by position, as text keys of the TOML."""

    path: str
    level: int
    list: str
    case: Case
    root: str = "cann-ops"
    domain: Mapping[str, Sequence[float]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)
    in_place: tuple[int, ...] = ()
    tolerance: Mapping[str, Any] = field(default_factory=dict)

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
        return dataclasses.replace(
            operator,
            settings={
                "domain": domain,
                "in_place": [inputs[i].name for i in self.in_place],
                "initial": {outputs[int(i)].name: value for i, value in self.initial.items()},
                "tolerance": self.tolerance,
            },
        )


def read(path: Path | None = None) -> tuple[BenchOperator, ...]:
    """The table, in its order.

    Raises:
        CaseError: a line that can't be read, or an operator in the table twice.
    """
    path = path or Path(__file__).with_name("operators.toml")
    found: dict[str, BenchOperator] = {}
    for number, line in enumerate(tomllib.loads(path.read_text())["operator"], start=1):
        try:
            one = _operator(line)
        except (KeyError, ValueError, TypeError, CaseError) as error:
            raise CaseError(f"{path}, operator {number} ({line.get('path')}): {error}.") from error
        if one.path in found:
            raise CaseError(f"{path} has {one.path} twice.", "An operator is in one list, once.")
        found[one.path] = one
    return tuple(found.values())


def _operator(line: Mapping[str, Any]) -> BenchOperator:
    given = dict(line)

    def arguments(name: str) -> list[Any]:
        return [None if a == "-" else a for a in given.pop(name)]

    document = {"inputs": arguments("inputs"), "outputs": arguments("outputs"), "attrs": given.pop("attrs", {})}
    one = BenchOperator(case=Case.from_json(document), **given | {"in_place": tuple(given.get("in_place", ()))})
    if one.list not in LISTS or one.level not in LEVELS:
        raise ValueError(f"list {one.list!r}, level {one.level}")
    return one


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


def chosen(table: Sequence[BenchOperator], patterns: Sequence[str], name: str) -> tuple[BenchOperator, ...]:
    """Operators of the list ``name`` whose path fits one of the patterns (``math/*``); all of it without patterns.

    They are mixed: wherever a run of them is interrupted, each level has had its share, and a level's operators come
    in an order that their names decide and nothing else (by the digest of the path).

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
    return _mixed([o for o in found if not patterns or any(fnmatch.fnmatch(o.path, p) for p in patterns)])


def _mixed(operators: Sequence[BenchOperator]) -> tuple[BenchOperator, ...]:
    places: list[tuple[float, int, BenchOperator]] = []
    for level in LEVELS:
        of = [o for o in operators if o.level == level]
        of.sort(key=lambda o: hashlib.sha256(o.path.encode()).digest())
        places += [((i + 0.5) / len(of), level, o) for i, o in enumerate(of)]
    return tuple(o for _, _, o in sorted(places, key=lambda place: place[:2]))
