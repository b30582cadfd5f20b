"""Folders that hold several operators, as msopgen makes them when an operator is added to a project (``-m 1``).

One of them is named behind the folder: ``path/to/project:AddRelu``, by the name of its definition (``OP_ADD(AddRelu)``)
or of its kernel (``add_relu``). Its files are what the others don't claim: sources that define other operators, and
kernel files with other kernels, are left out, unless a file that stays needs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

_OP_ADD = re.compile(r"\bOP_ADD\s*\(\s*(\w+)\s*\)")
_OPERATOR = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_DEFINED = re.compile(r"^[A-Za-z_][\w:<>&*\s]*?\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{", re.MULTILINE)
_DECLARED = re.compile(
    r"^[ \t]*(?!(?:return|else|throw|delete|new)\b)[A-Za-z_][\w:<>]*[\s&*][\w:<>&*\s]*?\w+\s*"
    r"\([^;{}]*\)\s*(?:const\s*)?;",
    re.MULTILINE,
)
_CALLED = re.compile(r"\b(\w+)\s*(?:<[^<>;{}]*>)?\s*\(")


def plain(name: str) -> str:
    """``AddRelu`` and ``add_relu`` are one name."""
    return name.replace("_", "").lower()


def folder_and_operator(text: str | Path) -> tuple[Path, str]:
    """``path/to/project:AddRelu`` as folder and operator; other texts are folders, with "" for the operator."""
    folder, colon, operator = str(text).rpartition(":")
    if colon and _OPERATOR.fullmatch(operator) and not Path(text).is_dir() and Path(folder).is_dir():
        return Path(folder), operator
    return Path(text), ""


def host_of(host: Mapping[str, str], entry: str) -> dict[str, str]:
    """The host files without sources that define (``OP_ADD``) other operators than the one whose kernel is ``entry``.

    All of them where no source defines an operator of that name, and those whose functions a file that stays calls.
    """
    defined = {path: {plain(name) for name in _OP_ADD.findall(text)} for path, text in host.items()}
    if not any(plain(entry) in names for names in defined.values()):
        return dict(host)
    kept = [path for path, names in defined.items() if not names or plain(entry) in names]
    bodies = {path: set(_DEFINED.findall(text)) for path, text in host.items()}
    return _with_needed(host, kept, lambda path, texts: bool(bodies[path] & _missing(texts)))


def kernels_of(kernel: Mapping[str, str], entries: Mapping[str, str], main: str) -> dict[str, str]:
    """The kernel files without those that hold a kernel besides ``main``, unless a file that stays includes them.

    ``entries``: the file of each kernel that is a candidate, by its function.
    """
    others = set(entries.values()) - {main}
    kept = [path for path in kernel if path not in others]
    return _with_needed(kernel, kept, lambda path, texts: PurePosixPath(path).name in _included(texts))


def _with_needed(files: Mapping[str, str], kept: list[str], needed: Callable[[str, list[str]], bool]) -> dict[str, str]:
    """The files of ``kept``, and of the others what ``needed`` says of (its path, the texts that stay)."""
    left = [path for path in files if path not in kept]
    more: list[str] | None = None
    while left and more != []:
        texts = [files[path] for path in kept]
        more = [path for path in left if needed(path, texts)]
        kept = [*kept, *more]
        left = [path for path in left if path not in more]
    return {path: text for path, text in files.items() if path in kept}


def _missing(texts: Iterable[str]) -> set[str]:
    """Functions that these texts call and don't define."""
    called: set[str] = set()
    defined: set[str] = set()
    for text in texts:
        called.update(_CALLED.findall(_DECLARED.sub(" ", text)))
        defined.update(_DEFINED.findall(text))
    return called - defined


def _included(texts: Iterable[str]) -> set[str]:
    return {PurePosixPath(name).name for text in texts for name in _INCLUDE.findall(text)}
