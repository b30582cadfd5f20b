"""Which variables of a compiled program can be written, read from the object."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ascendopt_tune.build.storage import variables
from ascendopt_tune.build.toolkit import host_compiler

SOURCE = """
#include <cstdint>
static int counter;
int global = 7;
thread_local int own = 3;
const int fixed[] = {1, 2, 3};
constexpr float table[] = {1.0f, 2.0f};
template <typename T> struct Kept { static T value; };
template <typename T> T Kept<T>::value = 5;
__attribute__((section("elsewhere"))) int hidden = 1;
static const char* const names[] = {"a", "b"};
extern "C" int run(int i) {
  static uint64_t calls[16];
  calls[i]++;
  return counter++ + global++ + own++ + fixed[i] + (int)table[i] + Kept<int>::value++ + hidden++ + names[i][0] +
         (int)calls[i];
}
"""


def test_variables_by_name_wherever_they_lie(tmp_path: Path) -> None:
    source, binary = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(SOURCE)
    subprocess.run([host_compiler(), "-shared", "-fPIC", "-O1", "-std=c++17", "-o", binary, source], check=True)
    found = {v.name: v.size for v in variables(binary.read_bytes())}
    assert found == {
        "_ZL7counter": 4, "global": 4, "own": 4, "_ZN4KeptIiE5valueE": 4, "hidden": 4, "_ZZ3runE5calls": 128
    }  # fmt: skip


def test_what_is_no_object_is_said_to_be_none() -> None:
    with pytest.raises(ValueError, match="not an ELF-64 object"):
        variables(b"#!/bin/sh\n")
    with pytest.raises(ValueError, match="damaged"):
        variables(b"\x7fELF\x02\x01" + bytes(34) + (1 << 20).to_bytes(8, "little") + bytes(20))
