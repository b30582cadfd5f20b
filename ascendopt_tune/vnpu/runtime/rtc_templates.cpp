// What ASCENDC_TPL_SEL says of the cores that a combination of template arguments runs on.
//
// The first pass leaves the selection as it stands, macros inside of it expanded (include/vnpu_export.h); what
// arguments are declared is what ASCENDC_TPL_ARGS_DECL expands to (include/ascendc/host_api/tiling/
// template_argument.h): there the key's bits get the values that a combination names.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "rtc.h"
#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

const char* const kSelected = "VNPU_TPL_SELECTED";

struct Span {
  Token first, last;
};

bool opens(const std::string& word) { return word == "(" || word == "{" || word == "["; }
bool closes(const std::string& word) { return word == ")" || word == "}" || word == "]"; }

// What commas divide behind the bracket at `open`, up to the one that closes it; `behind`, if any, gets the token
// behind that.
std::vector<Span> parts_of(Token open, Token end, Token* behind = nullptr) {
  std::vector<Span> parts;
  int depth = 0;
  Token at = open, first = open == end ? end : open + 1;
  for (; at != end; ++at) {
    if (opens(*at)) ++depth;
    if (closes(*at)) --depth;
    if (depth > 1 || (depth == 1 && *at != ",")) continue;
    if (at != first) parts.push_back({first, at});
    first = at + 1;
    if (depth == 0) break;
  }
  if (behind != nullptr) *behind = at == end ? end : at + 1;
  return parts;
}

// A value as a text by which it is compared: numbers in decimal, so that 0x1UL is 1; names as they stand.
std::string value_at(const Span& span) {
  std::string text;
  for (Token at = span.first; at != span.last; ++at) text += *at;
  if (text == "true" || text == "false") return text == "true" ? "1" : "0";
  const bool number = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  return number ? std::to_string(strtoull(text.c_str(), nullptr, 0)) : text;
}

// A list's values as the macros take them: ranges by their ends, then single ones; `mode` is the first part.
std::vector<std::string> numbers_of(const std::vector<Span>& parts, size_t first) {
  std::vector<std::string> values;
  if (first >= parts.size()) return values;
  const std::string mode = value_at(parts[first++]);
  const auto ends_with = [&](const std::string& word) {
    return mode.size() >= word.size() && mode.compare(mode.size() - word.size(), word.size(), word) == 0;
  };
  if (!ends_with("kList") && first < parts.size()) {
    const uint64_t ranges = strtoull(value_at(parts[first++]).c_str(), nullptr, 0);
    for (uint64_t i = 0; i < ranges && first + 1 < parts.size(); ++i, first += 2) {
      const uint64_t low = strtoull(value_at(parts[first]).c_str(), nullptr, 0);
      const uint64_t high = strtoull(value_at(parts[first + 1]).c_str(), nullptr, 0);
      for (uint64_t value = low; value <= high && values.size() < 256; ++value) values.push_back(std::to_string(value));
    }
  }
  for (; first < parts.size(); ++first) values.push_back(value_at(parts[first]));
  return values;
}

// An argument that is declared: its bits of the key, and the values that the key's codes stand for.
struct DeclaredArgument {
  unsigned bits = 0;
  std::vector<std::string> values;  // none: the code itself
  bool bound = false;               // to an input or an output, whatever the key says
};

DeclaredArgument declared_at(const Span& span) {
  DeclaredArgument out;
  const Token call = std::find(span.first, span.last, "(");
  if (call == span.first || call == span.last) return out;
  const std::string kind = *(call - 1);
  if (kind == "boolean") {
    out.bits = 1;
    return out;
  }
  const std::vector<Span> given = parts_of(call, span.last);
  if (given.size() != 2) return out;
  out.bits = static_cast<unsigned>(strtoul(value_at(given[0]).c_str(), nullptr, 0));
  const std::vector<Span> list = parts_of(given[1].first, given[1].last);
  if (kind == "number") {
    out.values = numbers_of(list, 0);
  } else {
    for (const Span& one : list) out.values.push_back(value_at(one));
    out.bound = std::any_of(list.begin(), list.end(), [](const Span& one) {
      return std::find_if(one.first, one.last, [](const std::string& t) { return t == "kInput" || t == "kOutput"; }) !=
             one.last;
    });
  }
  return out;
}

