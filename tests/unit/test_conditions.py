"""Branches of ``#if`` that a kernel for these chips is compiled without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.sources.conditions import unused_branches
from ascendopt_tune.sources.cpp import parse, program_of, syntax_errors


def compiled(text: str) -> list[str]:
    """The lines that are left."""
    data = bytearray(text.encode())
    for start, end in unused_branches(text.encode()):
        data[start:end] = b" " * (end - start)
    return [line.strip() for line in data.decode().split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("#if __CCE_AICORE__ == 220", ["one;"]),
        ("#if defined(__CCE_AICORE__) && __CCE_AICORE__ == 200", ["other;"]),
        ("#if (__CCE_AICORE__ > 200) && !defined(__NPU_ARCH__)", ["other;"]),
        ("#if !(defined(__NPU_ARCH__) && (__NPU_ARCH__ == 3003 || __NPU_ARCH__ == 3113))", ["one;"]),
        ("#if defined(__NPU_ARCH__) && (__NPU_ARCH__ == 3510 || \\\n    __NPU_ARCH__ == 2201)", ["one;"]),
        ("#ifdef __CCE_KT_TEST__", ["other;"]),
        ("#ifndef __CCE_KT_TEST__", ["one;"]),
        ("#if KNOWN_TO_NOBODY && __NPU_ARCH__ == 3510", ["other;"]),
        ("#if KNOWN_TO_NOBODY || __NPU_ARCH__ == 2201", ["one;"]),
    ],
)
def test_what_the_compiler_doesnt_see_is_left_out(condition: str, left: list[str]) -> None:
    assert compiled(f"{condition}\none;\n#else\nother;\n#endif\n") == left


@pytest.mark.parametrize(
    "condition",
    ["#ifndef HEADER_H", "#if ORIG_DTYPE_X == DT_BF16", "#ifdef __CCE_AICORE__", "#if defined(__DAV_C220_CUBE__)",
     "#if MACRO(3) == 4", "#if __CCE_AICORE__ ==", "#if (1"],
)  # fmt: skip
def test_what_nobody_knows_stays(condition: str) -> None:
    text = f"{condition}\none;\n#else\nother;\n#endif"
    assert compiled(text) == text.split("\n")


def test_of_several_branches_one_is_left_and_groups_lie_in_groups() -> None:
    text = """#if __CCE_AICORE__ == 310
a;
#elif __CCE_AICORE__ == 220
#ifdef OTHERS
b;
#endif
#if 0
c;
#endif
#else
d;
#endif
e;"""
    assert compiled(text) == ["#ifdef OTHERS", "b;", "#endif", "e;"]
    assert compiled("a;\n#endif\n#if 0\nb;\n#endif") == ["a;", "#endif", "#if 0", "b;", "#endif"]


_ATOMS = ["__CCE_AICORE__ == 220", "__NPU_ARCH__ != 2201", "defined(__NPU_ARCH__)", "defined __CCE_KT_TEST__", "1", "0"]
_CONDITIONS = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda t: f"({t[0]}) {t[1]} {t[2]}"),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=6,
)


@settings(max_examples=20, deadline=None)
@given(st.lists(_CONDITIONS, min_size=8, max_size=8))
def test_a_compiler_chooses_the_same(tmp_path_factory: pytest.TempPathFactory, conditions: list[str]) -> None:
    text = "\n".join(f"#if 1 && ({c})\nint yes{i};\n#else\nint no{i};\n#endif" for i, c in enumerate(conditions))
    file: Path = tmp_path_factory.mktemp("if") / "text.cpp"
    file.write_text(text)
    command = ["g++", "-E", "-P", "-D__CCE_AICORE__=220", "-D__NPU_ARCH__=2201", str(file)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert compiled(text) == seen.split("\n")[: len(conditions)]


KERNEL = """
#define HEAD template <typename T, int N>
HEAD
class K {
 public:
  __aicore__ inline void Init(const Tiling& __restrict data);
  __aicore__ inline void Process() {
#if __CCE_AICORE__ == 220
    if constexpr (N == 1) {
#else
    if (true) {
#endif
      queue.template FreeTensor(x);
      (this->*chosen)(3);
    }
  }
};
void launch(uint32_t blocks, void* stream) { k<<<blocks, nullptr, stream>>>(1, 2); }
"""


def test_what_the_grammar_doesnt_know_is_read_all_the_same() -> None:
    source = parse("k.cpp", KERNEL.replace("HEAD", "TEMPLATE_HEAD"))
    assert syntax_errors(source) == 0
    names = [f.name for f in program_of({"k.cpp": KERNEL.replace("HEAD", "TEMPLATE_HEAD")}).functions]
    assert names == ["Process", "launch"]
