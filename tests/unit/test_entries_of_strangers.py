"""Entries, structs and tilings as kernels of others spell them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from ascendopt_tune.build.host import TilingStruct
from ascendopt_tune.build.kernel import _without_own
from ascendopt_tune.errors import CaseError
from ascendopt_tune.sources.by_value import by_value, takes_value
from ascendopt_tune.sources.kernels import kernels_in, parameters_of


@pytest.mark.parametrize("kind", ["__mix__(1, 2)", "__mix__ ( 1,1 )", "__cube__", "[aicore]"])
def test_an_entry_may_say_which_cores_it_is_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "fused.asc"
    file.write_text(
        f'extern "C" __global__ {kind} void fused(\n    __gm__ uint8_t* a) {{}}\nvoid f() {{ g<<<8>>>(a); }}'
    )
    assert kernels_in(file) == {"fused": None}


def test_a_matmuls_tiling_is_taken_by_value() -> None:
    made = by_value("tiling", "AscendC::tiling::TCubeTiling", tuple(range(50)), [])
    assert isinstance(made, ctypes.Structure)
    assert bytes(made) == bytes((ctypes.c_int32 * 50)(*range(50)))
    assert made.baseM == 8
    with pytest.raises(CaseError, match="50 numbers"):
        by_value("tiling", "TCubeTiling", (1, 2), [])


def test_a_parameters_type_keeps_its_namespaces() -> None:
    text = 'extern "C" __global__ __mix__(1, 2) void f(__gm__ uint8_t* a, AscendC::tiling::TCubeTiling t) {}'
    assert parameters_of(text, "f") == (("a", "uint8_t *"), ("t", "AscendC::tiling::TCubeTiling"))


def test_a_struct_is_no_address() -> None:
    assert takes_value("const TCubeTiling", [])
    assert takes_value("Sizes", ["struct Sizes { int32_t rows; };"])
    assert takes_value("uint32_t", [])
    assert not takes_value("__gm__ uint8_t*", [])
    assert not takes_value("GM_ADDR", [])


def test_a_neighbours_source_says_nothing_of_the_kernels_structs() -> None:
    """Its file lies there because the kernel includes a header beside it."""
    struct = TilingStruct("Sizes", 7, 8, (), False)
    stand_in = "#ifdef __CCE_KT_TEST__\nstruct Sizes { int32_t rows; };\n#endif"
    files = {"k.cpp": '#include "n/part.h"', "stand_in.h": stand_in, "n/n.cpp": "REGISTER_TILING_DEFAULT(Other)"}
    assert _without_own([struct], files, "k.cpp") == [struct]
    files["k.cpp"] += '\n#include "n/n.cpp"'
    assert _without_own([struct], files, "k.cpp") == []
