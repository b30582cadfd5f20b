"""A bundle as one file: a tar archive, gzip-compressed, packed the same from the same entries.

Unpacking trusts nothing: plain files with names inside the bundle only, bounded in number and size, the manifest first;
what it lists is checked by sha256 before the folder gets its name.
"""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ..errors import CacheError
from ..files import MALFORMED, replacing
from . import trust
from .bundle import MANIFEST, SIGNATURE, Bundle, check_place, open_bundle, write_bundle
from .entry import ENTRY_FILE, Entry, folder_reader, read_document
from .scratch import Scratch

SUFFIXES = (".tar.gz", ".tgz")
MAX_FILES = 1_000_000
MAX_FILE_BYTES = 256 << 20  # a compiled kernel has megabytes at most
MAX_BYTES = 16 << 30


def make(target: Path, entries: Iterable[Path], sign_with: Path | None = None) -> Bundle:
    """A bundle of these entry folders, signed on request: a folder, or an archive if ``target`` is named like one.

    The bundle that is returned has its folder for an archive's only until then; digest and rows stay.

    Raises:
        CacheError: an entry is damaged, the key can't be read, or ``target`` can't be written.
    """
    if not target.name.endswith(SUFFIXES):
        return _signed(target, entries, sign_with)
    target.parent.mkdir(parents=True, exist_ok=True)
    with Scratch(parent=target.parent, prefix=f".{target.name}-") as folder:
        bundle = _signed(folder, entries, sign_with)
        pack(bundle, target)
    return bundle


def check_before(target: Path, sign_with: Path | None = None) -> None:
    """Before long work: :func:`make` can write ``target`` later, and sign it.

    Raises:
        CacheError: it is something else, or can't be written, or the key can't be read.
    """
    if target.name.endswith(SUFFIXES):
        if target.is_dir():
            raise CacheError(f"{target} is a folder.", "Name a file.")
    else:
        check_place(target)
    if sign_with is not None:
        trust.private_key(sign_with)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target if target.is_dir() else target.parent):
            pass
    except OSError as error:
        raise CacheError(
            f"the bundle {target} can't be written: {error.strerror or error}.", "Name another place."
        ) from error


def _signed(folder: Path, entries: Iterable[Path], key: Path | None) -> Bundle:
    bundle = write_bundle(folder, entries)
    if key is None:
        return bundle
    trust.sign(folder, key)
    return open_bundle(folder)


def how_to_use(target: Path, bundle: Bundle) -> str:
    """For people: what was made, and the settings with which it serves."""
    signed = ", signed" if bundle.signature is not None else ""
    lines = [f"bundle: {target} ({len(bundle)} entries{signed})"]
    folder = shlex.quote(str(target.resolve()))  # who serves begins somewhere else
    if target.name.endswith(SUFFIXES):
        folder = "FOLDER"
        lines.append(f"to unpack it: ascendopt-tune cache unpack {target} FOLDER")
    lines.append(f"to use it: ASCENDOPT_CACHE_LAYERS={folder} ASCENDOPT_TRUST=sha256:{bundle.digest}")
    return "\n".join(lines)


