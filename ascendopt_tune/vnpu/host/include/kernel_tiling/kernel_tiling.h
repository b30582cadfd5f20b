// What a structure shared by tiling function and kernel includes: on the host it needs the integer types alone.
#pragma once
#include <cstdint>
