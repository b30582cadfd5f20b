"""Kernels on cube and vector cores together: who is who, flags of all modes, hazards both ways, meetings, time."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError, KernelCompileError
from ascendopt_tune.evaluate.cores import cores_there, cores_used
from ascendopt_tune.evaluate.diagnosis import diagnose, stalls, working
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.verdict import hazard_text
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.sources.project import load_project

SOURCE = Path(__file__).resolve().parent / "kernels" / "mixed.cpp"
Array = np.ndarray[Any, Any]
SIDE = 32  # of a tile, as in the kernels
GROUP = "CrossCoreSetFlag / CrossCoreWaitFlag between the cores of the group"


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    device().options = LaunchOptions()


def test_compiling_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    device().compile(SOURCE.read_text(), SOURCE.name)
    assert list(tmp_path.iterdir()) == []


def launch(
    name: str, arrays: Sequence[Array], *numbers: int, blocks: int = 1, output: int = -1, scratch: int = -1
) -> dict[str, Any]:
    """Runs a kernel on the arrays, which get what it leaves there, and numbers; the report.

    ``output`` and ``scratch``: arrays that nobody has written, of which the first counts.
    """
    acl = device()
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    try:
        for p, x in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(p, x.view(np.uint8))
        for i in {output, scratch} - {-1}:
            acl.unwritten(pointers[i], arrays[i].nbytes, scratch=i == scratch)
        acl.launch(kernels().function(name), blocks, [*pointers, *(ctypes.c_uint32(n) for n in numbers)])
        acl.synchronize()
        for p, x in zip(pointers, arrays, strict=True):
            acl.memcpy_d2h(x.view(np.uint8), p)
        return acl.report()
    finally:
        for p in pointers:
            acl.free(p)


def written(source: str, blocks: int, *options: str) -> Array:
    """int32 [16], zeros before, as kernel `k` of a text of its own leaves them."""
    acl, out = device(), np.zeros(16, np.int32)
    function = acl.load(acl.compile(source, "k.cpp", ["--cce-auto-sync=off", *options])).function("k")
    pointer = acl.malloc(out.nbytes)
    try:
        acl.memcpy_h2d(pointer, out)
        acl.launch(function, blocks, [pointer])
        acl.synchronize()
        acl.memcpy_d2h(out, pointer)
        return out
    finally:
        acl.free(pointer)


def leaky(vectors: int, groups: int = 3, rounds: int = 3, wrong: int = 0) -> tuple[Array, Array, dict[str, Any]]:
    """(what the kernel computes, what it should, the report)."""
    rng = np.random.default_rng(groups)
    a = rng.standard_normal((groups, rounds, SIDE, SIDE)).astype(np.float16)
    b = rng.standard_normal((SIDE, SIDE)).astype(np.float16)
    y, workspace = np.zeros(a.shape, np.float32), np.zeros(groups * 12288, np.uint8)
    report = launch(f"leaky_1_{vectors}", [a, b, y, workspace], rounds, wrong, blocks=groups, output=2, scratch=3)
    exact = (a + np.float16(1)).astype(np.float64) @ b.astype(np.float64)
    return y, np.where(exact < 0, exact / 2, exact), report


# ---- who is who (AscendC reference: GetBlockIdx, GetSubBlockNum, GetTaskRatio) ----

WHO = {
    "who_cube": [[1, i, 2, 0, 1, 1, i, 0] for i in range(2)],
    "who_vector": [[2, i, 2, 0, 1, 1, i, 0] for i in range(2)],
    "who_1_1": [[kind, i, 2, 0, 1, 1, i, 0] for kind in (1, 2) for i in range(2)],
    "who_1_2": [[1, i, 2, 0, 1, 1, i, 0] for i in range(2)] + [[2, i, 2, i % 2, 2, 2, i // 2, i % 2] for i in range(4)],
}  # fmt: skip


@pytest.mark.parametrize("kernel", WHO)
def test_cores_know_who_they_are(kernel: str) -> None:
    out = np.zeros((6, 16), np.int32)
    assert not launch(kernel, [out], blocks=2)["hazards"]
    expected = WHO[kernel]
    first = 2 if kernel == "who_vector" else 0  # behind the cube cores' lines
    np.testing.assert_array_equal(out[first : first + len(expected), :8], expected)


def test_one_file_may_say_it_once_for_all_its_kernels() -> None:
    """KERNEL_TASK_TYPE of the tiling key, of all keys, and positions of both kinds with flags between them."""
    body = 'extern "C" __global__ __aicore__ void k(GM_ADDR out) { %s if ASCEND_IS_AIC return;\n'
    body += "reinterpret_cast<__gm__ int32_t*>(out)[GetBlockIdx() * 8] = GetSubBlockNum() * 10 + GetBlockNum(); }"
    start = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
    for said, key, blocks, expected in (
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);", 0, 2, [11 + 1, 12]),
        ("KERNEL_TASK_TYPE(1, KERNEL_TYPE_MIX_AIC_1_2); KERNEL_TASK_TYPE(2, KERNEL_TYPE_AIV_ONLY);", 1, 1, [21, 21]),
        ("KERNEL_TASK_TYPE(1, KERNEL_TYPE_MIX_AIC_1_2); KERNEL_TASK_TYPE(2, KERNEL_TYPE_AIV_ONLY);", 2, 2, [12, 12]),
        ("LocalTensor<half> a(TPosition::A1, 0, 16), b(TPosition::VECIN, 0, 16); CrossCoreSetFlag<2, PIPE_V>(0);", 0, 1,
         [21, 21]),
    ):  # fmt: skip
        out = written(start + body % said, blocks, f"-DTILING_KEY_VAR={key}UL")
        assert out[::8].tolist() == expected, said


@pytest.mark.parametrize(("on_cubes", "on_vectors", "kind"), [("", "*out = 1;", 1), ("*out = 2;", "", 2)])
def test_a_library_says_by_specializations_where_its_kernel_works(on_cubes: str, on_vectors: str, kind: int) -> None:
    """Products and positions of both kinds are in the library's text; the kernel does something on one kind alone."""
    source = """#include "kernel_operator.h"
using namespace AscendC;
template <typename T> struct Unused {
  __aicore__ void operator()() {
    LocalTensor<half> a(TPosition::A1, 0, 16), b(TPosition::VECIN, 0, 16);
    LocalTensor<float> c(TPosition::CO1, 0, 16);
    Mmad(c, a, a, MmadParams());
    T().template operator()<AscendC::AIC>(nullptr);
  }
};
struct Kernel {
  template <int32_t KIND = g_coreType> __aicore__ void operator()(__gm__ int32_t* out) const {}
  template <> __aicore__ void operator()<AscendC::AIC>(__gm__ int32_t* out) const {ON_CUBES}
  template <> __aicore__ void operator()<AscendC::AIV>(__gm__ int32_t* out) const {ON_VECTORS}
};
extern "C" __global__ __aicore__ void k(GM_ADDR out) { Kernel()(reinterpret_cast<__gm__ int32_t*>(out)); }
""".replace("ON_CUBES", on_cubes).replace("ON_VECTORS", on_vectors)
    assert written(source, 1)[0] == kind


