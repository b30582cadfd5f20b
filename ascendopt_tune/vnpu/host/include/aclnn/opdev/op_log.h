// Older path of opdev/op_log.h.
#pragma once
#include "opdev/op_log.h"
