// Explicit specializations inside of classes, written so that g++ takes them.
#pragma once

#include <string>

namespace vnpu_rtc {

// Preprocessed text whose members of classes are specialized where they are declared (C++17, core issue 727; the
// device's compiler takes it, g++ before version 14 doesn't), said another way: a function for certain template
// arguments is one of its own that only they enable, and a class gets a parameter more that nobody gives, so that its
// specialization is a partial one. Lines keep their numbers. Text without any comes back as it is; so does what is
// specialized without a declaration before it in the same class.
std::string with_partial_specializations(const std::string& preprocessed);

}  // namespace vnpu_rtc