def test_names_that_mean_two_things_in_two_passes_stay_apart() -> None:
    """A template, a class with virtual functions and a constant of one name, different on either kind of core."""
    text = """#include "kernel_operator.h"
using namespace AscendC;
template <typename T> __attribute__((noinline)) T kind() { if ASCEND_IS_AIC return 1; return 2; }
struct Base { virtual int32_t say() const { if ASCEND_IS_AIC return 10; return 20; } };
struct Derived : Base { int32_t say() const override { return Base::say() + kind<int32_t>(); } };
__attribute__((noinline)) int32_t ask(const Base& b) { return b.say(); }
#ifdef __DAV_C220_CUBE__
const int32_t numbers[] = {100, 200};
#else
const int32_t numbers[] = {300, 400};
#endif
extern "C" __global__ __mix__(1, 1) void k(GM_ADDR out, uint32_t i) {
  auto at = reinterpret_cast<__gm__ int32_t*>(out) + (g_coreType == AIC ? 0 : 8);
  *at = ask(Derived()) + numbers[i];
}
"""
    acl, out = device(), np.zeros(16, np.int32)
    function = acl.load(acl.compile(text, "k.cpp", ["--cce-auto-sync=off"])).function("k")
    pointer = acl.malloc(out.nbytes)
    acl.launch(function, 1, [pointer, ctypes.c_uint32(1)])
    acl.synchronize()
    acl.memcpy_d2h(out, pointer)
    acl.free(pointer)
    assert (out[0], out[8]) == (211, 422)


