// The toolchain's name of the logging interface.
#pragma once
#include "base/alog_pub.h"
