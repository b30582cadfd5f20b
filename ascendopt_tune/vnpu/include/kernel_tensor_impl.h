// Name of an inner header of the toolkit that some kernels include: everything is in kernel_operator.h.
#pragma once
#include "kernel_operator.h"
