#include "rtc_constants.h"

#include <cctype>
#include <vector>

#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

using Tokens = std::vector<std::string>;

bool is_word(const std::string& token) {
  return !token.empty() && (std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token[0] == '_');
}

// The semicolon of a declaration that says a type and a name from `at` on, and nothing else; else 0.
size_t end_of_plain(const Tokens& tokens, size_t at) {
  size_t words = 0;
  int depth = 0, inside = 0;  // of template arguments, and of parentheses in them
  for (; at < tokens.size(); ++at) {
    const std::string& token = tokens[at];
    if (depth > 0 && (token == "(" || token == ")")) {
      inside += token == "(" ? 1 : -1;
    } else if (inside > 0) {
      continue;
    } else if (token == "<") {
      ++depth;
    } else if (token == ">") {
      --depth;
    } else if (depth == 0 && token == ";") {
      return words > 1 && is_word(tokens[at - 1]) && tokens[at - 2] != ":" ? at : 0;
    } else if (depth == 0 && is_word(token)) {
      ++words;
    } else if (depth == 0 && token != ":") {
      return 0;
    }
  }
  return 0;
}

}  // namespace

std::string with_initializers(const std::string& preprocessed) {
  if (preprocessed.find("constexpr") == std::string::npos) return preprocessed;
  std::vector<size_t> places;
  const Tokens tokens = tokenize(preprocessed, true, &places);
  std::string text = preprocessed;
  for (size_t i = tokens.size(); i-- > 1;) {  // from the end, so that places in front stay right
    const bool both = (tokens[i - 1] == "static" && tokens[i] == "constexpr") ||
                      (tokens[i - 1] == "constexpr" && tokens[i] == "static");
    const size_t end = both ? end_of_plain(tokens, i + 1) : 0;
    if (end != 0) text.insert(places[end], "{}");
  }
  return text;
}

}  // namespace vnpu_rtc