def test_what_a_kernel_may_not_is_seen_in_either_pass() -> None:
    text = '#include "kernel_operator.h"\n#ifdef %s\n__attribute__((section(".mine"))) int x;\n#endif\n'
    text += 'extern "C" __global__ __mix__(1, 1) void k(GM_ADDR x) {}\n'
    for macro in ("__DAV_C220_CUBE__", "__DAV_C220_VEC__"):
        with pytest.raises(KernelCompileError) as refused:
            device().compile(text % macro, "k.cpp", ["--cce-auto-sync=off"])
        assert "the attribute section is not for kernels" in refused.value.log


# ---- values, and order ----


@pytest.mark.parametrize(("vectors", "groups"), [(1, 1), (2, 1), (1, 5), (2, 30)])
def test_a_matmul_between_two_steps_of_its_vector_cores(vectors: int, groups: int) -> None:
    y, expected, report = leaky(vectors, groups)
    np.testing.assert_allclose(y, expected, atol=1e-4)
    assert not report["hazards"]
    assert not report["unwritten"]


#: What is left out or moved -> the pairs of pipes that race, cube core first.
RACES = {
    1: {("MTE2", "MTE3"), ("FIX", "MTE2")},  # from the second round on a slot is written too early, too
    2: {("MTE2", "MTE3")},
    4: {("MTE2", "MTE3"), ("FIX", "MTE2")},
    8: {("FIX", "MTE2")},
    16: {("FIX", "MTE2")},
}


@pytest.mark.parametrize("wrong", RACES)
@pytest.mark.parametrize("vectors", [1, 2])
def test_a_flag_left_out_is_missed_on_either_side(vectors: int, wrong: int) -> None:
    hazards = leaky(vectors, wrong=wrong)[2]["hazards"]
    assert all(h["memory"] == "GM" and h["missing"] == GROUP for h in hazards)
    assert all(h["first"]["core"].startswith("AIC") and h["second"]["core"].startswith("AIV") for h in hazards)
    assert {(h["first"]["pipe"], h["second"]["pipe"]) for h in hazards} == RACES[wrong]


@pytest.mark.parametrize("wrong", [1, 4])
def test_what_nobody_has_written_is_followed_through_both_kinds(wrong: int) -> None:
    """The cube core multiplies, or a vector core takes, what the other kind hasn't stored yet."""
    used = leaky(2, wrong=wrong)[2]["unwritten"]
    assert {u["sink"]["core"].split()[0] for u in used} == {"AIV"}
    assert {u["sink_buffer"].rpartition(", ")[2] for u in used} == {"kernel parameter 2"}


def test_a_hazard_between_kinds_is_told_with_both_cores() -> None:
    hazard = leaky(2, wrong=16)[2]["hazards"][0]
    places = ({**hazard[k], "place": ""} for k in ("first", "second"))
    first, second = places
    text = hazard_text({**hazard, "first": first, "second": second})
    assert "on cores AIC 0 and AIV 0" in text
    assert text.endswith(f"Missing: {GROUP}.")


