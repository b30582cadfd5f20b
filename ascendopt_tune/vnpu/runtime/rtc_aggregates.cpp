#include "rtc_aggregates.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

class Aggregates {
 public:
  explicit Aggregates(const std::string& text) : text_(text), tokens_(tokenize(text, true, &places_)) {}

  std::string run() {
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i] == "struct" || tokens_[i] == "class") look_at(i);
    return std::move(text_);
  }

 private:
  const std::string& at(size_t i) const {
    static const std::string none;
    return i < tokens_.size() ? tokens_[i] : none;
  }

  // The token behind the bracket that closes the one at `open`.
  size_t behind(size_t open) const {
    const std::string& opening = tokens_[open];
    const std::string closing = opening == "(" ? ")" : opening == "[" ? "]" : "}";
    int depth = 0;
    for (size_t i = open; i < tokens_.size(); ++i) {
      if (tokens_[i] == opening) ++depth;
      if (tokens_[i] == closing && --depth == 0) return i + 1;
    }
    return tokens_.size();
  }

  // Where the body of the class at `i` opens; 0 where it has none, or the word is a parameter of a template.
  size_t body_of(size_t i) const {
    static const std::set<std::string> ends = {";", "(", ")", "=", ""};
    if (i > 0 && at(i - 1) == "enum") return 0;
    size_t k = i + 2;
    int depth = 0;
    for (; ends.count(at(k)) == 0 && at(k) != "{"; ++k) {
      if (at(k) == "<") ++depth;
      if (at(k) == ">" && --depth < 0) return 0;
      if (at(k) == "," && depth == 0 && std::find(tokens_.begin() + i, tokens_.begin() + k, ":") == tokens_.begin() + k)
        return 0;
    }
    return at(k) == "{" ? k : 0;
  }

  void look_at(size_t i) {
    const std::string& name = at(i + 1);
    const size_t open = body_of(i);
    if (open == 0 || std::isalpha(static_cast<unsigned char>(name[0])) == 0) return;
    const size_t end = behind(open);
    bool is_public = at(i) == "struct";
    size_t statement = open + 1, first = 0, last = 0, constructors = 0;
    for (size_t k = open + 1; k + 1 < end; ++k) {
      if (constructs(k, name)) {
        ++constructors;
        if (is_public && defaulted(k)) first = statement, last = k + 5;
      }
      const bool is_label = k == statement + 1 && label(k);
      if (is_label) is_public = at(k - 1) == "public";
      if (opens(k)) k = behind(k) - 1;
      if (is_label || tokens_[k] == ";" || tokens_[k] == "}") statement = k + 1;
    }
    if (constructors == 1 && last != 0) remove(first, last);
  }
  bool opens(size_t k) const { return tokens_[k] == "(" || tokens_[k] == "[" || tokens_[k] == "{"; }
  bool label(size_t k) const { return tokens_[k] == ":" && at(k + 1) != ":"; }
  bool constructs(size_t k, const std::string& name) const {
    return tokens_[k] == name && at(k + 1) == "(" && at(k - 1) != "~";
  }
  // NAME() = default;
  bool defaulted(size_t k) const {
    return at(k + 2) == ")" && at(k + 3) == "=" && at(k + 4) == "default" && at(k + 5) == ";";
  }

  void remove(size_t first, size_t last) {
    for (size_t k = first; k <= last; ++k)
      if (tokens_[k].front() == '"') return;  // a literal's token isn't its text
    for (size_t k = first; k <= last; ++k) text_.replace(places_[k], tokens_[k].size(), tokens_[k].size(), ' ');
  }

  std::string text_;
  std::vector<size_t> places_;
  const std::vector<std::string> tokens_;
};

}  // namespace

std::string with_aggregates(const std::string& preprocessed) { return Aggregates(preprocessed).run(); }

}  // namespace vnpu_rtc
