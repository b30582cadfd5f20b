"""Where around an operator a header lies that its sources include and a compiler doesn't find."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from ..sources.several import plain
from ..sources.texts import HEADERS

NAME_IT = "-I FOLDER names the folder that it lies in. If it is CANN's own, it is missing in this project."
_FOLDERS = 20_000  # that are looked into
_NO_SUCH = re.compile(r"fatal error: (\S+): No such file")


def missing_in(log: str) -> str:
    """The header that a compiler's messages are about, or an empty text."""
    found = _NO_SUCH.search(log)
    return found[1] if found else ""


def where_it_is(root: Path, header: str) -> str:
    """What to do about ``header``, included as it stands: which of the operator's own is called much the same
    (``op_custom_tiling.h``, ``o_p_custom_tiling.h``), or the option with a folder around ``root`` from which it is
    found, if there is one."""
    if Path(header).is_absolute():
        return NAME_IT
    if (alike := _alike(root, Path(header).name)) is not None:
        return f"The operator has {alike}: should that be included?"
    ups, rest = _ways(PurePosixPath(header))
    if rest is None:
        return NAME_IT
    top = next((p for p in (root, *root.parents) if (p / ".git").exists()), None) or root.parent.parent
    left = _FOLDERS
    for folder, below, _ in os.walk(top if len(top.parts) > 2 else root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if (Path(folder) / rest).is_file():
            begin = Path(folder).joinpath(*rest.parts[:ups])  # as deep as the way goes up again
            return f"There is one: -I {begin}"
        left -= 1
        if left == 0:
            break
    if not ups:
        return NAME_IT
    return (
        f"-I FOLDER helps where FOLDER/{header} is there; op_kernel/ of a folder called {rest.parts[0]} beside the "
        "operator, or in its repository, is searched as CANN's build installs it."
    )


def _alike(root: Path, name: str) -> Path | None:
    """The operator's own header that is called as ``name`` but for case and underscores, unless one is called so."""
    own = {p.name: p for p in sorted(root.rglob("*")) if p.suffix in HEADERS}
    return next((p for n, p in own.items() if name not in own and plain(n) == plain(name)), None)


def _ways(header: PurePosixPath) -> tuple[int, PurePosixPath | None]:
    """How often a way goes up, and the rest; None where it goes up again later, or farther than the rest goes down."""
    ups = next((i for i, part in enumerate(header.parts) if part != ".."), len(header.parts))
    rest = header.parts[ups:]
    return (0, None) if ".." in rest or ups >= len(rest) else (ups, PurePosixPath(*rest))
