"""What to prebuild: a TOML file of operators and the calls they are to be tuned for.

```toml
chips = ["ascend910b2"]          # default: ASCENDOPT_CHIP
target = "virtual"               # auto, virtual or npu; default: ASCENDOPT_TARGET
budget = 40                      # evaluations per call; and other options of docs/options.md, here or per operator
recorded = ["calls.json"]        # calls recorded from a model (`aot.record`), relative to this file

[[operator]]
source = "rms_norm"              # a registry name, or a folder relative to this file
chips = ["ascend910b1"]
cases = "registry"               # the operator's own op.toml cases, beside those below

[[operator.case]]                # every combination of the grid
inputs = { x = "{dtype}[{rows},{columns}]", gamma = "{dtype}[{columns}]" }
attrs = { epsilon = 1e-6 }
grid = { dtype = ["float16", "bfloat16"], rows = [1, 64, 2048], columns = [4096] }
```
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import CaseError, OperatorError, did_you_mean
from ..files import MALFORMED, parse_json, read_plain, read_toml
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.run_options import RunOptions, declarations
from ..sources.registry import load_folder, load_operator, operator_names
from ..sources.several import folder_and_operator

#: Options of a run that a manifest may say, for all operators or for one; ``chips`` are several of ``chip``.
_OPTIONS = tuple(name for name, declared in declarations().items() if declared.stored and name != "chip")
_ANY = dict.fromkeys(_OPTIONS, object)
_TOP = {"chips": list, "recorded": list, "operator": list, **_ANY}
_OPERATOR = {"source": str, "chips": list, "cases": str, "case": list, **_ANY}
_CASE = {"inputs": dict, "outputs": dict, "attrs": dict, "grid": dict}


_CALLS_BYTES = 256 << 20


@dataclass(frozen=True)
class ManifestCall:
    """A call by the names a person uses: tensors as ``float16[64,4096]``, attributes as values.

    ``written``: what a recorded call changes: inputs, where the operator has them, or else buffers for its results.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    attrs: Mapping[str, Any]
    written: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    """One case of one operator to have a result for, and how it is tuned."""

    source: str  # registry name or folder, as the operator is loaded again in a worker
    call: ManifestCall
    options: RunOptions

    def operator(self) -> Operator:
        """Loads it. Raises OperatorError."""
        return load_folder(Path(self.source)) if Path(self.source).is_absolute() else load_operator(self.source)


def read_manifest(path: Path, options: RunOptions | None = None) -> list[Wish]:
    """Everything the file asks for, in its order, each once.

    Args:
        options: what goes where the file says nothing; default: what the environment says.

    Raises:
        OperatorError: the file can't be read, has a key this version doesn't know, or names no operator.
        CaseError: an unknown chip or placeholder, or a grid that is none.
    """
    try:
        document = read_toml(path)
    except OSError as error:
        raise OperatorError(f"{path} can't be read: {error.strerror or error}.", "Give a manifest in TOML.") from error
    except ValueError as error:
        raise OperatorError(f"{path} is no TOML: {error}.", "Correct it there.") from error
    _known(path, "", document, _TOP)
    wishes: dict[str, Wish] = {}
    try:
        for wish in _wishes(path, document, options or RunOptions()):
            name = json.dumps([wish.source, wish.options.chip, wish.call.__dict__], sort_keys=True)
            wishes.setdefault(name, wish)
    except MALFORMED as error:
        raise OperatorError(
            f"{path} has a value of another kind than its key holds: {error}.", "docs/deploy.md shows a manifest."
        ) from error
    if not wishes:
        raise OperatorError(f"{path} asks for nothing.", "Add an [[operator]] with cases, or `recorded` calls.")
    return list(wishes.values())


def _wishes(path: Path, document: Mapping[str, Any], options: RunOptions) -> Iterator[Wish]:
    chips = document.get("chips", [options.chip])
    options = _with(options, path, document)
    for number, entry in enumerate(document.get("operator", [])):
        where = f"operator {number + 1}: "
        _known(path, where, entry, _OPERATOR)
        if "source" not in entry:
            raise OperatorError(f"{path}: {where}no source.", 'Add source = "NAME or folder".')
        source = _source(path, entry["source"])
        own = _with(options, path, entry)
        for call in _calls(path, where, source, entry):
            for chip in entry.get("chips", chips):
                yield Wish(source, call, replace(own, chip=load_chip(chip).name))
    for name in document.get("recorded", []):
        for source, call in _recorded(path.parent / name):
            for chip in chips:
                yield Wish(source, call, replace(options, chip=load_chip(chip).name))


