// Reads C++ text just well enough to find kernels, and compiler logs well enough to name what is not covered.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <regex>
#include <set>

#include "rtc.h"

namespace vnpu_rtc {
namespace {

// What __global__ expands to in the first pass (include/vnpu_export.h; compile() undefines this word's own meaning).
const char* const kMark = "VNPU_GLOBAL_MARK";

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// __section__
bool in_underscores(const std::string& word) {
  return word.size() > 4 && word.compare(0, 2, "__") == 0 && word.compare(word.size() - 2, 2, "__") == 0;
}

// Whether a raw string literal begins at `i`: R"( with or without an encoding in front.
bool raw_literal(const std::string& text, size_t i) {
  if (i > 0 && word_char(text[i - 1])) return false;
  for (const char* prefix : {"R\"", "u8R\"", "uR\"", "UR\"", "LR\""})
    if (text.compare(i, strlen(prefix), prefix) == 0) return true;
  return false;
}

// Tokens of preprocessed C++: words, and single punctuation characters. Line markers and character and string literals
// are dropped, except the linkage "C"; with `literals` every one is a token "".
std::vector<std::string> tokenize(const std::string& text, bool literals = false) {
  std::vector<std::string> tokens;
  size_t i = 0;
  bool line_start = true;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      line_start = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (c == '#' && line_start) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (raw_literal(text, i)) {
      if (literals) tokens.emplace_back("\"\"");
      const size_t quote = text.find('"', i), open = text.find('(', i);
      if (open == std::string::npos) break;
      const std::string close = ")" + text.substr(quote + 1, open - quote - 1) + "\"";
      const size_t end = text.find(close, open);
      i = end == std::string::npos ? text.size() : end + close.size();
    } else if (c == '"' || c == '\'') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
      if (text.compare(i, end + 1 - i, "\"C\"") == 0)
        tokens.emplace_back("\"C\"");
      else if (literals && c == '"')
        tokens.emplace_back("\"\"");
      i = end + 1;
    } else if (word_char(c)) {
      size_t end = i;
      while (end < text.size() && word_char(text[end])) ++end;
      // A digit separator belongs to its number, it does not open a character literal.
      if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        while (end < text.size() && (word_char(text[end]) || text[end] == '\'')) ++end;
      }
      tokens.push_back(text.substr(i, end - i));
      i = end;
    } else {
      tokens.emplace_back(1, c);
      ++i;
    }
    if (c != '\n' && std::isspace(static_cast<unsigned char>(c)) == 0) line_start = false;
  }
  return tokens;
}

using Token = std::vector<std::string>::const_iterator;

// The token behind the bracket that closes the one at `open`.
Token skip_brackets(Token open, Token end) {
  const std::string& opening = *open;
  const std::string closing = opening == "(" ? ")" : opening == "[" ? "]" : "}";
  int depth = 0;
  for (Token at = open; at != end; ++at) {
    if (*at == opening) ++depth;
    if (*at == closing && --depth == 0) return at + 1;
  }
  return end;
}

bool is_attribute(const std::string& word) {
  return word == "__attribute__" || word == "__attribute" || word == "alignas" || word == "__declspec";
}

// The name of the function whose declaration goes from `first` on; "" when it has no body.
std::string defined_function(Token first, Token end) {
  for (Token at = first; at != end && *at != ";" && *at != "{"; ++at) {
    if (*at != "(") continue;
    const std::string& name = *(at - 1);
    const Token behind = skip_brackets(at, end);
    if (is_attribute(name)) {
      at = behind - 1;
      continue;
    }
    // Between the parameters and the body stand attributes at most.
    Token body = behind;
    while (body != end && *body != "{" && *body != ";") {
      body = *body == "(" || *body == "[" ? skip_brackets(body, end) : body + 1;
    }
    return body != end && *body == "{" ? name : "";
  }
  return "";
}

}  // namespace

