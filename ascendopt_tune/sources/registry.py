"""The operators that ship with the project: ``registry/<op>/`` in CANN's project layout, plus op.toml and reference.py.

``op.toml``, all keys optional (docs/operators.md has examples):
    name, entry, torch_op ("my_ops::rms_norm"), summary (one line)
    [options]            kernel = ["--cce-auto-sync=off"]: options of the kernel compiler
    specials = true      infinities and NaN are defined for this operator
    [tolerance.float16]  rtol, atol, ratio (share of elements that may miss both), per output dtype
    [domain.x]           the values input x may have (docs/operators.md)
    [bucket]             x = ["pow2", "exact"]: which shapes share a tiling program (docs/runtime.md)
    in_place = ["x"]     inputs that the kernel changes without the definition having an output for them
    [initial]            y = 0.0: what output y has to be filled with before a launch, where no InitValue says so
    [[case]]             inputs = {x = "float16[1024,4096]"}, attrs = {eps = 1e-6}: shapes; the first is the default

``reference.py`` defines ``reference(*inputs, **attrs)`` on CPU torch tensors, in the definition's order (a list for a
dynamic parameter, None for an absent one); it returns a tensor or a tuple. It is read when it is first called.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import OperatorError, did_you_mean
from ..files import read_toml
from ..nouns.operator import Operator
from .project import load_project
from .several import folder_and_operator

_KEYS = {
    "name": str,
    "entry": str,
    "torch_op": str,
    "summary": str,
    "options": dict,
    "specials": bool,
    "tolerance": dict,
    "domain": dict,
    "in_place": list,
    "initial": dict,
    "bucket": dict,
    "case": list,
}
#: What the tables and the list hold.
_INNER = {"tolerance": dict, "domain": dict, "options": list, "in_place": str, "initial": int | float, "case": dict}
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,199}", re.ASCII)
_TOLERANCE = ("rtol", "atol", "ratio")


def operator_names() -> list[str]:
    """Names of the registry's operators, sorted."""
    return sorted(f.parent.name for f in paths.shipped("registry").glob("*/op.toml"))


def operator_of(source: str | Path | Operator) -> Operator:
    """What a user means by an operator: ``rms_norm`` or ``registry/rms_norm`` of the registry, a folder, or itself.

    Raises OperatorError if there is none.
    """
    if isinstance(source, Operator):
        return source
    name = str(source).removeprefix("registry/")
    if name not in operator_names() and Path(source).is_dir():
        return load_folder(Path(source))
    return load_operator(name)


def rooted(source: str | Path | Operator) -> str | Path | Operator:
    """The same for :func:`operator_of`, whatever the working folder will be: a relative one is in that of now."""
    if isinstance(source, Operator) or str(source).removeprefix("registry/") in operator_names():
        return source
    folder, wanted = folder_and_operator(source)
    if not folder.is_dir():
        return source
    place = os.path.abspath(folder)
    return f"{place}:{wanted}" if wanted else place


def load_operator(name: str) -> Operator:
    """The registry's operator ``name``; with a path, the operator in that folder (with its op.toml if it has one).

    Of a folder with several operators one is named behind it, ``path/to/project:AddRelu``.

    Raises:
        OperatorError: no such operator (lists those there are), or its op.toml is wrong.
    """
    folder = paths.shipped("registry") / name
    if name in operator_names():
        return load_folder(folder)
    given, wanted = folder_and_operator(name)
    if wanted or ("/" in name and given.is_dir()):
        return load_folder(Path(name))
    if "/" in name:
        raise OperatorError(f"there is no folder {name}.", "Check the path: it names a folder with op_host/ in it.")
    raise OperatorError(
        f"unknown operator {name!r}.{did_you_mean(name, operator_names())}",
        f"The registry has: {', '.join(operator_names()) or 'nothing'}; or give the path of an operator folder.",
    )


def load_folder(folder: Path) -> Operator:
    """The operator in ``folder``, with settings and reference if op.toml and reference.py are there.

    For ``folder:AddRelu``, one of several, the files are op_add_relu.toml and reference_add_relu.py.
    """
    folder, wanted = folder_and_operator(folder)
    if wanted:
        entry = load_project(folder, (), wanted).entry
        names = (f"op_{entry}.toml", f"reference_{entry}.py")
    else:
        names = ("op.toml", "reference.py")
    file, reference = (folder / name for name in names)
    settings = read_settings(file) if file.is_file() else {}
    operator = load_project(folder, settings.get("options", {}).get("kernel", ()), wanted)
    return replace(
        operator,
        name=str(settings.get("name", operator.name)),
        entry=str(settings.get("entry", operator.entry)),
        reference=LazyReference(reference.resolve()) if reference.is_file() else None,
        settings=settings,
    )


def read_settings(file: Path) -> Mapping[str, Any]:
    """op.toml as read.

    Raises:
        OperatorError: no TOML, a key this version doesn't know, or a value that it doesn't hold.
    """
    try:
        settings = read_toml(file)
    except (OSError, ValueError) as e:
        raise OperatorError(
            f"{file} can't be read: {e}.", "Correct it; its keys are listed in docs/operators.md."
        ) from e
    unknown = sorted(set(settings) - set(_KEYS))
    if unknown:
        raise OperatorError(
            f"{file} has the unknown key {unknown[0]!r}.{did_you_mean(unknown[0], _KEYS)}",
            f"Known keys: {', '.join(sorted(_KEYS))} (docs/operators.md).",
        )
    for name, value in settings.items():
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        kind = _INNER.get(name, object)
        if not isinstance(value, _KEYS[name]) or not all(isinstance(v, kind) for v in inner):
            raise OperatorError(
                f"{file}: {name} = {value!r:.80} is not what this key holds.", "The registry's own op.toml show it."
            )
    if not _NAME.fullmatch(settings.get("name", "x")):
        raise OperatorError(
            f"{file}: name = {settings['name']!r:.80} is no name of an operator.",
            "Letters, digits, _, - and . are; results are kept in a folder of that name.",
        )
    for dtype, given in settings.get("tolerance", {}).items():
        _check_tolerance(file, dtype, given)
    return settings


def _check_tolerance(file: Path, dtype: str, given: Mapping[str, Any]) -> None:
    for field, value in given.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if field not in _TOLERANCE or not number or not 0 <= value < float("inf"):
            raise OperatorError(
                f"{file}: {field} = {value!r:.80} of tolerance.{dtype} is no tolerance.",
                f"It holds {', '.join(_TOLERANCE)}: numbers, 0 or more.",
            )


@dataclass(frozen=True)
class LazyReference:
    """Calls ``reference`` of a file that is imported at the first call (it imports torch). Survives pickling."""

    file: Path

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        return self.function(*inputs, **attrs)

    @property
    def function(self) -> Callable[..., Any]:
        """``reference`` itself, whose annotations say what it takes and returns."""
        return _function(self.file)


_loaded: dict[Path, Callable[..., Any]] = {}


def _function(file: Path) -> Callable[..., Any]:
    if file not in _loaded:
        spec = importlib.util.spec_from_file_location(f"ascendopt_tune_reference_{file.parent.name}", file)
        if spec is None or spec.loader is None:
            raise OperatorError(f"{file} is no Python file.")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, "reference", None)
        if not callable(function):
            raise OperatorError(f"{file} defines no function `reference`.", "Define reference(*inputs, **attrs).")
        _loaded[file] = function
    return _loaded[file]