@pytest.mark.parametrize(("how", "ordered"), [(0, False), (1, True), (2, False), (3, True)])
def test_cores_of_both_kinds_meet(how: int, ordered: bool) -> None:
    """Not at all; SyncAll<false>; SyncAll, which is of one kind; by flags of modes 2, 0 and 2."""
    x = np.arange(3 * 512, dtype=np.float32)
    y = np.zeros_like(x)
    report = launch("meet", [x, np.zeros_like(x), y], how, blocks=3)
    assert bool(report["hazards"]) is not ordered
    assert not ordered or (y == x + 1).all()


@pytest.mark.parametrize("flag", [0, 1])
def test_vector_cores_of_a_group_meet_by_mode_1(flag: int) -> None:
    x = np.arange(3 * 512, dtype=np.float32)
    y = np.zeros_like(x)
    report = launch("swap", [x, np.zeros_like(x), y], flag, blocks=3)
    assert bool(report["hazards"]) is not bool(flag)
    assert not flag or (y.reshape(3, 2, 256) == x.reshape(3, 2, 256)[:, ::-1]).all()


WRONG = {
    1: r"CrossCoreWaitFlag\(2\) on AIC 0: no core that could raise the flag does it any more",
    2: r"CrossCoreSetFlag\(2\), for which AIC 0 waits, was reached by 1 of 2 cores",
    3: r"CrossCoreSetFlag\(7\) more than 15 times without CrossCoreWaitFlag: the flag's counter overflows",
    4: "modes 1 and 2 order the cores of one group",
    5: "Adds needs a vector core, and this is AIC 0; ASCEND_IS_AIC and ASCEND_IS_AIV tell",
    6: "SyncAll, for which AIC 0 waits, was reached by 2 of 6 cores",
    7: "Fixpipe needs a cube core, and this is AIV 0",
}


@pytest.mark.parametrize("what", [0, *WRONG])
def test_what_groups_must_not_do(what: int) -> None:
    x = np.zeros(1024, np.float32)
    if what:
        with pytest.raises(DeviceError, match=WRONG[what]):
            launch("wrong", [x], what, blocks=2)
        return
    launch("wrong", [x], 0, blocks=2)


def test_a_kernel_of_one_kind_has_no_groups() -> None:
    with pytest.raises(DeviceError, match="which only mixed kernels have"):
        launch("alone", [np.zeros(8, np.float32)])


def test_meetings_need_all_groups_at_once() -> None:
    x = np.zeros(25 * 512, np.float32)
    with pytest.raises(DeviceError, match="SyncAll with 25 blocks on 24 groups of cores"):
        launch("meet", [x, x.copy(), x.copy()], 1, blocks=25)


# ---- time, and what is told ----


def profile(report: dict[str, Any]) -> Profile:
    return Profile.from_json(report["profile"])


def test_both_kinds_work_in_modelled_time() -> None:
    """The pipes of both; and a group's cores take the next group when they have ended."""
    chip = load_chip("ascend910b2")
    one, two, three = (profile(leaky(2, groups)[2]) for groups in (24, 48, 72))
    assert one.kind == "mix"
    assert min(one.aic_mac_time_us, one.aic_fixpipe_time_us, one.aiv_vec_time_us, one.aiv_mte3_time_us) > 0
    assert (cores_used(one, chip), cores_there(one, chip)) == (24, 24)
    first, second = two.task_duration_us - one.task_duration_us, three.task_duration_us - two.task_duration_us
    assert 0.8 * one.core_time_us < first < one.task_duration_us
    assert abs(second - first) < 0.1 * first


