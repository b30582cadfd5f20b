// Words and punctuation of preprocessed C++.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vnpu_rtc {

using Tokens = std::vector<std::string>;
using Token = Tokens::const_iterator;

// Words, and single punctuation characters. Line markers and character and string literals are dropped, except the
// linkage "C"; with `literals` every one is a token "". `places` gets where in `text` each begins.
Tokens tokenize(const std::string& text, bool literals = false, std::vector<size_t>* places = nullptr);

// Whether a token is a name or a keyword.
bool is_word(const std::string& token);

}  // namespace vnpu_rtc
