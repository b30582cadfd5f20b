"""JSON as tiling programs read it (host/include/nlohmann/json.hpp), against Python's."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.build import toolkit

HEADERS = toolkit.VNPU / "host" / "include"
# A line in, what it says in other words out; and of an object with "key" that value's kind and text.
PROGRAM = """
#include <iostream>
#include <nlohmann/json.hpp>
int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << nlohmann::json::parse(line).dump() << std::endl;
    } catch (const nlohmann::json::exception& error) {
      std::cout << "! " << error.what() << std::endl;
    }
  }
}
"""
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('abc\\"/\n', max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], list[str]]:
    folder = tmp_path_factory.mktemp("json")
    (folder / "main.cpp").write_text(PROGRAM)
    command = [
        toolkit.host_compiler(),
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{HEADERS}",
        "main.cpp",
        "-o",
        "main",
    ]
    subprocess.run(command, cwd=folder, check=True)

    def ask(lines: list[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([str(folder / "main")], input=text.encode(), capture_output=True, check=True)
        return done.stdout.decode().split("\n")[:-1]

    return ask


@given(st.lists(VALUES, max_size=20))
def test_values_are_read_and_written(said: Callable[[list[str]], list[str]], values: list[Any]) -> None:
    for ascii_only in (True, False):
        lines = [json.dumps(v, ensure_ascii=ascii_only) for v in values]
        for value, line in zip(values, said(lines), strict=True):
            assert same(json.loads(line), value), (value, line)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-15)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def test_what_is_no_json_is_an_exception(said: Callable[[list[str]], list[str]]) -> None:
    wrong = ["", "{", "[1,", '{"a" 1}', "tru", '"open', "[1] 2", "{1: 2}", "01x", '"\\q"', "[" * 200000]
    assert all(line.startswith("! ") for line in said(wrong)), said(wrong)
