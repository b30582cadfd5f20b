#include "rtc_tokens.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

namespace vnpu_rtc {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether a raw string literal begins at `i`: R"( with or without an encoding in front.
bool raw_literal(const std::string& text, size_t i) {
  if (i > 0 && word_char(text[i - 1])) return false;
  for (const char* prefix : {"R\"", "u8R\"", "uR\"", "UR\"", "LR\""})
    if (text.compare(i, strlen(prefix), prefix) == 0) return true;
  return false;
}

// Tokens of preprocessed C++: words, and single punctuation characters. Line markers and character and string literals
// are dropped, except the linkage "C"; with `literals` every one is a token "".
class Tokenizer {
 public:
  Tokenizer(const std::string& text, bool literals) : text_(text), literals_(literals) {}
  std::vector<size_t> places() { return std::move(places_); }

  std::vector<std::string> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool line_start = line_start_;
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        line_start_ = line_start || c == '\n';
        ++at_;
        continue;
      }
      line_start_ = false;
      if (c == '#' && line_start)
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (raw_literal(text_, at_))
        skip_raw_literal();
      else if (c == '"' || c == '\'')
        skip_literal(c);
      else if (word_char(c))
        take_word();
      else
        take_character();
    }
    return std::move(tokens_);
  }

 private:
  void add(std::string token, size_t place) {
    tokens_.push_back(std::move(token));
    places_.push_back(place);
  }

  void take_character() {
    add(std::string(1, text_[at_]), at_);
    ++at_;
  }

  void skip_raw_literal() {
    if (literals_) add("\"\"", at_);
    const size_t quote = text_.find('"', at_), open = text_.find('(', at_);
    at_ = text_.size();
    if (open == std::string::npos) return;
    const std::string close = ")" + text_.substr(quote + 1, open - quote - 1) + "\"";
    const size_t end = text_.find(close, open);
    if (end != std::string::npos) at_ = end + close.size();
  }

  void skip_literal(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (text_.compare(at_, end + 1 - at_, "\"C\"") == 0)
      add("\"C\"", at_);
    else if (literals_ && quote == '"')
      add("\"\"", at_);
    at_ = end + 1;
  }

  void take_word() {
    size_t end = at_;
    // A digit separator belongs to its number, it does not open a character literal.
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    while (end < text_.size() && (word_char(text_[end]) || (number && text_[end] == '\''))) ++end;
    add(text_.substr(at_, end - at_), at_);
    at_ = end;
  }

  const std::string& text_;
  const bool literals_;
  std::vector<std::string> tokens_;
  std::vector<size_t> places_;
  size_t at_ = 0;
  bool line_start_ = true;
};

}  // namespace

std::vector<std::string> tokenize(const std::string& text, bool literals, std::vector<size_t>* places) {
  Tokenizer tokenizer(text, literals);
  std::vector<std::string> tokens = tokenizer.run();
  if (places != nullptr) *places = tokenizer.places();
  return tokens;
}

bool is_word(const std::string& token) {
  return !token.empty() && (std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token[0] == '_');
}

}  // namespace vnpu_rtc
