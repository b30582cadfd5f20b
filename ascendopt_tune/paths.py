"""The only file that knows where things are: shipped data, the virtual NPU's sources, the writable folders.

Nothing here creates a folder; the writer does, so that its error names what it wanted to write.
"""

from __future__ import annotations

from pathlib import Path

import platformdirs

from .errors import AscendOptError
from .settings import settings

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "_data"  # exists only in an installed wheel (setup.py copies the folders there)
_CHECKOUT = _PACKAGE.parent


def shipped(folder: str) -> Path:
    """The project's data folder ``registry`` or ``cache``, read-only for the program.

    Raises AscendOptError if the installation lacks it.
    """
    for place in (_SHIPPED, _CHECKOUT):
        if (place / folder).is_dir():
            return place / folder
    raise AscendOptError(
        f"the folder {folder!r} is neither in {_SHIPPED} nor in {_CHECKOUT}.",
        "Reinstall ascendopt_tune; it is incomplete.",
    )


def vnpu() -> Path:
    """The virtual NPU's sources: ``include/``, ``core/``, ``semantics/``, ``runtime/``, ``host/``."""
    return _PACKAGE / "vnpu"


def chips() -> Path:
    """The folder of chip files, one TOML per chip."""
    return vnpu() / "chips"


def cache_dir() -> Path:
    """The writable cache: ``$ASCENDOPT_CACHE_DIR``, else the platform's user cache folder."""
    return settings().cache_dir or platformdirs.user_cache_path("ascendopt_tune", appauthor=False)


def cache_layers() -> tuple[Path, ...]:
    """Read-only cache folders in the order they are asked, after the writable one: the user's, then the shipped one."""
    return (*settings().cache_layers, shipped("cache"))


def toolkit_dir() -> Path:
    """Where virtual toolkits are built, one folder per content hash: ``$ASCENDOPT_TOOLKIT_DIR``, else in the cache."""
    return settings().toolkit_dir or cache_dir() / "toolkit"


def build_dir() -> Path:
    """Where compiled operators are kept, named by their contents: ``$ASCENDOPT_BUILD_DIR``, else in the cache."""
    return settings().build_dir or cache_dir() / "build"


def built_toolkit() -> Path | None:
    """A virtual toolkit that was built elsewhere: ``$ASCENDOPT_TOOLKIT_BUILT``, else the installation's, else None."""
    own = _SHIPPED / "toolkit"
    return settings().toolkit_built or (own if own.is_dir() else None)