def test_groups_take_whatever_cores_are_free() -> None:
    """A public profile of 910B2 (fidelity, T3): 256 groups that work on one of two vector cores take 6 rounds of 48,
    not 11 of 24; and T1: a group begins with all its cores."""
    text = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR out, uint32_t both) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  if ASCEND_IS_AIC return;
  if (GetSubBlockIdx() > both) return;
  LocalTensor<int32_t> x(TPosition::VECCALC, 0, 8);
  x.SetValue(0, 1);
  for (uint32_t i = 0; i < 3000; i++) x.SetValue(0, x.GetValue(0) + 1);
}"""
    acl = device()
    function = acl.load(acl.compile(text, "k.cpp")).function("k")
    pointer = acl.malloc(64)

    def us(groups: int, both: int) -> float:
        acl.launch(function, groups, [pointer, ctypes.c_uint32(both)])
        acl.synchronize()
        return float(acl.report()["profile"]["task_duration_us"])

    cubes = int(load_chip(DEFAULT_CHIP).values["core.aic"])
    one = us(1, 0)
    assert us(2 * cubes - 1, 0) < 1.2 * one < us(2 * cubes, 0) < 2.2 * one
    assert us(cubes, 1) < 1.2 * one < 1.8 * one < us(2 * cubes, 1)
    acl.free(pointer)


def test_flags_hand_time_over() -> None:
    """Neither kind waits in the twin without flags, which is shorter by what each round's two flags take."""
    chip = load_chip("ascend910b2")
    flag = float(chip.values["mixed.group_flag_cycles"]) / float(chip.values["core.clock_mhz"])
    for vectors in (1, 2):
        with_flags, without = (profile(leaky(vectors, 2, 6, wrong)[2]) for wrong in (0, 1 | 4))
        assert with_flags.task_duration_us - without.task_duration_us > 6 * 2 * flag
        assert with_flags.counters["aiv_stall_between_cores_us"] > 6 * 2 * flag


def test_the_profile_tells_of_both(tmp_path: Path) -> None:
    chip = load_chip("ascend910b2")
    device().options = LaunchOptions(trace=True)
    of = profile(leaky(2)[2])
    assert list(of.parts) == ["aic", "aiv"]
    cube, vector = of.parts.values()
    assert (cube.kind, cube.block_dim, cube.pipes[0]) == ("aic", 3, "mac")
    assert (vector.kind, vector.block_dim, vector.pipes[0]) == ("aiv", 6, "vec")
    assert of.pipe_us("aic_mac") == cube.pipe_us("mac") > 0
    assert of.core_time_us == max(cube.core_time_us, vector.core_time_us)
    assert working(of) == max(working(cube), working(vector))
    assert cube.counters["mte2_bytes"] == of.counters["aic_mte2_bytes"]
    written = of.to_json()
    assert {"aic_mac_ratio", "aiv_vec_ratio", "vectors_per_block"} <= written.keys()
    assert Profile.from_json(written) == of
    assert any(name.startswith("AIV: cores, for each other") for name, _ in stalls(of))
    told = diagnose(of, chip)
    assert "waits between cores" in {f.bound for f in told.findings}
    assert told.paragraph.count("On the ") == 2
    timeline = tmp_path / "trace.json"
    assert device().write_trace(timeline)
    names = {e["args"]["name"] for e in json.loads(timeline.read_text())["traceEvents"] if e["name"] == "process_name"}
    assert {f"AIC {i}" for i in range(3)} | {f"AIV {i}" for i in range(6)} <= names


def test_nothing_depends_on_what_ran_before() -> None:
    first, again = leaky(2)[2], leaky(2)[2]
    launch("swap", [np.zeros(512, np.float32) for _ in range(3)], 1)
    assert first == again == leaky(2)[2]


# ---- any program of copies and flags, against order as a graph ----

READ, WRITE, SET, WAIT, NOTHING = range(5)
GROUPS = 2
Program = list[list[tuple[int, int, int, int]]]  # of each core: step, place or mode, flag, by MTE3 rather than MTE2


