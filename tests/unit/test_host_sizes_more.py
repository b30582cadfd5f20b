"""Temporary sizes and tilings of Pad, UnPad, TransData, reductions, AscendQuant, Digamma, asked by a host program.

The numbers are what the formulas of asc-devkit give for architecture 2201 (impl/adv_api/tiling), worked out by hand.
"""

from __future__ import annotations

from pathlib import Path

from ask_host import answers

_ASKED: dict[str, tuple[int, ...]] = {
    "GetReduceMeanMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (16 * 128 * 4,) * 2,
    "GetReduceMeanMaxMinTmpSize(wide, ge::DT_FLOAT, ReducePattern::RA, true, true, a, b)": (0, 0),
    "GetReduceAnyMaxMinTmpSize(rows, ge::DT_UINT8, ReducePattern::AR, true, true, a, b)": (64 * 2 + 100 * 32,) * 2,
    "GetReduceAllMaxMinTmpSize(rows, ge::DT_UINT8, ReducePattern::RA, true, false, a, b)": (64 * 64,) * 2,
    "GetReduceAllMaxMinTmpSize(rows, ge::DT_UINT8, ReducePattern::RA, true, true, a, b)": (0, 0),
    "GetReduceAnyMaxMinTmpSize(rows, ge::DT_FLOAT, ReducePattern::AR, true, false, a, b)": (100 * 256,) * 2,
    "GetReduceXorSumMaxMinTmpSize(rows, 2, false, a, b)": (3 * 12800,) * 2,
    "GetReduceXorSumMaxMinTmpSize(few, 2, true, a, b)": (2 * 256,) * 2,
    "GetArangeMaxMinTmpSize(a, b)": (0, 0),
    "GetAscendQuantTmpBufferFactorSize(a, b)": (2, 0),
    "GetDigammaMaxMinTmpSize(rows, 4, false, a, b)": (7 * 25600, 7 * 256),
    "GetDigammaMaxMinTmpSize(rows, 4, true, a, b)": (6 * 25600, 6 * 256),
    "GetDigammaMaxMinTmpSize(few, 2, false, a, b)": (16 * 256, 16 * 256),
    "GetDigammaTmpBufferFactorSize(2, a, b)": (16, 0),
    "GetPadMaxMinTmpSize(odd, 2, a, b)": (15 * 1024, 1024),
    "GetUnPadMaxMinTmpSize(platform, rows, 2, a, b)": (0, 0),
    "GetTransDataMaxMinTmpSize(platform, ncdhw, six, ge::DT_FLOAT16, {plain, DataFormat::NDC1HWC0}, a, b)": (
        (2 * 16 + 2 * 32 * 16) * 2,
    )
    * 2,
    "GetTransDataMaxMinTmpSize(platform, six, ncdhw, ge::DT_BF16, {DataFormat::NDC1HWC0, plain}, a, b)": (
        2 * 32 * 16 * 2 + 512,
    )
    * 2,
    "GetTransDataMaxMinTmpSize(platform, ncdhw, seven, ge::DT_INT16, {plain, DataFormat::FRACTAL_Z_3D}, a, b)": (
        (20 * 2 * 16 + 16 * 2 * 32 * 16) * 2,
    )
    * 2,
    "GetTransDataMaxMinTmpSize(platform, seven, ncdhw, ge::DT_UINT16, {DataFormat::FRACTAL_Z_3D, plain}, a, b)": (
        16 * 2 * 32 * 16 * 2 * 2,
    )
    * 2,
    "GetTransDataMaxMinTmpSize(platform, ncdhw, six, ge::DT_FLOAT, {plain, DataFormat::NDC1HWC0}, a, b)": (0,),
    "GetTransDataMaxMinTmpSize(platform, rows, six, ge::DT_FLOAT16, {plain, DataFormat::NDC1HWC0}, a, b)": (0,),
    "(PadTilingFunc(odd, odd, 2048, 2, pad), pad.get_srcWidth())": (15,),
    "pad.get_widthWithoutLastBlock()": (2**32 - 1,),
    "pad.get_tmpBuffer2Offset()": (2 * 16 * 16,),
    "pad.get_widthFractalTailAlingned()": (16,),
    "pad.get_brcbFractal()": (7,),
    "pad.get_brcbFractalTail()": (16,),
    "pad.get_brcbTilingRepeatTimesTail()": (4,),
    "(UnPadTilingFunc(rows, 0, 2, unpad), unpad.get_srcHeight())": (100,),
    "unpad.get_widthTiling()": (0,),
}
_SETUP = """\
  const ge::Shape rows({100, 64}), few({4, 8}), wide({16, 256}), odd({16, 15});
  const ge::Shape ncdhw({1, 20, 2, 3, 5}), six({1, 2, 2, 3, 5, 16}), seven({2, 2, 3, 5, 1, 16, 16});
  constexpr DataFormat plain = DataFormat::NCDHW;
  optiling::PadTiling pad;
  optiling::UnPadTiling unpad;
"""


def test_temporary_sizes_and_tilings(tmp_path: Path) -> None:
    assert answers(tmp_path, _ASKED, _SETUP) == _ASKED
