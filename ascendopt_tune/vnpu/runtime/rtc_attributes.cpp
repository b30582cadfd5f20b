#include "rtc_attributes.h"

#include <cctype>
#include <set>
#include <vector>

#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

// Where the bracket closes that opens at `open`, when that is such an attribute; else 0. It isn't behind a name, where
// it would be an index, and a declaration goes on behind it.
size_t attribute(const Tokens& tokens, size_t open) {
  static const std::set<std::string> inside = {"host", "aicore", ","}, before = {"inline", "static", "constexpr"};
  if (tokens[open] != "[") return 0;
  size_t end = open + 1;
  while (end < tokens.size() && inside.count(tokens[end]) != 0) ++end;
  if (end == open + 1 || end + 1 >= tokens.size() || tokens[end] != "]") return 0;
  const bool is_index = open > 0 && is_word(tokens[open - 1]) && before.count(tokens[open - 1]) == 0;
  return !is_index && (is_word(tokens[end + 1]) || tokens[end + 1] == "~") ? end : 0;
}

}  // namespace

std::string without_core_attributes(const std::string& preprocessed) {
  if (preprocessed.find("aicore") == std::string::npos) return preprocessed;
  std::vector<size_t> places;
  const Tokens tokens = tokenize(preprocessed, true, &places);
  std::string text = preprocessed;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t end = attribute(tokens, i);
    if (end == 0) continue;
    const size_t length = places[end] + 1 - places[i];
    text.replace(places[i], length, length, ' ');
  }
  return text;
}

}  // namespace vnpu_rtc
