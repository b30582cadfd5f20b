// Constants that are declared without a value.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text where `static constexpr T name;` says `name{}`: all of such a T's members have values of their own.
// The device's compiler takes the one (CWG 253), this one's only the other. Lines keep their numbers.
std::string with_initializers(const std::string& preprocessed);

}  // namespace vnpu_rtc
