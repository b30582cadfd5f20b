// Aggregates of C++17 that C++20 doesn't take for any.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text without the public `NAME() = default;` of classes that declare no other constructor: what the
// compiler makes by itself is the same, and with the declaration such a class is no aggregate from C++20 on (P1008).
// The device's compiler takes programs that need both standards. Lines keep their numbers.
std::string with_aggregates(const std::string& preprocessed);

}  // namespace vnpu_rtc