// What was declared last, which is what the unit asks for.
std::vector<DeclaredArgument> declaration_in(const Tokens& tokens) {
  static const Tokens opening = {"ascendc_tpl", ":", ":", "declared", "(", "{"};
  std::vector<DeclaredArgument> found;
  for (Token at = tokens.begin(); (at = std::search(at, tokens.end(), opening.begin(), opening.end())) != tokens.end();
       ++at) {
    found.clear();
    for (const Span& part : parts_of(at + static_cast<std::ptrdiff_t>(opening.size()) - 1, tokens.end()))
      found.push_back(declared_at(part));
  }
  return found;
}

// The values that the key has for these arguments; "" for one that says nothing.
std::vector<std::string> values_in(uint64_t key, const std::vector<DeclaredArgument>& arguments) {
  std::vector<std::string> values;
  for (const DeclaredArgument& argument : arguments) {
    const uint64_t code = argument.bits >= 64 ? key : key & ((uint64_t{1} << argument.bits) - 1);
    key = argument.bits >= 64 ? 0 : key >> argument.bits;
    const bool known = argument.values.empty() || code < argument.values.size();
    const std::string value = argument.values.empty() ? std::to_string(code) : known ? argument.values[code] : "";
    values.push_back(argument.bound ? "" : value);
  }
  return values;
}

// What a combination says that is no argument of the kernel.
const char* const kType = "ASCENDC_TPL_KERNEL_TYPE_SEL";
const char* const kDeterministic = "ASCENDC_TPL_DETERMINISTIC_SEL";
const char* const kStruct = "ASCENDC_TPL_TILING_STRUCT_SEL";

// Whether the argument at `span` of a combination allows `value`.
bool allows(const Span& span, const std::string& value) {
  if (value.empty()) return true;
  const std::vector<Span> parts = parts_of(span.first + 1, span.last);
  std::vector<std::string> values;
  if (*span.first == "ASCENDC_TPL_UINT_SEL") {
    values = numbers_of(parts, 1);
  } else {
    for (size_t i = 1; i < parts.size(); ++i) values.push_back(value_at(parts[i]));
  }
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The kernel type of the combination that opens at `open`, if it is the one with these values; else "".
std::string type_for(Token open, Token end, const std::vector<std::string>& wanted) {
  std::string type;
  size_t next = 0;
  for (const Span& part : parts_of(open, end)) {
    const std::vector<Span> given =
        part.last - part.first > 1 ? parts_of(part.first + 1, part.last) : std::vector<Span>{};
    if (*part.first == kStruct) continue;
    if (*part.first == kType || *part.first == kDeterministic) {
      const std::string value = given.empty() ? "" : value_at(given[0]);
      if (*part.first == kDeterministic && value != "0") return "";  // nobody asks for determinism here
      if (*part.first == kType) type = value;
      continue;
    }
    if (next >= wanted.size() || !allows(part, wanted[next++])) return "";
  }
  return next == wanted.size() ? type : "";
}

}  // namespace

std::optional<Cores> cores_of_selection(const std::vector<std::string>& tokens, const std::string& key) {
  static const std::map<std::string, Cores> types = {
      {"1", Cores::Cube}, {"5", Cores::Cube}, {"6", Cores::MixedOne}, {"7", Cores::MixedTwo}};
  if (std::find(tokens.begin(), tokens.end(), kSelected) == tokens.end()) return std::nullopt;
  const std::vector<std::string> wanted = values_in(strtoull(key.c_str(), nullptr, 0), declaration_in(tokens));
  if (wanted.empty()) return std::nullopt;
  std::string type;
  for (Token at = tokens.begin(); (at = std::find(at, tokens.end(), kSelected)) != tokens.end(); ++at) {
    for (const Span& part : parts_of(at + 1, tokens.end())) {
      if (*part.first != "ASCENDC_TPL_ARGS_SEL" || part.last - part.first < 2) continue;
      const std::string told = type_for(part.first + 1, part.last, wanted);
      if (!told.empty()) type = told;
    }
  }
  if (type.empty()) return std::nullopt;
  const auto found = types.find(type);
  return found == types.end() ? Cores::Vector : found->second;
}

}  // namespace vnpu_rtc