def pack(bundle: Bundle, path: Path) -> None:
    """Writes ``bundle`` to the archive ``path``; it is there whole or not at all. Raises CacheError."""
    names = [MANIFEST, *([SIGNATURE] if bundle.signature is not None else [])]
    names += sorted(str(p.relative_to(bundle.root)) for p in (bundle.root / "entries").rglob("*") if p.is_file())
    try:
        with (
            replacing(path) as temporary,
            open(temporary, "wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mode = (bundle.root / name).stat().st_size, 0o644
                with open(bundle.root / name, "rb") as file:
                    archive.addfile(member, file)
    except OSError as error:
        raise CacheError(f"{path} can't be written: {error.strerror or error}.", "Name another file.") from error


@contextmanager
def opened(source: Path) -> Iterator[Bundle]:
    """The bundle in a folder, or in an archive, which is unpacked to a temporary folder as long as the block runs.

    Raises:
        CacheError: it can't be read, is damaged, or is not what :func:`pack` makes; the text names the member.
    """
    if source.is_dir():
        yield open_bundle(source)
        return
    _need_file(source)
    with Scratch(prefix="ascendopt-bundle-") as folder:
        _unpack(source, folder)
        yield open_bundle(folder)


def unpack(source: Path, target: Path) -> Bundle:
    """Unpacks the archive to the new folder ``target``. Raises CacheError as :func:`opened`."""
    _need_file(source)
    if target.exists():
        raise CacheError(f"{target} exists.", "Name a new folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with Scratch(parent=target.parent, prefix=f".{target.name}-") as work:
        _unpack(source, work / "bundle")
        os.rename(work / "bundle", target)
    return open_bundle(target)


def _need_file(source: Path) -> None:
    if not source.is_file():  # a pipe would be waited for
        raise CacheError(f"there is no bundle {source}.", "Give a bundle's folder or archive (.tar.gz).")


class _Pieces:
    """A file that is read in pieces of an ordinary size: a header may claim any for itself."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_FILE_BYTES:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._file.read(size)


def _unpack(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    files = total = 0
    listed: set[tuple[str, ...]] | None = None
    try:
        with gzip.open(source) as packed, tarfile.open(fileobj=cast(IO[bytes], _Pieces(packed)), mode="r:") as archive:
            for member in archive:
                name = _checked(source, member)
                files, total = files + 1, total + member.size
                if files == 1 and name != MANIFEST:
                    raise CacheError(f"{source} does not begin with {MANIFEST}; it is no bundle.")
                if files > MAX_FILES or total > MAX_BYTES:
                    raise CacheError(
                        f"{source} is too large: more than {MAX_FILES} files or {MAX_BYTES >> 30} GiB unpacked."
                    )
                if files > 1 and listed is None:
                    listed = _listed(open_bundle(target))
                if (
                    listed is not None
                    and name not in (MANIFEST, SIGNATURE)
                    and PurePosixPath(name).parts[1:3] not in listed
                ):
                    raise CacheError(f"{source}: {MANIFEST} doesn't list {name}.", "It is refused; nothing was kept.")
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None, "plain files have content"
                with open(place, "xb") as file:
                    shutil.copyfileobj(content, file)
            while packed.read(1 << 20):  # to the end: there its checksum is
                pass
    except FileExistsError as error:
        raise CacheError(f"{source} holds {error.filename} twice.") from error
    except (tarfile.TarError, EOFError, zlib.error, OSError, *MALFORMED) as error:
        raise CacheError(
            f"{source} is truncated or no archive ({error}).", "Copy it again from where it was made."
        ) from error
    if files == 0:
        raise CacheError(f"{source} is empty.")
    check(open_bundle(target))


def _checked(source: Path, member: tarfile.TarInfo) -> str:
    """The member's name if it is a plain file that belongs into a bundle; else CacheError that says what it is."""
    path = PurePosixPath(member.name)
    what = None
    if path.is_absolute() or ".." in path.parts or "\0" in member.name or str(path) != member.name:
        what = "leaves the bundle's folder"
    elif not member.isfile():
        what = f"is a {'link' if member.issym() or member.islnk() else 'folder or device'}, not a plain file"
    elif member.size > MAX_FILE_BYTES:
        what = f"has {member.size} bytes, more than {MAX_FILE_BYTES}"
    elif member.name not in (MANIFEST, SIGNATURE) and path.parts[0] != "entries":
        what = "belongs to no bundle"
    if what is not None:
        raise CacheError(f"{source}: the member {member.name!r} {what}.", "It is refused; nothing was imported.")
    return member.name


def check(bundle: Bundle) -> None:
    """Raises CacheError unless the folder holds just what its manifest lists, every file unaltered."""
    listed = _listed(bundle)
    known = {bundle.root / MANIFEST, bundle.root / SIGNATURE}
    for name, key in sorted(listed):
        folder = bundle.root / "entries" / name / key
        try:
            bundle.check(folder)
            Entry.from_files(folder_reader(folder))
            known |= {folder / ENTRY_FILE, *(folder / n for n in read_document(folder_reader(folder))["files"])}
        except CacheError as error:
            raise CacheError(f"{folder}: {error.message}", error.hint) from error
    for place in sorted(p for p in bundle.root.rglob("*") if p not in known and (p.is_symlink() or not p.is_dir())):
        raise CacheError(
            f"{place} is listed neither in {MANIFEST} nor in an {ENTRY_FILE}.",
            "It was added later, or the manifest is another one's.",
        )


def _listed(bundle: Bundle) -> set[tuple[str, ...]]:
    return {(name, row.hash) for name, rows in bundle.rows.items() for row in rows}