def any_program(rng: np.random.Generator, places: int) -> tuple[Program, list[tuple[int, int]]]:
    """Steps of each core, and the steps in an order in which nobody waits for what comes later."""
    cores: Program = [[] for _ in range(3 * GROUPS)]
    order: list[tuple[int, int]] = []

    def do(core: int, *step: int) -> None:
        order.append((core, len(cores[core])))
        cores[core].append((step[0], step[1], step[2], step[3]))

    for flag in range(12):
        if rng.integers(0, 2):
            do(int(rng.integers(0, len(cores))), int(rng.integers(0, 2)), int(rng.integers(0, places)), 0, 0)
        group, how = int(rng.integers(0, GROUPS)) * 3, int(rng.integers(0, 5))
        vectors = [group + 1, group + 2]
        kind = [c for c in range(len(cores)) if (c % 3 == 0) == (how == 4)]
        mode, by, waits = [(2, [group], vectors), (2, vectors, [group]), (1, vectors, vectors), (0, kind, kind),
                           (0, kind, kind)][how]  # fmt: skip
        for core in by:
            do(core, SET, mode, flag, int(rng.integers(0, 2)))
        for core in waits:
            do(core, WAIT, 0, flag, 0)
    return cores, order


def races(cores: Program, order: Sequence[tuple[int, int]]) -> bool:
    """Is there a pair of copies to one place, one of them writing, of two cores, that no chain of flags orders?"""
    before: dict[tuple[int, int], set[tuple[int, int]]] = {}  # of a step: those that are over when it begins
    raised: dict[int, set[tuple[int, int]]] = {}
    held: list[set[tuple[int, int]]] = [set() for _ in cores]  # by a core's waits
    for core, i in order:
        what, _, flag, out = cores[core][i]
        before[core, i] = set(held[core])
        if what == SET:
            own = {(core, j) for j in range(i) if cores[core][j][0] == (WRITE if out else READ)}
            raised.setdefault(flag, set()).update(own, held[core])
        if what == WAIT:
            held[core] |= raised[flag]
    copies = [(c, i) for c, i in order if cores[c][i][0] in (READ, WRITE)]
    return any(
        a[0] != b[0] and cores[a[0]][a[1]][1] == cores[b[0]][b[1]][1]
        and WRITE in (cores[a[0]][a[1]][0], cores[b[0]][b[1]][0])
        and a not in before[b] and b not in before[a]
        for n, a in enumerate(copies) for b in copies[:n]
    )  # fmt: skip


def test_order_between_cores_is_what_flags_give() -> None:
    """Random programs, and what a graph says of them."""
    seen = {True: 0, False: 0}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        places = 1 + seed % 4
        cores, order = any_program(rng, places)
        longest = max(map(len, cores))
        steps = np.array([[*c, *[(NOTHING, 0, 0, 0)] * (longest - len(c))] for c in cores], np.int32)
        report = launch("play", [steps, np.zeros((places, 8), np.int32)], longest, blocks=GROUPS)
        found = any(h["first"]["core"] != h["second"]["core"] for h in report["hazards"])
        assert found is races(cores, order), seed
        seen[found] += 1
    assert min(seen.values()) > 20, seen


# ---- a mixed operator, from its tiling program to a profile ----


def exactly(a: Any, b: Any) -> Any:
    product = a.double() @ b.double()
    return product.where(product > 0, product * 0.01)


def test_an_operator_passes_the_gate(tmp_path: Path) -> None:
    """Tiling counts groups; its kernel is one binary of two passes, which obeys the rules for binaries."""
    operator = replace(load_project(SOURCE.parent.parent / "operators" / "matmul_leaky"), reference=exactly)
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(operator).signature
        for m in (2000, 40):
            a, b, y = ("float16", (m, 96)), ("float16", (96, 64)), ("float32", (m, 64))
            case = Case((TensorSpec(*a), TensorSpec(*b)), (TensorSpec(*y),), ())
            outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
            assert isinstance(outcome, Timed), outcome
            assert outcome.profile.kind == "mix"
            assert outcome.profile.block_dim == min(24, -(-m // 32))
