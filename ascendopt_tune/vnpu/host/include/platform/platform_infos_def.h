// fe::PlatFormInfos: what a chip has, as tiling functions ask for it. Answers come from the chip's key/value table.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace vnpu_host {
struct Chip;
}

namespace fe {

enum class LocalMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

class PlatFormInfos {
 public:
  explicit PlatFormInfos(const vnpu_host::Chip* chip) : chip_(chip) {}
  // Labels "SoCInfo", "AICoreSpec", "version"; false when the chip has no such value.
  bool GetPlatformRes(const std::string& label, const std::string& key, std::string& value);
  bool GetPlatformResWithLock(const std::string& label, const std::string& key, std::string& value) {
    return GetPlatformRes(label, key, value);
  }
  uint32_t GetCoreNum();
  uint32_t GetCoreNumWithLock() { return GetCoreNum(); }
  uint32_t GetCoreNumByType(const std::string& core_type);
  void GetLocalMemSize(const LocalMemType& type, uint64_t& bytes);
  void GetLocalMemBw(const LocalMemType& type, uint64_t& bytes_per_cycle);
  void SetCoreNumByCoreType(const std::string&) {}
  const vnpu_host::Chip* chip() const { return chip_; }

 private:
  const vnpu_host::Chip* chip_;
};

}  // namespace fe
