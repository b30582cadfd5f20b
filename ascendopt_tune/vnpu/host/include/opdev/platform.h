// The platform as hand-written operator interfaces ask for it: which host sources include and use nothing of.
#pragma once
#include "platform/platform_info.h"
#include "platform/soc_spec.h"
