// The name of the platform query in newer packages.
#pragma once
#include "tiling/platform/platform_ascendc.h"
