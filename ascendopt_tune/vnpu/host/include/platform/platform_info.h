// Platform information; see platform_infos_def.h.
#pragma once
#include "platform/platform_infos_def.h"
