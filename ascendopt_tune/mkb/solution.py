"""The six strings of a solution, read from its syntax tree. The file is never executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OperatorError
from ..files import read_plain
from ..nouns.operator import SOURCE_LIMIT

#: The strings of a solution, in the order MultiKernelBench's own examples have.
NAMES = (
    "project_json_src",
    "host_tiling_src",
    "host_operator_src",
    "kernel_src",
    "python_bind_src",
    "model_src",
)
_FENCED = re.compile(r"```(?:python|cpp)?[ \t]*\n(.*?)```", re.DOTALL)
_TILING_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(\w+)_tiling\.h"', re.MULTILINE)
_ENTRY = re.compile(r'extern\s+"C"\s+__global__\s+__aicore__\s+void\s+(\w+)\s*\(')
_OPTIONS = re.compile(r"^# kernel options:[ \t]*(.*)$", re.MULTILINE)
_OPTION = re.compile(r"--cce-[\w-]+(=[\w-]+)?")  # what a file of others may say to a compiler


@dataclass(frozen=True)
class Solution:
    """``file`` is where it was read, ``texts`` the six strings by name, ``kernel_options`` what `export` noted."""

    file: Path
    texts: dict[str, str]
    kernel_options: tuple[str, ...] = ()

    @property
    def project(self) -> Mapping[str, Any]:
        """The operator's object of ``project_json_src``: op, language, input_desc, output_desc, attr.

        Raises:
            OperatorError: no JSON, or not a list of one object with a name.
        """
        try:
            document = json.loads(self.texts["project_json_src"])
        except ValueError as e:
            raise OperatorError(
                f"project_json_src of {self.file} is no JSON: {e}.", "It describes the operator."
            ) from e
        one: Any = document[0] if isinstance(document, list) and len(document) == 1 else document
        if not isinstance(one, dict) or not isinstance(one.get("op"), str):
            raise OperatorError(
                f"project_json_src of {self.file} is not a list of one object with the key op.",
                'It looks like [{"op": "AddCustom", "language": "cpp", "input_desc": [...], "output_desc": [...]}].',
            )
        return one

    @property
    def name(self) -> str:
        """The name MultiKernelBench gives the files (``add_custom``): of the tiling header that the host includes,
        else the kernel's function."""
        header = _TILING_HEADER.search(self.texts["host_operator_src"])
        return str(header[1]) if header else self.entry

    @property
    def entry(self) -> str:
        """The kernel's function.

        Raises:
            OperatorError: there is none, or several.
        """
        found = list(dict.fromkeys(_ENTRY.findall(self.texts["kernel_src"])))
        if len(found) != 1:
            what = f"has the kernels {', '.join(found)}" if found else "has no kernel"
            raise OperatorError(
                f"kernel_src of {self.file} {what}.", 'It needs one extern "C" __global__ __aicore__ void function.'
            )
        return str(found[0])


def read_solution(file: Path) -> Solution:
    """The solution in ``file``: Python text, or an answer of a model with that text in its first fenced block.

    Raises:
        OperatorError: it can't be read or is no Python; a string is missing, given twice, or no plain literal (the text
            says which, and the line).
    """
    try:
        text = read_plain(file, SOURCE_LIMIT).decode("utf-8", "replace")
    except OSError as e:
        raise OperatorError(f"{file} can't be read: {e.strerror or e}.", "Name the file of a solution.") from e
    tree = _parsed(file, text)
    texts: dict[str, str] = {}
    for statement in tree.body:
        for name, value in _assigned(statement):
            if name in NAMES:
                where = f"{file}:{statement.lineno}: {name}"
                if name in texts or isinstance(statement, ast.AugAssign):
                    raise OperatorError(f"{where} is assigned more than once.", "Assign it once, a string literal.")
                texts[name] = _literal(value, where)
    missing = [name for name in NAMES if name not in texts]
    if missing:
        raise OperatorError(
            f"{file} has no {', '.join(missing)}.",
            f"A solution of language ascendc assigns six strings: {', '.join(NAMES)}.",
        )
    noted = _OPTIONS.search(text)
    options = tuple(noted[1].split()) if noted else ()
    for option in options:
        if not _OPTION.fullmatch(option):
            raise OperatorError(f"{file} asks for the kernel option {option!r}.", "Options that may be: --cce-...")
    return Solution(file, texts, options)


def _parsed(file: Path, text: str) -> ast.Module:
    block = _FENCED.search(text)
    for source in (text, block[1] if block else text):
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            error = e
    where = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
    raise OperatorError(f"{file} is no Python text: {error}{where}.", "A solution assigns six strings in Python.")


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    """(name, value) of what a statement at the top of the file assigns."""
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets, value = [statement.target], statement.value  # type: ignore[assignment]
    else:
        return []
    return [(t.id, value) for t in targets if isinstance(t, ast.Name)]


def _literal(value: ast.expr | None, where: str) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    what = "an f-string" if isinstance(value, ast.JoinedStr) else "made by code"
    if isinstance(value, ast.Constant):
        what = f"no string, but {value.value!r:.40}"
    raise OperatorError(
        f"{where} is {what}; a solution is read, never executed, so its text would be a guess.",
        "Write the text itself as one string literal.",
    )
