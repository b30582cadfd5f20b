"""Which of a repository's sources are for another architecture than 2201, the only one here.

CANN's open repositories keep them in folders called ``arch35``, in files called ``..._arch35``, ``..._regbase`` (vector
registers that code can name, of architecture 3510) or ``..._apt`` (its kernels); ``arch22`` and ``arch32`` are 2201
itself. Sources for all architectures call their functions behind a question for the chip, so a program of the others
lacks functions that nobody calls. Tiling templates are different: one that is registered for every chip is made and
asked whether it fits. What defines it is wanted, as is a function that asks for the chip itself; CANN's build has both,
as it takes all of ``op_host/op_tiling``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import OperatorError
from ..files import read_plain
from ..nouns.operator import SOURCE_LIMIT

_FOLDER = re.compile(r"(?:^|_)arch(?!(?:22|32)$)\d+$")
_ENDINGS = ("_apt", "_regbase")
# One registered by REGISTER_TILING_TEMPLATE_WITH_ARCH, in sources of its own, is asked on that architecture alone.
_TEMPLATE = re.compile(r"\bREGISTER(?:_OPS)?_TILING_TEMPLATE\s*\(\s*\"?\w+\"?\s*,\s*(?:\w+\s*::\s*)*(\w+)\s*,")
_CALLED = re.compile(r"(?<![\w.>])(\w+)\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINED = re.compile(r"(?:\b(\w+)\s*::\s*)?\b(\w+)\s*\([^;{}()]*\)\s*(?:const\s*)?\{")


def is_elsewhere(path: Path) -> bool:
    """Is the file, a path below its operator's folder, for another architecture?"""
    return any(_FOLDER.search(part) for part in (*path.parts[:-1], path.stem)) or path.stem.endswith(_ENDINGS)


def asked_elsewhere(root: Path, linked: Iterable[str], headers: Iterable[str]) -> tuple[Path, ...]:
    """Host sources of the folder for other architectures that the ``linked`` ones (texts) ask whatever the chip is:
    they define methods of tiling templates which those register for all chips, or functions of no class which those
    call and neither they nor the ``headers`` define.

    Raises:
        OperatorError: a file can't be read.
    """
    ours = [_COMMENT.sub(" ", text) for text in linked]
    templates = {name for text in ours for name in _TEMPLATE.findall(text)}
    known = {name for text in (*ours, *headers) for _, name in _DEFINED.findall(text)}
    called = {name for text in ours for name in _CALLED.findall(text)} - known
    found = []
    for file in sorted((root / "op_host").rglob("*.cpp")):
        if is_elsewhere(file.relative_to(root)):
            defined = _DEFINED.findall(_COMMENT.sub(" ", _text(file)))
            if any(of in templates or (not of and name in called) for of, name in defined):
                found.append(file)
    return tuple(found)


def functions_elsewhere(folders: Sequence[Path]) -> tuple[str, ...]:
    """Names of functions, and classes of methods, that host sources for other architectures define in these folders.

    Raises:
        OperatorError: a file can't be read.
    """
    found: set[str] = set()
    for folder in folders:
        for file in sorted((folder / "op_host").rglob("*.cpp")):
            if is_elsewhere(file.relative_to(folder)):
                found.update(name for names in _DEFINED.findall(_COMMENT.sub(" ", _text(file))) for name in names)
    return tuple(sorted(found - {""}))


def _text(file: Path) -> str:
    try:
        return read_plain(file, SOURCE_LIMIT).decode(errors="replace")
    except OSError as e:
        raise OperatorError(f"{file} can't be read: {e.strerror}.") from e
