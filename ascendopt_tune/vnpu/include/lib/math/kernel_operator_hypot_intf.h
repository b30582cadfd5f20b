// CANN's name for a part of kernel_operator.h.
#pragma once
#include "kernel_operator.h"
