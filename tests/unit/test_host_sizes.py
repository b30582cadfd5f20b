"""Temporary sizes of composed high-level APIs, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

from pathlib import Path

from ask_host import answers

# A question, and (max, min); or, of one that returns a number, that.
_ASKED: dict[str, tuple[int, ...]] = {
    "GetSwishTmpSize(rows, 4, false, a, b)": (0, 0),
    "GetSiluTmpSize(rows, 2, false, a, b)": (0, 0),
    "GetSwiGLUMaxMinTmpSize(rows, 2, a, b, false)": (6 * 6400 * 2, 6 * 256),
    "GetSwiGLUMaxMinTmpSize(rows, 4, a, b, false)": (0, 0),
    "GetSwiGLUTmpBufferFactorSize(2, a, b)": (6, 0),
    "GetReGluMaxMinTmpSize(rows, 2, false, a, b)": (6 * 6400 * 2, 6 * 256),
    "GetReGluMaxMinTmpSize(rows, 4, false, a, b)": (256, 256),
    "GetGeGLUMaxMinTmpSize(few, 2, false, a, b)": (4 * 256, 4 * 256),
    "GetGeluMaxMinTmpSize(rows, 2, a, b)": (3 * 6400 * 4, 3 * 256),
    "GetGeluMaxMinTmpSize(few, 4, a, b)": (3 * 256, 3 * 256),
    "GetDropOutMaxMinTmpSize(rows, 2, false, a, b)": (2 * 6400 * 4, 512),
    "GetDropOutMinTmpSize(rows, 4, false)": (512,),
    "GetSumMaxMinTmpSize(6400, 4, false, a, b)": (416, 416),  # 100 repeats, whole blocks of 8
    "GetReduceSumMaxMinTmpSize(rows, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (0, 0),
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (16 * 128 * 4,) * 2,
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::RA, true, false, a, b)": (8 * 256 * 4,) * 2,
    "GetReduceSumMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::RA, true, true, a, b)": (0, 0),
    # The documentation's own example, and rows that are no whole blocks.
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1024, 1}), ge::Shape({1024, 16}), 2, false, a, b)": (
        1024 * 32, 16 * 32,
    ),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({20, 1}), ge::Shape({20, 9}), 4, false, a, b)": (
        24 * 32 + 20 * 64, 8 * (32 + 64),
    ),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1, 32}), ge::Shape({20, 32}), 4, false, a, b)": (32, 32),
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1, 32}), ge::Shape({20, 32}), 1, false, a, b)": (42 * 32 + 32,) * 2,
    "GetBroadCastMaxMinTmpSize(platform, ge::Shape({1}), ge::Shape({99}), 2, false, a, b)": (0, 0),
    "GetSelectWithBytesMaskMaxMinTmpSize(rows, one, 2, rows, 1, true, a, b)": (6400 * 2 + 512, 4096 * 2 + 512),
    "GetSelectWithBytesMaskMaxMinTmpSize(one, few, 2, ge::Shape({2, 32}), 1, false, a, b)": (1024 + 32,) * 2,
    "GetAscendAntiQuantMaxMinTmpSize(rows, one, false, ge::DT_INT8, ge::DT_BF16, a, b)": (6400 * 4, 1024),
    "GetAscendAntiQuantMaxMinTmpSize(rows, few, false, ge::DT_INT8, ge::DT_BF16, a, b)": ((64 + 6400) * 4,) * 2,
    "GetAscendAntiQuantMaxMinTmpSize(rows, few, true, ge::DT_INT8, ge::DT_BF16, a, b)": (80 * 32 * 4,) * 2,
    "GetAscendAntiQuantMaxMinTmpSize(rows, few, true, ge::DT_INT8, ge::DT_FLOAT16, a, b)": (0, 0),
    "GetAscendQuantMaxMinTmpSize(rows, 2, a, b)": (6400 * 2, 512),
    "GetAscendQuantMaxMinTmpSize(few, 4, a, b)": (512, 512),
    # The first SoftmaxFlash: floats for every row, or for one.
    "GetSoftMaxFlashMinTmpSize(rows, 4, true, false)": ((4 * 8 + 2 * 64) * 4,),
    "GetSoftMaxFlashMaxTmpSize(rows, 4, true, false)": (100 * (4 * 8 + 2 * 64) * 4,),
    "GetSoftMaxFlashMinTmpSize(rows, 2, false, false)": ((16 + 64 + 64) * 4,),
    "GetSoftMaxFlashMaxTmpSize(rows, 2, false, true)": (100 * (16 + 64 + 64) * 4,),
    "gert::TensorPlacementUtils::IsOnHost(gert::kOnHost)": (1,),
    "gert::TensorPlacementUtils::IsOnHost(gert::kOnDeviceHbm)": (0,),
    "gert::TensorPlacementUtils::IsOnDevice(gert::kOnDeviceP2p)": (1,),
    "gert::TensorPlacementUtils::IsOnDeviceHbm(gert::kOnDeviceP2p)": (0,),
    "GetConcatTmpSize(platform, 64, 4)": (0,),
    "GetSortTmpSize(platform, 64, 4)": (512,),
    "GetSortTmpSize(platform, 64, 2)": (512,),
    "GetArithProgressionMaxMinTmpSize(a, b)": (0, 0),
    "GetPowerMaxMinTmpSize(rows, rows, false, 4, false, a, b)": (4 * 25600 + 256, 4 * 256 + 256),
    "GetPowerMaxMinTmpSize(rows, ge::Shape({1}), false, 2, false, a, b)": (14 * 12800 + 256, 7 * 256 + 256),
    "GetPowerMaxMinTmpSize(ge::Shape({1}), rows, true, 4, false, a, b)": (7 * 25600, 7 * 256),
    "GetPowerTmpBufferFactorSize(true, true, false, 2, a, b)": (14, 256),
    "GetExpMaxMinTmpSize(rows, 2, false, a, b)": (4 * 25600, 4 * 256),
    "GetExpMaxMinTmpSize(rows, 4, true, a, b)": (2 * 25600, 2 * 256),
    "GetExpTmpBufferFactorSize(2, a, b)": (8, 0),
    "GetLgammaMaxMinTmpSize(rows, 2, false, a, b)": (26 * 12800, 26 * 256),
    "GetLgammaTmpBufferFactorSize(2, a, b)": (13, 0),
}  # fmt: skip
_SETUP = """\
  gert::OpImplRegisterV2("Placed").TilingInputsDataDependency({0}, {gert::TilingPlacement::TILING_ON_HOST});
  const ge::Shape rows({100, 64}), few({4, 8}), wide({16, 256}), one({1});
"""


def test_temporary_sizes(tmp_path: Path) -> None:
    assert answers(tmp_path, _ASKED, _SETUP) == _ASKED
