#include "chip_file.h"

#include <fstream>
#include <stdexcept>
#include <vector>

namespace vnpu {
namespace {

using Values = std::map<std::string, std::string>;

std::string trim(std::string s) {
  const char* blank = " \t\r";
  s.erase(0, s.find_first_not_of(blank));
  s.erase(s.find_last_not_of(blank) + 1);
  return s;
}

// Cuts `text` at every `at` that stands outside of quotes and brackets.
std::vector<std::string> cut_text(const std::string& text, char at) {
  std::vector<std::string> out(1);
  int depth = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == at && !quoted && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::string without_comment(const std::string& line) { return trim(cut_text(line, '#').front()); }

// A number without its underscores, a text without its quotes, the first number of an array.
std::string plain(std::string value) {
  if (value.size() >= 2 && value.front() == '[') value = trim(cut_text(value.substr(1, value.size() - 2), ',').front());
  if (value.size() >= 2 && value.front() == '"') return value.substr(1, value.size() - 2);
  std::string digits;
  for (char c : value)
    if (c != '_') digits += c;
  const bool numeric = !value.empty() && (isdigit(value[0]) || value[0] == '-' || value[0] == '.');
  return numeric ? digits : value;
}

void take_value(Values& out, const std::string& key, const std::string& value) {
  if (value.size() < 2 || value.front() != '{') {
    out[key] = plain(value);
    return;
  }
  for (const std::string& field : cut_text(value.substr(1, value.size() - 2), ',')) {
    const size_t eq = field.find('=');
    if (eq == std::string::npos) continue;
    const std::string name = trim(field.substr(0, eq));
    out[name == "value" ? key : key + "." + name] = plain(trim(field.substr(eq + 1)));
  }
}

Values parse(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("can't read the chip file " + file.string());
  Values out;
  std::string line, section;
  for (int number = 1; std::getline(in, line); number++) {
    line = without_comment(line);
    if (line.empty()) continue;
    if (line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2) + ".";
      continue;
    }
    const size_t eq = line.find('=');
    if (eq == std::string::npos)
      throw std::runtime_error(file.string() + ":" + std::to_string(number) + ": expected `key = value`, got `" + line +
                               "`");
    take_value(out, section + trim(line.substr(0, eq)), trim(line.substr(eq + 1)));
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> read_chip_file(const std::filesystem::path& file,
                                                  const std::filesystem::path& folder) {
  Values own = parse(file);
  const auto parent = own.find("chip.inherits");
  if (parent == own.end()) return own;
  Values out = read_chip_file(folder / (parent->second + ".toml"), folder);
  for (auto& [key, value] : own) out[key] = value;
  return out;
}

}  // namespace vnpu
