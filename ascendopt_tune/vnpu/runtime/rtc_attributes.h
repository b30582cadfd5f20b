// Attributes of the device's compiler that have a form of their own.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text without `[aicore]` and `[host, aicore]`, which say where a function runs: the other form
// of `__attribute__((aicore))`. Lines and columns keep their numbers.
std::string without_core_attributes(const std::string& preprocessed);

}  // namespace vnpu_rtc
