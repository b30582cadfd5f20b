// Words and punctuation of preprocessed C++.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vnpu_rtc {

// Words, and single punctuation characters. Line markers and character and string literals are dropped, except the
// linkage "C"; with `literals` every one is a token "". `places` gets where in `text` each begins.
std::vector<std::string> tokenize(const std::string& text, bool literals = false,
                                  std::vector<size_t>* places = nullptr);

// Whether a token is a name or a keyword.
bool is_word(const std::string& token);

}  // namespace vnpu_rtc
