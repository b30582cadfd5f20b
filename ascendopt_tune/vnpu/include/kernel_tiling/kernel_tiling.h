// CANN's tiling structures that no header of an API family defines: those of communication between chips, opaque and of
// CANN's size, for kernels whose tiling data has room for them.
#pragma once
#include "kernel_operator.h"

struct Mc2InitTiling {
  uint8_t reserved[64] = {};
};

struct Mc2CcTiling {
  uint8_t reserved[280] = {};
};
