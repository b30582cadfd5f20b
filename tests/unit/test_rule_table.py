"""Each rule of Stage I on a small tiling program: what it finds by structure, and what it writes.

A program is the body of a tiling function; its names say nothing that a rule could recognise it by.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.mutation import Mutation
from ascendopt_tune.search.proposer import SearchState
from ascendopt_tune.search.tiling.context import Context
from ascendopt_tune.search.tiling.rules import RULES, mutations
from ascendopt_tune.search.tiling.slice import synthesize
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.cpp import apply_edits, breaks_syntax
from ascendopt_tune.sources.project import load_project

PATH = "op_host/t.cpp"
HEAD = """
BEGIN_TILING_DATA_DEF(D)
  TILING_DATA_FIELD_DEF(uint32_t, a);
END_TILING_DATA_DEF;
constexpr uint64_t TWO = 2;
static ge::graphStatus F(gert::TilingContext* context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint32_t p = platform.GetCoreNumAiv();
  uint64_t u = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, u);
  uint64_t m = context->GetInputShape(0)->GetStorageShape().GetDim(0);
  uint64_t n = context->GetInputShape(0)->GetStorageShape().GetDim(1);
  D t;
"""
TAIL = """
  context->SetBlockDim(p);
  return ge::GRAPH_SUCCESS;
}
"""
KERNEL = {"op_kernel/k.cpp": "if (TILING_KEY_IS(1)) {} else if (TILING_KEY_IS(20UL)) {}"}
ADD = "uint64_t x = u / 8; uint64_t q = (m + p - 1) / p; t.set_a(q + x);"

BASE = (
    "uint64_t baseM = 128, baseN = 256, baseK = 64, stepK = 4; "
    "t.set_a(m / baseM + n / baseN + n / baseK + n / baseK / stepK);"
)
CLASS = (
    "matmul_tiling::MultiCoreMatmulTiling c; c.SetBType(b); c.SetShape(m, n, n); "
    "if (c.GetTiling(t) == -1) { return 1; }"
)

# (rule, body, what the changed program has)
LIST = "TILING_DATA_FIELD_DEF_ARR(int64_t, {}, list);"
ROWS = [
    # block dim
    ("core_count", "t.set_a(m / p);", "p = (platform.GetCoreNumAiv() < 20 ? platform.GetCoreNumAiv() : 20);"),
    ("used_cores", "uint64_t q = (m + p - 1) / p; t.set_a(q);", "if (q > 0) { p = ((m) + q - 1) / q; }"),
    ("used_cores", "uint64_t q = ((m * n) + p - 1) / p; t.set_a(q);", "if (q > 0) { p = ((m * n) + q - 1) / q; }"),
    ("used_cores", "uint64_t q = (m + (p-1)) / p; t.set_a(q);", "if (q > 0) { p = ((m) + q - 1) / q; }"),
    ("used_cores", "uint64_t q = ( m-1 + p )/p; t.set_a(q);", "if (q > 0) { p = ((m) + q - 1) / q; }"),
    # tile length; UB shares and reserves; buffer count and depth
    ("ub_size", "uint64_t x = u / 8; t.set_a(x);", " u = u / 2 * 1;"),
    ("single", "uint64_t x = 4096; t.set_a(m / x);", "x = 8192;"),
    ("single", "uint64_t x = u / 6; t.set_a(x);", "x = u / 5;"),
    ("single", "uint64_t x = (u - 1024) / 8; t.set_a(x);", "(u - 512) / 8"),
    ("single", "uint64_t x = u / TWO; t.set_a(x);", "TWO = 1;"),
    ("coordinated", "uint64_t y = 2; uint64_t x = 4096; uint64_t z = u / y; t.set_a(m / x + z);", "x = 8192;"),
    ("quantities", "uint64_t x = u / 8; t.set_a(x);", "x = (x + 1) / 2;"),
    ("tiles", "uint64_t x = u / 8; t.set_a(n / x);", "if (((n) / 4 + 15) / 16 * 16 > 0 && x >"),
    # 32- and 512-byte alignment
    ("single", "uint64_t x = u / 6 / 32 * 32; t.set_a(x);", "u / 6 / 512 * 512"),
    ("quantities", "uint64_t x = u / 8; t.set_a(x);", "x = (x > 256 ? x / 256 * 256 : x);"),
    ("aligned_shares", "uint64_t q = (m + p - 1) / p; t.set_a(q);", "q = (q + 255) / 256 * 256;"),
    ("aligned_shares", "uint64_t q = (m + p - 1) / p; t.set_a(q);", "q = (q + 15) / 16 * 16;"),
    # axis of the split
    ("swapped_axes", "t.set_a(n); uint64_t q = m / p; t.set_a(q);", "{ auto otherAxis = m; m = n; n = otherAxis; }"),
    ("branches", "uint64_t q = m > 64 * p ? m / p : n / p; t.set_a(q);", "!(m > 64 * p) ? m / p : n / p"),
    ("branches", "uint64_t q = m; if (n > u) { q = n; } t.set_a(q / p);", "if (!(n > u))"),
    # even split against remainder
    ("even_shares", "uint64_t q = m / p; t.set_a(q);", "if ((m) % evenCores == 0) { p = evenCores; break; }"),
    ("even_shares", "uint64_t q = (m + p - 1) / p; t.set_a(q);", "if ((m) % evenCores == 0)"),
    (
        "even_shares",
        "uint64_t q = (n + (m > 4 ? m : 4) + p - 1) / p; t.set_a(q);",
        "if ((n + (m > 4 ? m : 4)) % evenCores",
    ),
    ("even_shares", "uint64_t q = ((m * n) + p - 1) / p; t.set_a(q);", "if ((m * n) % evenCores == 0)"),
    ("tiles", "uint64_t x = u / 8; t.set_a(n / x);", "x = (x + 15) / 16 * 16;"),
    ("even_shares", "p = std::min(p, m); uint64_t q = m / p; t.set_a(q);", "if ((m) % evenCores == 0)"),
    # tail handling
    ("whole_tiles", ADD, "if (x > 0) { q = (q + x - 1) / x * x; }"),
    # tiling key
    ("tiling_keys", "t.set_a(m); context->SetTilingKey(m > n ? 1 : 20);", "SetTilingKey(20)"),
    ("single", "t.set_a(m); context->SetTilingKey(1);", "SetTilingKey(20)"),
    # workspace
    (
        "workspace",
        "t.set_a(m); size_t* w = context->GetWorkspaceSizes(1); w[0] = m * TWO + n * TWO;",
        "w[0] = (m * TWO > n * TWO ? m * TWO : n * TWO);",
    ),
    ("workspace", "t.set_a(m); size_t* w = context->GetWorkspaceSizes(1); size_t s = n * p; w[0] = s;", "s = n;"),
    # cube cores: base block and packet at once; what a tiling class is told
    ("base_blocks", BASE, "baseM = 64, baseN = 192, baseK = 64, stepK = 8;"),
    ("shorter_lists", f"{LIST.format(50)} t.set_a(m);", LIST.format(20)),
    ("tiling_class", CLASS, "c.SetFixSplit(-1, -1, -1); if (c.GetTiling(t)"),
    ("tiling_class", CLASS, "c.SetFixSplit(64, 128, -1); c.SetSingleShape(64, 128, -1); if (c.GetTiling(t)"),
    ("tiling_class", CLASS, "c.SetTraverse(matmul_tiling::MatrixTraverse::FIRSTN); if (c.GetTiling(t)"),
    ("tiling_class", CLASS.replace("if", "c.SetDim(20); if"), "c.SetDim(20); c.SetFixSplit(-1, -1, -1); if"),
    ("tiling_class", CLASS.replace("if", "c.SetDim(20); if"), "; c.SetDim(10); if"),
]

# (rule, body): nothing to find
NOTHING = [
    ("tiling_keys", "t.set_a(m); context->SetTilingKey(context->GetInputDesc(0)->GetDataType());"),
    ("swapped_axes", "t.set_a(m / p);"),
    ("whole_tiles", "uint64_t q = (m + p - 1) / p; t.set_a(q);"),
    ("aligned_shares", "uint64_t x = u / 8; t.set_a(x);"),
    ("aligned_shares", "uint64_t x = std::min(u / 8, m / p); t.set_a(x);"),  # limited by the Unified Buffer: no share
    ("even_shares", "uint64_t x = u / 8; t.set_a(m / x);"),
    ("workspace", "t.set_a(m); size_t* w = context->GetWorkspaceSizes(1); w[0] = 16 * 1024 * 1024;"),
    ("base_blocks", "uint64_t baseM = 128; uint64_t baseN = 256; t.set_a(m / baseM + n / baseN);"),
    ("tiling_class", "Other c; c.GetTiling(t); t.set_a(m);"),
    ("shorter_lists", f"{LIST.format(20)} t.set_a(m);"),
    ("branches", "uint64_t q = m < p ? m : p; t.set_a(q);"),  # the smaller of two is no decision
]


def state(files: dict[str, str], kernel: dict[str, str]) -> SearchState:
    operator = Operator("op", Path(), "k", "op_kernel/k.cpp", Pair(files, kernel))
    spec = TensorSpec("float16", (64, 4096))
    trial = Trial(Candidate(0, operator.baseline, None, "baseline", ""), Timed(Profile(100.0, block_dim=20)))
    return SearchState(operator, Case((spec,), (spec,)), load_chip("ascend910b4"), None, trial, trial, (trial,), 0)


def apply(rule: str, files: dict[str, str], kernel: dict[str, str]) -> list[tuple[Mutation, dict[str, str]]]:
    (found,) = (r for r in RULES if r.__name__ == rule)
    context = Context.of(state(files, kernel))
    return [(m, dict(apply_edits(files, m.edits))) for m in found(synthesize(files), context)]


@pytest.mark.parametrize(("rule", "body", "wanted"), ROWS)
def test_the_rule_writes_this(rule: str, body: str, wanted: str) -> None:
    files = {PATH: HEAD + "  " + body + TAIL}
    made = apply(rule, files, KERNEL)
    assert any(wanted in text[PATH] for _, text in made), [m.change for m, _ in made]
    for mutation, text in made:
        assert not breaks_syntax(files, text), mutation.change
        assert mutation.moves
        assert mutation.weight > 0


@pytest.mark.parametrize(("rule", "body"), NOTHING)
def test_there_is_nothing_for_the_rule(rule: str, body: str) -> None:
    assert apply(rule, {PATH: HEAD + "  " + body + TAIL}, KERNEL) == []


@pytest.mark.parametrize("several", [True, False])
def test_a_class_for_one_core_is_told_nothing_that_it_has_no_function_for(several: bool) -> None:
    body = CLASS if several else CLASS.replace("MultiCoreMatmulTiling", "MatmulApiTiling")
    texts = [text[PATH] for _, text in apply("tiling_class", {PATH: HEAD + "  " + body + TAIL}, KERNEL)]
    assert any("c.SetFixSplit(64, 128, -1); if (c.GetTiling(t)" in text for text in texts)
    for setter in ("c.SetSingleShape(", "c.SetDim("):
        assert any(setter in text for text in texts) == several


def test_every_rule_has_a_row() -> None:
    assert {rule for rule, _, _ in ROWS} == {r.__name__ for r in RULES}


def test_fields_written_by_a_header_outside_the_pair() -> None:
    """Members of a class that is declared elsewhere are what its header writes to the tiling data."""
    body = """
