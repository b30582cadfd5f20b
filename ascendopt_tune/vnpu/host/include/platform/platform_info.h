// fe::PlatformInfoManager: what shape functions of CANN's open operator repositories ask of the chip without a context.
#pragma once
#include <cstdint>
#include <string>

#include "graph/types.h"
#include "platform/platform_infos_def.h"

namespace fe {

struct StrInfo {
  std::string short_soc_version = "Ascend910B";  // architecture 2201
};
struct PlatformInfo {
  StrInfo str_info;
};
struct OptionalInfo {
  std::string soc_version;
};

class PlatformInfoManager {
 public:
  static PlatformInfoManager& Instance() {
    static PlatformInfoManager manager;
    return manager;
  }
  uint32_t GetPlatformInfoWithOutSocVersion(PlatformInfo& info, OptionalInfo&) {
    info = PlatformInfo();
    return 0;
  }
};

}  // namespace fe
