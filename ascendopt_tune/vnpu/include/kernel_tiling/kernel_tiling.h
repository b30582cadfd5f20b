// CANN's tiling structures of high-level APIs; the vector APIs covered here take none.
#pragma once
#include "kernel_operator.h"
