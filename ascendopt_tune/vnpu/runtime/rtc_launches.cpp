#include "rtc_launches.h"

#include <cctype>

namespace vnpu_rtc {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

size_t before_spaces(const std::string& text, size_t end) {
  while (end > 0 && is_space(text[end - 1])) --end;
  return end;
}

// Where template arguments that close in front of `end` open; `end` itself where there are none.
size_t before_arguments(const std::string& text, size_t end) {
  if (end == 0 || text[end - 1] != '>') return end;
  int depth = 0;
  for (size_t i = end; i > 0; --i) {
    const char c = text[i - 1];
    if (c == ';' || c == '{' || c == '}') return end;
    depth += c == '>' ? 1 : c == '<' ? -1 : 0;
    if (depth == 0) return before_spaces(text, i - 1);
  }
  return end;
}

// Where the name begins that ends at `end`, with its namespaces and template arguments; `end` itself without one.
size_t name_before(const std::string& text, size_t end) {
  size_t begin = before_arguments(text, before_spaces(text, end));
  const size_t last = begin;
  while (begin > 0 && is_word_char(text[begin - 1])) --begin;
  if (begin == last) return end;
  const size_t colons = before_spaces(text, begin);
  if (colons < 2 || text.compare(colons - 2, 2, "::") != 0) return begin;
  const size_t outer = name_before(text, colons - 2);
  return outer == colons - 2 ? begin : outer;
}

}  // namespace

std::string without_launches(const std::string& preprocessed) {
  std::string text = preprocessed;
  size_t at = 0;
  while ((at = text.find("<<<", at)) != std::string::npos) {
    const size_t close = text.find(">>>", at), stop = text.find_first_of(";{}", at);
    const size_t begin = name_before(text, at);
    at += 3;
    if (close == std::string::npos || stop < close || begin + 3 == at) continue;
    std::string instead = "(void)";
    for (size_t i = begin; i < close; ++i)
      if (text[i] == '\n') instead += '\n';
    text.replace(begin, close + 3 - begin, instead);
    at = begin + instead.size();
  }
  return text;
}

}  // namespace vnpu_rtc
