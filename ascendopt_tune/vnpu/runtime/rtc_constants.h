// Constants in a way that this compiler takes.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text where `static constexpr T name;` says `name{}`: all of such a T's members have values of their own.
// The device's compiler takes the one (CWG 253), this one's only the other. A configuration of LoadData with values
// becomes a reference to one of four that are there (ascendc/cube_load3d.h): of one that is a function's own g++ 12
// makes no template argument. Lines keep their numbers, where such a value is on one line.
std::string with_initializers(const std::string& preprocessed);

}  // namespace vnpu_rtc
