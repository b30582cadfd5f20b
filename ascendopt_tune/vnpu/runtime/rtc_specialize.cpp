#include "rtc_specialize.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

// Half-open ranges of tokens.
struct Range {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

// What `template <...>` declares.
struct Declared {
  std::string name;
  bool is_class = false;
  Range arguments;  // between the brackets behind the name
  size_t parameters = 0;
};

// A template that a class declares: where its list of parameters ends, and what is specialized of it.
struct Primary {
  Range head;
  std::vector<std::string> conditions;
};

class Rewriter {
 public:
  explicit Rewriter(const std::string& text) : text_(text), tokens_(tokenize(text, true, &places_)) {}

  std::string run() {
    scopes_.push_back({false, {}});
    for (size_t at = 0; at < tokens_.size();) at = step(at);
    while (!scopes_.empty()) leave();
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    std::string result;
    size_t from = 0;
    for (const Edit& edit : edits_) {
      result.append(text_, from, edit.begin - from).append(edit.text);
      from = edit.end;
    }
    return result.append(text_, from, std::string::npos);
  }

 private:
  struct Edit {
    size_t begin, end;  // places in the text
    std::string text;
  };
  struct Scope {
    bool is_class;
    std::map<std::string, Primary> primaries;
  };

  const std::string& at(size_t i) const {
    static const std::string none;
    return i < tokens_.size() ? tokens_[i] : none;
  }
  size_t begin_of(size_t i) const { return i < places_.size() ? places_[i] : text_.size(); }
  size_t end_of(size_t i) const { return begin_of(i) + tokens_[i].size(); }
  // As they are written, in one line.
  std::string words(Range range) const {
    if (range.empty()) return "";
    std::string result = text_.substr(begin_of(range.begin), end_of(range.end - 1) - begin_of(range.begin));
    std::replace(result.begin(), result.end(), '\n', ' ');
    return result;
  }
  void insert(size_t token, const std::string& text) { edits_.push_back({begin_of(token), begin_of(token), text}); }

  // The token behind the bracket that closes the one at `open`.
  size_t behind(size_t open) const {
    static const std::map<std::string, std::string> closing = {{"(", ")"}, {"[", "]"}, {"{", "}"}, {"<", ">"}};
    const std::string& close = closing.at(at(open));
    for (size_t i = open + 1; i < tokens_.size(); ++i) {
      if (tokens_[i] == close) return i + 1;
      const bool bracket = tokens_[i] == "(" || tokens_[i] == "[" || tokens_[i] == "{";
      if (bracket || (close == ">" && tokens_[i] == "<")) i = behind(i) - 1;
    }
    return tokens_.size();
  }

  // The parts of a list in brackets.
  std::vector<Range> parts(Range list) const {
    std::vector<Range> result;
    if (list.empty()) return result;
    result.push_back({list.begin, list.begin});
    for (size_t i = list.begin; i < list.end; ++i) {
      if (tokens_[i] == ",")
        result.push_back({i + 1, i + 1});
      else if (tokens_[i] == "(" || tokens_[i] == "[" || tokens_[i] == "{" || tokens_[i] == "<")
        i = behind(i) - 1;
      result.back().end = std::max(i + 1, result.back().begin);
      if (tokens_[i] == ",") result.back().end = result.back().begin;
    }
    return result;
  }

  // Goes over one token, or over what is of no interest; at namespace scope and in classes alone.
  size_t step(size_t i) {
    const std::string& token = tokens_[i];
    if (token == "template" && at(i + 1) == "<") return scopes_.back().is_class ? declaration(i) : behind(i + 1);
    if (token == "(" || token == "[") return behind(i);
    if (token == ";") statement_ = i + 1;
    if (token == "}") {
      if (scopes_.size() > 1) leave();
      statement_ = i + 1;
    }
    return token == "{" ? brace(i) : i + 1;
  }

  size_t brace(size_t i) {
    const bool block = at(statement_) == "namespace" || at(statement_ + 1) == "namespace" ||
                       (at(statement_) == "extern" && i == statement_ + 2);
    const bool is_class = !block && opens_class(i);
    if (block || is_class) scopes_.push_back({is_class, {}});
    const size_t next = block || is_class ? i + 1 : behind(i);
    statement_ = next;
    return next;
  }

  // Whether the bracket at `i` opens the body of a class: behind `struct`, and not behind a list of parameters.
  bool opens_class(size_t i) const {
    if (i == 0 || at(i - 1) == ")" || at(i - 1) == "=") return false;
    bool found = false;
    for (size_t k = statement_; k < i; ++k) {
      if (tokens_[k] == "<" || tokens_[k] == "(") k = behind(k) - 1;
      if (k < i && (tokens_[k] == "enum" || tokens_[k] == "operator")) return false;
      found = found || (k < i && (tokens_[k] == "struct" || tokens_[k] == "class" || tokens_[k] == "union"));
    }
    return found;
  }

