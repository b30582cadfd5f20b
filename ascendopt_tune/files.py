"""Files that are there whole or not at all, whatever happens while they are written; room for them; and reading what
somebody else may have put in a file's place.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import CacheError

#: What code raises that is given a document of another form than the one it reads: fields that are missing, of another
#: type or out of range, nested without end.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

_NAME = 24  # characters of the file's name, and of its suffix, in that of a temporary one


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yields a new name in the same folder, with the same suffix, to write to; what is there at the end becomes
    ``path`` in one step. If the block raises, ``path`` stays as it was and nothing else stays.

    What is no plain file (``/dev/stdout``, a pipe) can't be replaced: then ``path`` itself is yielded. ``durable``:
    flushed to the disk before it gets its name, so that it is whole even after the machine has failed.
    """
    if path.exists() and not path.is_file():
        try:
            yield path
        except OSError as error:
            error.filename = error.filename or str(path)
            raise
        return
    path = path.resolve()  # what a link points to, not the link
    # A name may have 255 bytes, and the user's may have them all.
    temporary = path.with_name(f".{path.stem[:_NAME]}-{uuid.uuid4().hex[:8]}{path.suffix[:_NAME]}")
    try:
        yield temporary
        if durable:
            descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        os.replace(temporary, path)
    except BaseException as error:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name its user knows; of a disk that is full the system tells none
        raise


def hold(descriptor: int, wait: bool) -> None:
    """Takes the lock of an open file, which the system releases when its holder dies.

    Raises:
        BlockingIOError: another process has it, and ``wait`` is False.
        OSError: the file system has no locks; ``strerror`` tells.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:  # some network file systems, unless they are mounted with locks
        raise OSError(error.errno, f"its file system gives no locks ({error.strerror})") from error


def let_go(descriptor: int) -> None:
    """Gives the lock back and closes the file: closing alone won't do if another thread has forked meanwhile."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Holds the lock file ``path``, which is made in a folder there is and stays. Raises as :func:`hold`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        hold(descriptor, wait)
    except BaseException:
        os.close(descriptor)
        raise
    try:
        yield
    finally:
        let_go(descriptor)


def check_space(folder: Path, needed: int) -> None:
    """Raises CacheError if the disk of ``folder``, which exists, has less room than ``needed`` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CacheError(
            f"the disk of the folder {folder} is full: {free >> 20} MiB free of {needed >> 20} needed.",
            "Free some space, or name a folder of another disk (ASCENDOPT_CACHE_DIR, TMPDIR).",
        )


def write_whole(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Writes the file in one step. Raises OSError; ``path`` is then as it was."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, durable=durable) as file:
        file.write_bytes(data)


def write_between(page: Path, begin: str, end: str, what: str, text: str, fresh: str = "") -> None:
    """Puts ``text`` between two marks of a page that people write around it.

    Args:
        what: what the text is, for the error.
        fresh: the page's title where there is no page yet; none: the page has to be there.

    Raises:
        CacheError: the page hasn't these marks, or can't be written.
    """
    old = page.read_text(encoding="utf-8") if page.exists() else f"{fresh}\n\n{begin}\n{end}\n" if fresh else ""
    if begin not in old or end not in old:
        raise CacheError(f"{page} has no place for {what}.", f"Put the lines {begin!r} and {end!r} into it.")
    try:
        write_whole(page, f"{old.partition(begin)[0]}{begin}\n\n{text}\n\n{end}{old.partition(end)[2]}")
    except OSError as error:
        raise CacheError(f"can't write {page}: {error.strerror}.", "Name another --docs.") from error


def resolved(path: Path) -> Path:
    """The absolute path without links. Raises OSError for links in a circle, or the home of a user there isn't."""
    try:
        return path.expanduser().resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, str(error), str(path)) from None


def read_plain(path: Path, limit: int) -> bytes:
    """The bytes of a file. A pipe or device in its place is not waited for, and no more than ``limit`` bytes are read.

    Raises:
        OSError: it can't be read, is no plain file, or has more than ``limit`` bytes; ``strerror`` tells.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "it is no plain file", str(path))
    with open(fd, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit} bytes", str(path))
    return data


def read_source(path: Path, limit: int = 16 << 20) -> str:
    """The text of a source file, as :func:`read_plain` reads it.

    Raises:
        OSError: as there, or it is no UTF-8.
    """
    try:
        return read_plain(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise OSError(errno.EILSEQ, f"it is no UTF-8 text (byte {error.start})", str(path)) from None


def parse_json(text: str | bytes) -> Any:
    """The document. Raises ValueError for everything that is none, nesting too deep to be read among it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


#: What people and programs write by hand or line by line: settings, tables, journals.
TEXT_BYTES = 1 << 30
_TOML_BYTES = 4 << 20
_KEY_PARTS = 64
_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*)+""")


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file.

    Raises:
        OSError: as :func:`read_plain`.
        ValueError: it is no TOML, or nested too deeply to be read.
    """
    text = read_plain(path, _TOML_BYTES).decode()
    # The library reads a key in time that grows with the square of its parts.
    if any(found[0].count(".") >= _KEY_PARTS for found in _KEY.finditer(text)):
        raise ValueError(f"a key in it has more than {_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
