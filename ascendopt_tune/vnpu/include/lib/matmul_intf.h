// The high-level matrix multiplication, which is refused where it is used.
#pragma once
#include "ascendc/cube.h"
#include "kernel_operator.h"
