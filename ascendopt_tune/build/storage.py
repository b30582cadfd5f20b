"""Storage of a compiled program that can be written and outlives a call: static and global variables.

A kernel that keeps something there behaves otherwise at its next launch, or passes it from core to core without any
order. Symbols are read from the object (ELF-64 as in ``elf.h``, little endian), so no spelling in the source hides one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SYMTAB, _INIT, _FINI, _DYNAMIC = 2, 14, 15, 6  # types of sections
_WRITE, _ALLOCATE = 1, 2  # flags of sections
_OBJECT, _TLS = 1, 6  # types of symbols
#: Read-only once the object is loaded.
_PROTECTED = (".data.rel.ro", ".got", ".tm_clone_table")
#: What the C runtime keeps there; no C++ source can give a variable such a name.
_OTHERS = ("completed.", "__dso_handle", "DW.ref.")


@dataclass(frozen=True)
class StorageVariable:
    """``name`` is the linker's; ``address`` counts from where the object is loaded, ``size`` in bytes."""

    name: str
    address: int
    size: int


def variables(binary: bytes) -> list[StorageVariable]:
    """Static, global and thread-local variables that can be written, in the order of their addresses.

    Raises:
        ValueError: it is no shared object of this kind of machine.
    """
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF-64 object of a little-endian machine")
    try:
        return sorted(_variables(binary), key=lambda v: (v.address, v.name))
    except (struct.error, IndexError) as e:
        raise ValueError(f"a damaged ELF object: {e}") from e


def _variables(binary: bytes) -> set[StorageVariable]:
    (at,) = struct.unpack_from("<Q", binary, 40)
    _, count, names = struct.unpack_from("<HHH", binary, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", binary, at + i * 64) for i in range(count)]
    strings = binary[headers[names][4] : headers[names][4] + headers[names][5]]

    def writable(i: int) -> bool:
        if not 0 < i < count:
            return False
        name, kind, flags = headers[i][:3]
        text = _text(strings, name)
        kept = flags & _WRITE and flags & _ALLOCATE and kind not in (_INIT, _FINI, _DYNAMIC)
        return bool(kept) and not text.startswith(_PROTECTED)

    found = set()
    for header in headers:
        if header[1] != _SYMTAB:
            continue
        link = headers[header[6]]
        texts = binary[link[4] : link[4] + link[5]]
        table = binary[header[4] : header[4] + header[5]]
        for name, info, _, section, address, size in struct.iter_unpack("<IBBHQQ", table):
            if info & 15 in (_OBJECT, _TLS) and size and writable(section):
                text = _text(texts, name)
                if not text.startswith(_OTHERS):
                    found.add(StorageVariable(text, address, size))
    return found


def _text(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode()
