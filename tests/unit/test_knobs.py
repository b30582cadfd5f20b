"""Knobs: what is lifted out of a tiling program and what isn't; the program decides the same from its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from host_examples import write_operator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascendopt_tune.build import host, knobs
from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.project import load_project

KEPT = """\
constexpr int kBound = 8;
constexpr int kTwice = kBound * 2;
enum Mode { FIRST = 3 };
template <int N = 4> struct Box { static const int value = 5; };
static_assert(kTwice == 16, "");
constexpr int square(int x) { return x * 7; }
int array[kTwice], other[32];
std::array<int, 9> list;
int* nothing = 0;
int of(int x) {
  switch (x) { case 11: return 0; }
  if constexpr (sizeof(x) == 12) return 0;
  return CHECKED(x > 13);
}
#if 14 > 13
#endif
"""


def test_what_has_to_be_constant_stays() -> None:
    lifted = knobs.lift({"a.cpp": KEPT})
    assert lifted.table == ()
    assert lifted.files["a.cpp"] == KEPT


def test_numbers_become_entries_of_the_table() -> None:
    text = "constexpr uint32_t A = 16;\nconstexpr uint32_t B = A;\nint f() { const auto x = 1.5f; return 0x10u * 3; }\n"
    lifted = knobs.lift({"a.cpp": text})
    assert lifted.files["a.cpp"] == (
        "static const uint32_t A = ((int)vnpu_knobs[0]);\nstatic const uint32_t B = A;\n"
        "int f() { const auto x = ((float)vnpu_knob_real(1)); "
        "return ((unsigned)vnpu_knobs[2]) * ((int)vnpu_knobs[3]); }\n"
    )
    assert lifted.table == (16, 0x3FF8000000000000, 16, 3)


@pytest.mark.parametrize(
    ("literal", "c_type"),
    [
        ("2147483647", "int"),
        ("2147483648", "long"),
        ("0x80000000", "unsigned"),
        ("017", "int"),
        ("0b101", "int"),
        ("1'000", "int"),
        ("5ull", "unsigned long long"),
        ("5L", "long"),
        ("4294967296u", "unsigned long"),
        ("1e-5", "double"),
        (".5", "double"),
    ],
)
def test_a_knob_has_its_literals_type(literal: str, c_type: str) -> None:
    assert f"(({c_type})vnpu_knob" in knobs.lift({"a.cpp": f"auto x = {literal};"}).files["a.cpp"]


@pytest.mark.parametrize("literal", ["0", "0x0", "1.5L", "1_km", "'a'", "99999999999999999999", "1e39f"])
def test_what_is_no_plain_number_stays(literal: str) -> None:
    assert knobs.lift({"a.cpp": f"auto x = {literal};"}).table == ()


# -- compiled ---------------------------------------------------------------------------------------------------------

SOURCE = """\
namespace optiling {
constexpr uint32_t STEP = %d;
constexpr uint32_t WIDE = STEP * 2;
static const uint64_t SUM = WIDE + %d;
constexpr float SCALE = %sf;
struct Limits { static constexpr uint32_t most = %d; };
#define FIELDS(n) uint32_t fields[n]
constexpr uint32_t COUNT = 6;
uint32_t Knobs(int64_t rows) {
  FIELDS(COUNT) = {STEP, WIDE, uint32_t(SUM), uint32_t(SCALE * 1000), std::min(Limits::most, uint32_t(rows)), %d};
  uint32_t hash = 17;
  for (uint32_t f : fields) hash = hash * 31 + f;
  return hash;
}
}
"""
CASE = Case(
    (TensorSpec("float32", (4, 8)), TensorSpec("int64", (2,)), ()), (TensorSpec("float32", (4, 8)),), (("axes", (1,)),)
)


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    operator = load_project(write_operator(tmp_path_factory.mktemp("op")))
    name, text = next((p, t) for p, t in operator.baseline.tiling.items() if "Tiling(gert::TilingContext" in t)
    head, tail = text.split("namespace optiling {", 1)
    text = (
        head
        + SOURCE
        + "namespace optiling {"
        + tail.replace("data.set_rows(shape.GetDim(0));", "data.set_rows(Knobs(shape.GetDim(0)));")
    )
    return replace(operator, baseline=operator.baseline.with_tiling(name, text))


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def with_numbers(operator: Operator, numbers: tuple[int, int, float, int, int]) -> Operator:
    name = next(p for p, t in operator.baseline.tiling.items() if "Knobs(" in t)
    text = operator.baseline.tiling[name] % numbers
    return replace(operator, baseline=operator.baseline.with_tiling(name, text))


NUMBERS = st.tuples(
    st.integers(1, 1 << 20),
    st.integers(-5, 1 << 31),
    st.sampled_from([0.5, 0.1, 3.0, 1e-3]),
    st.integers(1, 9),
    st.integers(0, 1 << 31),
)


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(NUMBERS)
def test_the_table_means_what_the_text_means(
    operator: Operator,
    out_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    numbers: tuple[int, int, float, int, int],
) -> None:
    changed = with_numbers(operator, numbers)
    chip = load_chip("ascend910b2")
    lifted = compile_host(changed, changed.baseline, virtual(), out_dir)
    assert len(lifted.knobs) > 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs, "_typed", lambda text: None)
        knobs._read.cache_clear()
        direct = compile_host(changed, changed.baseline, virtual(), tmp_path_factory.mktemp("direct"))
    knobs._read.cache_clear()
    assert direct.knobs == ()
    assert lifted.tiling(CASE, chip) == direct.tiling(CASE, chip)
    lifted.close()
    direct.close()


def test_other_numbers_compile_nothing_other_logic_its_source(
    operator: Operator, out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = load_chip("ascend910b2")
    first = with_numbers(operator, (16, 4, 0.5, 3, 2))
    programs = [compile_host(first, first.baseline, virtual(), out_dir)]
    commands: list[list[str]] = []
    run = host.subprocess.run
    monkeypatch.setattr(host.subprocess, "run", lambda c, *a, **k: (commands.append(c), run(c, *a, **k))[1])
    second = with_numbers(operator, (32, 4, 0.5, 3, 2))
    programs.append(compile_host(second, second.baseline, virtual(), out_dir))
    assert commands == []
    # Both live in one process, each with its own table.
    results = [p.tiling(CASE, chip) for p in programs]
    assert results[0].data != results[1].data
    name = next(p for p, t in second.baseline.tiling.items() if "Knobs(" in t)
    third = second.baseline.with_tiling(name, second.baseline.tiling[name].replace("STEP * 2", "STEP + 2"))
    compile_host(second, third, virtual(), out_dir)
    assert [c for c in commands if "-c" in c and c[c.index("-c") + 1].endswith(Path(name).name)]
