"""Which of a repository's sources are for another architecture than 2201, the only one here.

CANN's open repositories keep them in folders called ``arch35``, in files called ``..._arch35``, ``..._regbase`` (vector
registers that code can name, of architecture 3510) or ``..._apt`` (its kernels); ``arch22`` and ``arch32`` are 2201
itself. Sources for all architectures call their functions behind a question for the chip, so a program of the others
lacks functions that nobody calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import OperatorError
from ..files import read_plain
from ..nouns.operator import SOURCE_LIMIT

_FOLDER = re.compile(r"(?:^|_)arch(?!(?:22|32)$)\d+$")
_ENDINGS = ("_apt", "_regbase")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINED = re.compile(r"(?:\b(\w+)\s*::\s*)?\b(\w+)\s*\([^;{}()]*\)\s*(?:const\s*)?\{")


def is_elsewhere(path: Path) -> bool:
    """Is the file, a path below its operator's folder, for another architecture?"""
    return any(_FOLDER.search(part) for part in (*path.parts[:-1], path.stem)) or path.stem.endswith(_ENDINGS)


def functions_elsewhere(folders: Sequence[Path]) -> tuple[str, ...]:
    """Names of functions, and classes of methods, that host sources for other architectures define in these folders.

    Raises:
        OperatorError: a file can't be read.
    """
    found: set[str] = set()
    for folder in folders:
        for file in sorted((folder / "op_host").rglob("*.cpp")):
            if is_elsewhere(file.relative_to(folder)):
                try:
                    text = read_plain(file, SOURCE_LIMIT).decode(errors="replace")
                except OSError as e:
                    raise OperatorError(f"{file} can't be read: {e.strerror}.") from e
                found.update(name for names in _DEFINED.findall(_COMMENT.sub(" ", text)) for name in names)
    return tuple(sorted(found - {""}))
