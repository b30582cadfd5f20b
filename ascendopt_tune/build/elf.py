"""Reading a shared object without loading it, because loading runs what it brings. Layout: ELF-64 as in ``elf.h``,
little endian."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DYNAMIC, _NO_BITS = 6, 8  # section types
_SHN_UNDEF, _SHN_RESERVED = 0, 0xFF00
EXECUTABLE = 4  # section flag SHF_EXECINSTR
SEGMENT_EXECUTABLE, SEGMENT_WRITABLE = 1, 2  # segment flags PF_X, PF_W
DATA, FUNCTION, CHOSEN_AT_LOADING = 1, 2, 10  # symbol types STT_OBJECT, STT_FUNC, STT_GNU_IFUNC


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    data: bytes  # empty where the file holds none (.bss)
    bytes: int


@dataclass(frozen=True)
class Segment:
    """``type``: PT_LOAD is 1, PT_DYNAMIC 2, PT_INTERP 3, PT_TLS 7."""

    type: int
    flags: int


@dataclass(frozen=True)
class Symbol:
    """``section``: an index into :attr:`Object.sections`; None for a symbol that others define."""

    name: str
    type: int
    section: int | None
    address: int
    bytes: int


@dataclass(frozen=True)
class Object:
    """``symbols``: of the link editor's table; ``dynamic_symbols``: what the loader looks at. ``dynamic``: (tag, value)
    of the loader's instructions, ``relocations``: (type, name of the symbol or "")."""

    sections: Sequence[Section]
    segments: Sequence[Segment]
    symbols: Sequence[Symbol]
    dynamic_symbols: Sequence[Symbol]
    dynamic: Sequence[tuple[int, int]]
    relocations: Sequence[tuple[int, str]]

    def section(self, name: str) -> bytes:
        """The section's bytes; empty when there is none."""
        return next((s.data for s in self.sections if s.name == name), b"")


def read(binary: bytes) -> Object:
    """The object in ``binary``. Raises ValueError for what is no whole ELF-64 object."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF-64 object of a little-endian machine")
    try:
        return _read(binary)
    except (struct.error, IndexError, ValueError) as e:
        raise ValueError(f"a damaged ELF object: {e}") from e


def _read(binary: bytes) -> Object:
    programs, at = struct.unpack_from("<QQ", binary, 32)
    program_bytes, program_count, size, count, names = struct.unpack_from("<HHHHH", binary, 54)
    headers = [struct.unpack_from("<IIQQQQII", binary, at + i * size) for i in range(count)]
    texts = _slice(binary, headers[names][4], headers[names][5])
    sections = [
        Section(_text(texts, name), kind, flags, address, b"" if kind == _NO_BITS else _slice(binary, place, n), n)
        for name, kind, flags, address, place, n, _, _ in headers
    ]
    found = {s.name: s.data for s in reversed(sections)}  # of two with one name the first
    segments = [Segment(*struct.unpack_from("<II", binary, programs + i * program_bytes)) for i in range(program_count)]
    dynamic = [pair for s in sections if s.type == _DYNAMIC for pair in struct.iter_unpack("<qQ", s.data)]
    dynamic_symbols = list(_symbols(found.get(".dynsym", b""), found.get(".dynstr", b"")))
    relocations = []
    for s in sections:
        if s.name.startswith(".rela"):
            for _, info, _ in struct.iter_unpack("<QQq", s.data):
                number = info >> 32
                relocations.append((info & 0xFFFFFFFF, dynamic_symbols[number].name if number else ""))
    symbols = list(_symbols(found.get(".symtab", b""), found.get(".strtab", b"")))
    if any(s.section is not None and s.section >= len(sections) for s in symbols):
        raise ValueError("a symbol of a section that isn't there")
    return Object(sections, segments, symbols, dynamic_symbols, dynamic, relocations)


def _symbols(table: bytes, strings: bytes) -> Iterator[Symbol]:
    for name, info, _, where, address, size in struct.iter_unpack("<IBBHQQ", table):
        section = None if where == _SHN_UNDEF or where >= _SHN_RESERVED else where
        yield Symbol(_text(strings, name) if name else "", info & 15, section, address, size)


def _text(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode(errors="replace")


def _slice(data: bytes, at: int, n: int) -> bytes:
    if at + n > len(data):
        raise ValueError("a section leads beyond its end")
    return data[at : at + n]
