#include "rtc_constants.h"

#include <cctype>
#include <vector>

#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

// What stands behind the template arguments that begin at `at`.
size_t behind_arguments(const Tokens& tokens, size_t at) {
  int angles = 0, round = 0;
  for (; at < tokens.size(); ++at) {
    const std::string& token = tokens[at];
    if (token == "(" || token == ")") round += token == "(" ? 1 : -1;
    if (round == 0 && (token == "<" || token == ">")) angles += token == "<" ? 1 : -1;
    if (round == 0 && angles == 0) return at + 1;
  }
  return at;
}

// The semicolon of a declaration that says a type and a name from `at` on, and nothing else; else 0.
size_t end_of_plain(const Tokens& tokens, size_t at) {
  const size_t begin = at;
  size_t words = 0;
  while (at < tokens.size() && (is_word(tokens[at]) || tokens[at] == ":" || tokens[at] == "<")) {
    words += is_word(tokens[at]) ? 1 : 0;
    at = tokens[at] == "<" ? behind_arguments(tokens, at) : at + 1;
  }
  const bool plain = at < tokens.size() && tokens[at] == ";" && words > 1 && at - begin > 1;
  return plain && is_word(tokens[at - 1]) && tokens[at - 2] != ":" ? at : 0;
}

// The bracket that closes `T name = {yes or no, yes or no}` from `at` on, for a configuration of LoadData; else 0.
size_t end_of_load(const Tokens& tokens, size_t at) {
  const auto answer = [&](size_t place) { return tokens[place] == "true" || tokens[place] == "false"; };
  if (at + 8 >= tokens.size() || tokens[at] != "IsResetLoad3dConfig" || !is_word(tokens[at + 1])) return 0;
  const bool both = tokens[at + 2] == "=" && tokens[at + 3] == "{" && answer(at + 4) && tokens[at + 5] == "," &&
                    answer(at + 6) && tokens[at + 7] == "}";
  return both ? at + 7 : 0;
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
    const size_t load = both ? end_of_load(tokens, i + 1) : 0;
    if (load == 0) continue;
    const std::string named = "const AscendC::IsResetLoad3dConfig& " + tokens[i + 2] +
                              " = AscendC::detail::kLoad3dConfig<" + tokens[i + 5] + ", " + tokens[i + 7] + ">";
    text.replace(places[i + 1], places[load] + 1 - places[i + 1], named);
  }
  return text;
}

}  // namespace vnpu_rtc
