// Older name of graph/error_codes.h.
#pragma once
#include "graph/error_codes.h"
