// The platform as a program asks for it that no tiling context is handed to: read from the toolkit's chip files.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

#include "core/chip_file.h"
#include "host.h"
#include "tiling/platform/platform_ascendc.h"

namespace platform_ascendc {

PlatformAscendC* PlatformAscendCManager::GetInstance(const char* name) {
  struct Platform {
    vnpu_host::Chip chip;
    fe::PlatFormInfos infos{&chip};
    PlatformAscendC platform{&infos};
  };
  static std::map<std::string, std::unique_ptr<Platform>> known;
  const char* asked = name != nullptr ? name : std::getenv("ASCENDOPT_CHIP");
  std::string chip = asked != nullptr && *asked != '\0' ? asked : "ascend910b2";
  if (chip.find('/') == std::string::npos)
    std::transform(chip.begin(), chip.end(), chip.begin(), [](unsigned char c) { return std::tolower(c); });
  std::unique_ptr<Platform>& found = known[chip];
  if (found == nullptr) {
    Dl_info library;
    dladdr(reinterpret_cast<void*>(&PlatformAscendCManager::GetInstance), &library);
    namespace fs = std::filesystem;
    const fs::path folder = fs::absolute(library.dli_fname).parent_path().parent_path() / "chips";
    const fs::path file = chip.find('/') == std::string::npos ? folder / (chip + ".toml") : fs::path(chip);
    try {
      auto made = std::make_unique<Platform>();
      made->chip.values = vnpu::read_chip_file(file, folder);
      found = std::move(made);
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }
  return &found->platform;
}

}  // namespace platform_ascendc
