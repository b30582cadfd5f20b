// What the libraries' sources include of the standard library, compiled once for all of them (build/toolkit.py):
// reading it took half the time that a small source needs. Each source and header still includes what it uses.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#if defined(__F16C__)
#include <immintrin.h>
#endif
