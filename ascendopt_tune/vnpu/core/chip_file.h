// Chip files: the subset of TOML that they use, flattened to "section.key" -> text.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace vnpu {

// [section]; key = number | "text" | { value = number, ... } | { name = [number, low, high], ... }; # comments. Of a
// table with a `value` the key itself gets the value; of an array the first number counts, the rest is its interval.
// `chip.inherits` names a file below `folder` whose keys hold where this one is silent. Throws std::runtime_error.
std::map<std::string, std::string> read_chip_file(const std::filesystem::path& file,
                                                  const std::filesystem::path& folder);

}  // namespace vnpu
