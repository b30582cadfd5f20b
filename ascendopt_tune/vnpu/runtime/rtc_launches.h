// Launches of kernels in a program that is compiled for a device.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text in which `kernel<types><<<blocks, l2, stream>>>(arguments)` is `(void)(arguments)`: host code that
// headers of templates have beside the kernel's own. Lines keep their numbers.
std::string without_launches(const std::string& preprocessed);

}  // namespace vnpu_rtc