def _with(options: RunOptions, path: Path, table: Mapping[str, Any]) -> RunOptions:
    """The options with those that the table says. Raises CaseError for a value that an option can't have."""
    given: dict[str, Any] = {name: table[name] for name in _OPTIONS if name in table}
    if isinstance(given.get("steps"), list):
        given["steps"] = tuple(given["steps"])
    try:
        return replace(options, **given)
    except CaseError as error:
        raise CaseError(f"{path}: {error.message}", error.hint) from error


def _calls(path: Path, where: str, source: str, entry: Mapping[str, Any]) -> Iterator[ManifestCall]:
    given = entry.get("case", [])
    if entry.get("cases", "registry" if not given else None) == "registry":
        operator = load_folder(Path(source)) if Path(source).is_absolute() else load_operator(source)
        own = operator.settings.get("case", [])
        if not own and not given:
            raise CaseError(f"{path}: {where}{operator.name} has no cases of its own.", "Add an [[operator.case]].")
        for case in own:
            yield ManifestCall(case.get("inputs", {}), case.get("outputs", {}), case.get("attrs", {}))
    elif "cases" in entry:
        raise CaseError(f"{path}: {where}cases = {entry['cases']!r}.", 'The one value is "registry".')
    for case in given:
        _known(path, where, case, _CASE)
        grid = case.get("grid", {})
        if not all(isinstance(values, list) and values for values in grid.values()):
            raise CaseError(f"{path}: {where}a grid needs a list of values for each name.", "grid = { rows = [1, 64] }")
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            inputs, outputs = (_filled(path, where, case.get(part, {}), chosen) for part in ("inputs", "outputs"))
            attrs = {k: chosen[v[1:-1]] if _is_placeholder(v, chosen) else v for k, v in case.get("attrs", {}).items()}
            yield ManifestCall(inputs, outputs, attrs)


def _is_placeholder(value: object, chosen: Mapping[str, Any]) -> bool:
    return isinstance(value, str) and value.startswith("{") and value.endswith("}") and value[1:-1] in chosen


def _filled(path: Path, where: str, tensors: Mapping[str, str], chosen: Mapping[str, Any]) -> dict[str, str]:
    def value(found: re.Match[str]) -> str:
        if found[1] not in chosen:
            raise CaseError(
                f"{path}: {where}can't fill {dict(tensors)!r:.200}: {found[0]:.80} names nothing.",
                f"The grid has {', '.join(chosen) or 'nothing'}; write {{name}}.",
            )
        return str(chosen[found[1]])

    if not all(isinstance(text, str) for text in tensors.values()):
        raise CaseError(f"{path}: {where}a tensor is a text: {dict(tensors)!r:.200}.", 'x = "float16[64,4096]"')
    return {name: re.sub(r"\{([^{}]*)\}", value, text) for name, text in tensors.items()}


def _recorded(path: Path) -> Iterator[tuple[str, ManifestCall]]:
    """Calls as ``aot.record`` writes them: ``{"calls": [{"operator", "inputs", "written", "attrs", "count"}]}``."""
    try:
        calls = parse_json(read_plain(path, _CALLS_BYTES))["calls"]
        for call in sorted(calls, key=lambda c: -c.get("count", 1)):
            parts = (call.get(part, {}) for part in ("outputs", "attrs", "written"))
            yield _source(path, call["operator"]), ManifestCall(call["inputs"], *parts)
    except (OSError, *MALFORMED) as error:
        raise CaseError(f"the recorded calls {path} can't be read: {error!r}.", "Record them again.") from error


def _source(path: Path, text: str) -> str:
    """The registry's name, or the folder's absolute path. Raises OperatorError."""
    name = text.removeprefix("registry/")
    if name in operator_names():
        return name
    folder, wanted = folder_and_operator(path.parent / text)
    folder = folder.resolve()
    if not folder.is_dir():
        raise OperatorError(
            f"{path}: there is no operator {text!r}.{did_you_mean(name, operator_names())}",
            f"Name a folder relative to the file, or one of the registry: {', '.join(operator_names())}.",
        )
    return f"{folder}:{wanted}" if wanted else str(folder)


def _known(path: Path, where: str, table: object, keys: Mapping[str, type]) -> None:
    if not isinstance(table, dict):
        raise OperatorError(f"{path}: {where}{table!r} is no table.", f"Its keys: {', '.join(sorted(keys))}.")
    for name, value in table.items():
        if name not in keys:
            near = did_you_mean(name, keys)
            raise OperatorError(
                f"{path}: {where}unknown key {name!r}.{near}", f"Known keys: {', '.join(sorted(keys))}."
            )
        if not isinstance(value, keys[name]):
            kind = {list: "a list", dict: "a table", str: "text", int: "a whole number"}[keys[name]]
            raise OperatorError(f"{path}: {where}{name} = {value!r} is not {kind}.", "Correct it there.")
