"""Tiling data as constants of the build, for a kernel that asks for it with ``#define AOT_CONSTANT_TILING``.

A tuned kernel is compiled for one case, so what the tiling program decided is known. The operator compiler does the
same for static shapes (``gen_static_shape_v2`` in ``get_op_tiling.py`` of asc-devkit). The kernel's text has none of
the numbers: it stays right for every case, and where nobody knows the macro its tiling data are loaded as before.

Where a tiling function reads values of inputs its decisions are no constants, and are loaded. A long list stays in
memory, and so do the data it is in: whoever takes an element of it by a number that isn't known has to load it from
somewhere, constants or not.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence

from .host_signature import TilingField, TilingStruct

ASKED = "AOT_CONSTANT_TILING"
_ASKS = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{ASKED}\b", re.MULTILINE)
LONGEST = 64  # bytes of a list
_CODES = {
    "bool": "?", "int8_t": "b", "uint8_t": "B", "int16_t": "h", "uint16_t": "H", "int32_t": "i", "uint32_t": "I",
    "int64_t": "q", "uint64_t": "Q", "float": "f", "double": "d",
}  # fmt: skip
#: Bytes of a number of each type.
NUMBERS = {name: struct.calcsize(code) for name, code in _CODES.items()}
# The kernel's own structs are known by what it calls them: their bytes are read as the compiler lays them out.
_MACROS = """\
#undef GET_TILING_DATA_WITH_STRUCT
#undef GET_TILING_DATA_MEMBER
static constexpr unsigned char aot_tiling_bytes[] = {%(bytes)s};
template <uint64_t N>
struct AotBytes {
  unsigned char at[N];
};
template <uint64_t N>
constexpr AotBytes<N> AotFirstBytes() {
  AotBytes<N> out{};
  for (uint64_t i = 0; i < N; i++) out.at[i] = aot_tiling_bytes[i];
  return out;
}
constexpr bool AotIsAnyOf(const char*) { return false; }
template <typename... Names>
constexpr bool AotIsAnyOf(const char* name, const char* first, Names... others) {
  const char* at = name;
  while (*at != 0 && *at == *first) ++at, ++first;
  return *at == *first || AotIsAnyOf(name, others...);
}
constexpr const char* AotUnqualified(const char* name) {
  const char* found = name;
  for (; *name != 0; ++name) {
    if (*name == ':') found = name + 1;
  }
  return found;
}
#define AOT_IS_PLAIN(S) AotIsAnyOf(AotUnqualified(#S)%(plain)s)
template <bool plain, typename S>
__aicore__ inline void AotTilingConstants(S& to, GM_ADDR from) {
  if constexpr (plain && sizeof(S) <= sizeof(aot_tiling_bytes)) {
    constexpr S all = __builtin_bit_cast(S, AotFirstBytes<sizeof(S)>());
    to = all;
  } else {
    AOT_LOAD_TILING(&to, from, sizeof(S));
  }
}
%(fills)s#define GET_TILING_DATA_WITH_STRUCT(S, name, tiling) \\
  S name;                                            \\
  AotTilingConstants<AOT_IS_PLAIN(S)>(name, tiling)
#define GET_TILING_DATA_MEMBER(S, member, name, tiling)         \\
  S aot_all_##name;                                             \\
  AotTilingConstants<AOT_IS_PLAIN(S)>(aot_all_##name, tiling);  \\
  auto& name = aot_all_##name.member
"""


def asked_for(sources: Iterable[str]) -> bool:
    """Does a kernel want its tiling data as constants?"""
    return any(_ASKS.search(text) for text in sources)


def tiling_constants(structs: Sequence[TilingStruct], data: bytes, plain: Iterable[str] = ()) -> str:
    """The ``GET_TILING_DATA`` family for a kernel whose tiling data are ``data``; what has no constants is loaded.

    ``structs``: those that the kernel knows by these layouts. ``plain``: names of structs of its own that have nothing
    but numbers in them (plain_structs.py).
    """
    known = {s.name: s for s in structs}
    fills = []
    for s in known.values():
        lines = None if s.nested or s.size > len(data) else _assigned(s, known, data, 0, "to")
        if lines is not None:
            body = "".join(f"  {line}\n" for line in lines)
            fills.append(
                f"template <bool>\n__aicore__ inline void AotTilingConstants({s.name}& to, GM_ADDR) {{\n{body}}}\n"
            )
    names = "".join(f', "{name}"' for name in sorted(plain))
    return _MACROS % {"bytes": ", ".join(map(str, data or b"\0")), "plain": names, "fills": "".join(fills)}


def _assigned(
    s: TilingStruct, known: Mapping[str, TilingStruct], data: bytes, start: int, name: str
) -> list[str] | None:
    """A line for each value from ``start`` on; None where one has no constant."""
    lines: list[str] = []
    for f in s.fields:
        at, to = start + f.offset, f"{name}.{f.name}"
        if f.struct:
            found = None if f.count or f.struct not in known else _assigned(known[f.struct], known, data, at, to)
        else:
            found = _values(f, data, at, to)
        if found is None:
            return None
        lines += found
    return lines


def _values(f: TilingField, data: bytes, at: int, to: str) -> list[str] | None:
    if f.name.endswith("PH") and f.count and f.c_type == "uint8_t":
        return []  # the host's padding
    code = _CODES.get(f.c_type)
    if code is None or max(f.count, 1) * struct.calcsize(code) > LONGEST:
        return None
    numbers = struct.unpack_from(f"<{max(f.count, 1)}{code}", data, at)
    if not all(math.isfinite(n) for n in numbers):
        return None
    places = [f"{to}[{i}]" for i in range(f.count)] or [to]
    return [f"{place} = {_literal(f.c_type, n)};" for place, n in zip(places, numbers, strict=True)]


def _literal(c_type: str, number: float) -> str:
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, float):
        return f"static_cast<{c_type}>({number.hex()})"
    if number == -(1 << 63):  # no literal of its own
        return f"static_cast<{c_type}>({number + 1}LL - 1)"
    return f"static_cast<{c_type}>({number}{'ULL' if number > 0 else 'LL'})"