void Common::Divide(uint64_t bytes) { perLoop_ = bytes / 4 / 32 * 32; }
void Common::Run() {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  uint64_t u = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, u);
  Divide(u);
  Fill();
  context->SetBlockDim(platform.GetCoreNumAiv());
}
"""
    roles = {s.purpose for s in synthesize({PATH: body}).sites}
    assert {"ub_size", "ub_share", "alignment", "core_count"} <= roles


# How many operators of each kind have something for the rule; on a part of the repository, to be quick.
SAMPLE = [
    "foreach/foreach_pow_scalar_and_tensor", "activation/swi_glu", "norm/deep_norm", "math/icamax",
    "math/add_sigmoid_mul_reduce_sum_d", "conversion/circular_pad", "loss/cross_entropy_loss", "norm/batch_norm_v3",
    "math/matmul_leakyrelu",
]  # fmt: skip


def test_rules_apply_to_operators_of_others() -> None:
    root = settings().cann_ops
    if root is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    applied: dict[str, list[str]] = {r.__name__: [] for r in RULES}
    for name in SAMPLE:
        pair = load_project(root / "src" / name).baseline
        files = dict(pair.tiling)
        for rule in applied:
            made = apply(rule, files, dict(pair.kernel))
            if made:
                applied[rule].append(name)
                assert not breaks_syntax(files, made[0][1]), (name, rule)
    # None of them has the numbers of a base block itself.
    assert [rule for rule, names in applied.items() if not names] == ["base_blocks"]


def test_one_number_of_a_base_block_is_not_changed_beyond_what_fits() -> None:
    files = {PATH: HEAD + "  " + BASE + TAIL}
    context = Context.of(state(files, KERNEL))
    told = [m.change for m in mutations(synthesize(files), context) if m.moves[0].family == "tile_length"]
    assert "tile length: baseM 128 -> 64" in told
    assert "tile length: baseN 256 -> 512" not in told  # 512 x 64 halves, twice, are more than L0B
    assert "tile length: baseK 64 -> 128" not in told
