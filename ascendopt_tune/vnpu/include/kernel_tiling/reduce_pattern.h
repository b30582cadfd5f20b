// The axes of a reduction, as tiling functions and kernels name them.
#pragma once
#include <cstdint>

namespace AscendC {

// Which axes are reduced (R) and which stay (A), from the outermost. AR and RA are supported.
enum class ReducePattern : uint32_t {
  AR = 0,
  RA = 1,
  R,
  ARA,
  ARAR,
  ARARA,
  ARARAR,
  ARARARA,
  ARARARAR,
  ARARARARA,
  RAR,
  RARA,
  RARAR,
  RARARA,
  RARARAR,
  RARARARA,
};

}  // namespace AscendC