  // A template of a class, from the word on. Returns where to go on: behind its list of parameters.
  size_t declaration(size_t i) {
    const Range head{i + 2, behind(i + 1) - 1};
    const Declared found = declared(head.end + 1);
    if (!found.name.empty()) {
      const std::string key = found.name + (found.is_class ? "" : "/" + std::to_string(found.parameters));
      auto& primaries = scopes_.back().primaries;
      if (!head.empty() && found.arguments.empty())
        primaries.insert({key, {head, {}}});
      else if (const auto primary = primaries.find(key); head.empty() && primary != primaries.end())
        found.is_class ? specialize_class(head, found, primary->second)
                       : specialize_function(head, found, primary->second);
    }
    return head.end + 1;
  }

  bool is_one_of(size_t i, const std::set<std::string>& words) const { return words.count(at(i)) != 0; }

  // What the declaration from `i` on declares; no name where it is of no interest.
  Declared declared(size_t i) const {
    while (i < tokens_.size() && !is_one_of(i, {";", "{", "=", "using", "friend", "template"})) {
      if (is_one_of(i, {"struct", "class", "union"})) return declared_class(i);
      if (is_one_of(i, {"__attribute__", "alignas", "decltype"})) {
        i = behind(i + 1);
        continue;
      }
      const size_t name = behind_name(i);
      if (!is_one_of(name, {"(", "<"})) {
        i = name;
        continue;
      }
      const size_t list = at(name) == "<" ? behind(name) : name;
      if (at(list) == "(") return declared_function({i, name}, list);
      i = list;  // a type with arguments
    }
    return {};
  }

  Declared declared_class(size_t i) const {
    Declared found{at(i + 1), true, {}, 0};
    if (at(i + 2) == "<") found.arguments = {i + 3, behind(i + 2) - 1};
    return found;
  }

  Declared declared_function(Range name, size_t list) const {
    Declared found{words(name), false, {}, parts({list + 1, behind(list) - 1}).size()};
    if (list != name.end) found.arguments = {name.end + 1, list - 1};
    return found;
  }

  // The token behind a word, or behind `operator` and what it is of.
  size_t behind_name(size_t i) const {
    if (at(i) != "operator") return i + 1;
    if (at(i + 1) == "(") return i + 3;
    size_t end = i + 2;
    while (end < tokens_.size() && tokens_[end] != "(" && !(tokens_[end] == "<" && word(end - 1))) ++end;
    return end;
  }
  bool word(size_t i) const { return std::isalnum(static_cast<unsigned char>(at(i)[0])) != 0; }

  // The name of a template's parameter; "" where it has none, or is a pack.
  std::string name_of(Range parameter) const {
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(parameter.begin);
    const auto last = tokens_.begin() + static_cast<std::ptrdiff_t>(parameter.end);
    const auto assigned = std::find(first, last, "=");
    if (assigned - first < 2 || *(assigned - 2) == "." || *(assigned - 2) == ":") return "";
    return *(assigned - 1);
  }

  void specialize_function(Range head, const Declared& found, Primary& primary) {
    const std::vector<Range> parameters = parts(primary.head), given = parts(found.arguments);
    std::string condition, own;
    for (size_t i = 0; i < parameters.size(); ++i) {
      own += (i > 0 ? ", " : "") + words(parameters[i]);
      if (i >= given.size()) continue;
      const std::string name = name_of(parameters[i]), value = words(given[i]);
      if (name.empty()) return;
      const std::string& kind = tokens_[parameters[i].begin];
      const bool type = kind == "typename" || kind == "class";
      condition += (i > 0 ? " && " : "") +
                   (type ? "__is_same(" + name + ", " + value + ")" : "((" + name + ") == (" + value + "))");
      // What no argument of the call tells any more, as the list of parameters has the type itself now.
      if (name == tokens_[parameters[i].end - 1]) own += " = " + value;
    }
    if (condition.empty()) return;
    primary.conditions.push_back(condition);
    insert(head.end, own + enabled(condition));
    edits_.push_back({begin_of(found.arguments.begin - 1), end_of(found.arguments.end), ""});
  }

  void specialize_class(Range head, const Declared& found, Primary& primary) {
    if (found.arguments.empty()) return;
    primary.conditions.emplace_back();
    insert(head.end, "typename vnpu_nobody");
    insert(found.arguments.end, ", vnpu_nobody");
  }

  static std::string enabled(const std::string& condition) {
    return ", typename std::enable_if<" + condition + ", int>::type = 0";
  }

  // What has been specialized of the scope's templates is known: their own lists follow.
  void leave() {
    for (const auto& [key, primary] : scopes_.back().primaries) {
      if (primary.conditions.empty()) continue;
      std::string none;
      for (const std::string& condition : primary.conditions)
        none += (none.empty() ? "!(" : " && !(") + condition + ")";
      const bool is_class = primary.conditions.front().empty();
      insert(primary.head.end, is_class ? ", typename vnpu_nobody = void" : enabled(none));
    }
    scopes_.pop_back();
  }

  const std::string& text_;
  std::vector<size_t> places_;
  const std::vector<std::string> tokens_;
  std::vector<Scope> scopes_;
  std::vector<Edit> edits_;
  size_t statement_ = 0;  // where the current one begins
};

}  // namespace

std::string with_partial_specializations(const std::string& preprocessed) { return Rewriter(preprocessed).run(); }

}  // namespace vnpu_rtc