std::vector<Kernel> find_kernels(const std::string& preprocessed) {
  const std::vector<std::string> tokens = tokenize(preprocessed);
  std::vector<Kernel> kernels;
  std::set<std::string> seen;
  std::vector<std::string> scopes;  // open namespaces with a trailing "::"; "" for a linkage block
  Token statement = tokens.begin();
  bool marked = false;
  for (Token at = tokens.begin(); at != tokens.end(); ++at) {
    if (*at == kMark) marked = true;
    if (*at == "}") {
      if (!scopes.empty()) scopes.pop_back();
    } else if (*at == "{") {
      const Token space = std::find(statement, at, "namespace");
      const bool linkage = at - statement == 2 && *statement == "extern" && *(statement + 1) == "\"C\"";
      if (space != at) {
        std::string scope;
        for (Token part = space + 1; part != at; ++part) scope += *part;
        scopes.push_back(scope.empty() ? "" : scope + "::");
      } else if (linkage) {
        scopes.emplace_back();
      } else {
        if (marked && *statement != "template") {
          const std::string name = defined_function(statement, tokens.end());
          std::string qualified = "::";
          for (const std::string& scope : scopes) qualified += scope;
          if (!name.empty() && seen.insert(qualified + name).second) kernels.push_back({name, qualified + name});
        }
        at = skip_brackets(at, tokens.end()) - 1;  // bodies and classes hold no kernels
      }
    } else if (*at == "(" || *at == "[") {
      at = skip_brackets(at, tokens.end()) - 1;
      continue;
    } else if (*at != ";") {
      continue;
    }
    statement = at + 1;
    marked = false;
    if (statement == tokens.end()) break;
  }
  return kernels;
}

std::string assembled(const std::string& preprocessed) {
  static const std::set<std::string> attributes = {"section", "weakref", "symver",
                                                   "alias",   "ifunc",   "patchable_function_entry"};
  static const std::set<std::string> encodings = {"u8", "u", "U", "L"};
  const std::vector<std::string> tokens = tokenize(preprocessed, true);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string word = tokens[i];
    if (in_underscores(word)) word = word.substr(2, word.size() - 4);
    if (attributes.count(word) == 0) continue;
    size_t next = i + 1;
    while (next < tokens.size() && tokens[next] == "(") ++next;
    if (next == i + 1) continue;
    if (next < tokens.size() && encodings.count(tokens[next]) != 0) ++next;
    if (next < tokens.size() && tokens[next][0] == '"') return word;
  }
  return "";
}

std::string explain(const std::string& log) {
  static const std::regex member(R"(error: '(\w+)' is not a member of 'AscendC')");
  static const std::regex undeclared(R"(error: '(\w+)' was not declared in this scope)");
  static const std::regex overload(R"(error: no matching function for call to '(?:AscendC::)?([A-Z]\w*)[(<])");
  static const std::regex header(R"(fatal error: (\S+): No such file or directory)");
  const std::string where =
      " Add it in ascendopt_tune/vnpu/include/ascendc (CONTRIBUTING.md, \"How to add an AscendC API\").\n";
  std::string text;
  std::set<std::string> said;
  const auto say = [&](const std::string& sentence) {
    if (said.insert(sentence).second) text += "virtual NPU: " + sentence;
  };
  const auto each = [&](const std::regex& pattern, auto&& use) {
    for (std::sregex_iterator it(log.begin(), log.end(), pattern), end; it != end; ++it) use((*it)[1].str());
  };
  each(member, [&](const std::string& name) { say("the API AscendC::" + name + " is not covered." + where); });
  each(undeclared, [&](const std::string& name) {
    if (std::isupper(static_cast<unsigned char>(name[0])) != 0) {
      say("if " + name + " is an AscendC API, it is not covered." + where);
    }
  });
  each(overload, [&](const std::string& name) {
    say("if " + name + " is an AscendC API, this form of it is not covered, or its arguments are wrong." + where);
  });
  each(header, [&](const std::string& name) { say("if " + name + " is a CANN header, it is not covered." + where); });
  return text;
}

}  // namespace vnpu_rtc
