// Platform queries, answered from the chip's values.
#include "host.h"
#include "tiling/platform/platform_ascendc.h"

#include <cstdlib>

namespace vnpu_host {

std::string Chip::Text(const std::string& key) const {
  const auto it = values.find(key);
  return it == values.end() ? "" : it->second;
}

uint64_t Chip::Number(const std::string& key) const { return std::strtoull(Text(key).c_str(), nullptr, 10); }

}  // namespace vnpu_host

namespace fe {

uint32_t PlatFormInfos::GetCoreNum() { return static_cast<uint32_t>(chip_->Number("core.aic")); }

uint32_t PlatFormInfos::GetCoreNumByType(const std::string& core_type) {
  return static_cast<uint32_t>(chip_->Number(core_type == "VectorCore" ? "core.aiv" : "core.aic"));
}

// All of it, as platform files have it: 196608 for UB of architecture 2201.
void PlatFormInfos::GetLocalMemSize(const LocalMemType& type, uint64_t& bytes) {
  switch (type) {
    case LocalMemType::UB:
      bytes = chip_->Number("memory.ub_bytes");
      break;
    case LocalMemType::L1:
      bytes = chip_->Number("memory.l1_bytes");
      break;
    case LocalMemType::L0_A:
      bytes = chip_->Number("memory.l0a_bytes");
      break;
    case LocalMemType::L0_B:
      bytes = chip_->Number("memory.l0b_bytes");
      break;
    case LocalMemType::L0_C:
      bytes = chip_->Number("memory.l0c_bytes");
      break;
    case LocalMemType::L2:
      bytes = chip_->Number("memory.l2_bytes");
      break;
    default:
      bytes = 0;
  }
}

void PlatFormInfos::GetLocalMemBw(const LocalMemType& type, uint64_t& bytes_per_cycle) {
  bytes_per_cycle = type == LocalMemType::L2    ? chip_->Number("mte2.l2_bytes_per_cycle")
                    : type == LocalMemType::HBM ? chip_->Number("mte2.bytes_per_cycle")
                                                : 0;
}

bool PlatFormInfos::GetPlatformRes(const std::string& label, const std::string& key, std::string& value) {
  static const std::map<std::string, std::string> names = {{"SoCInfo.ai_core_cnt", "core.aic"},
                                                           {"SoCInfo.cube_core_cnt", "core.aic"},
                                                           {"SoCInfo.vector_core_cnt", "core.aiv"},
                                                           {"SoCInfo.l2_size", "memory.l2_bytes"},
                                                           {"AICoreSpec.l0_a_size", "memory.l0a_bytes"},
                                                           {"AICoreSpec.l0_b_size", "memory.l0b_bytes"},
                                                           {"AICoreSpec.l0_c_size", "memory.l0c_bytes"},
                                                           {"AICoreSpec.l1_size", "memory.l1_bytes"},
                                                           {"AICoreSpec.ub_size", "memory.ub_bytes"},
                                                           {"AICoreSpec.bt_size", "memory.bias_table_bytes"},
                                                           {"AICoreSpec.cube_freq", "core.clock_mhz"},
                                                           {"Intrinsic_fix_pipe_l0c2out", "intrinsic.l0c_to_gm"},
                                                           {"Intrinsic_data_move_out2l1_nd2nz", "intrinsic.nd2nz"},
                                                           {"Intrinsic_data_move_l12bt", "intrinsic.l1_to_bias"},
                                                           {"version.SoC_version", "chip.soc_version"},
                                                           {"version.Short_SoC_version", "chip.short_soc"}};
  // What kinds of copies there are: types that one takes, nothing where there is no such copy.
  const bool intrinsic = label == "AICoreintrinsicDtypeMap";
  const auto it = names.find(intrinsic ? key : label + "." + key);
  if (it == names.end() || chip_->values.count(it->second) == 0) return false;
  value = chip_->Text(it->second);
  if (key == "Short_SoC_version" && !value.empty() && value[0] == 'a') {
    value[0] = 'A';  // "ascend910b" is "Ascend910B" in platform files
    if (value.back() == 'b') value.back() = 'B';
  }
  return true;
}

}  // namespace fe

namespace platform_ascendc {

uint32_t PlatformAscendC::GetCoreNumAic() const { return static_cast<uint32_t>(platform_->chip()->Number("core.aic")); }
uint32_t PlatformAscendC::GetCoreNumAiv() const { return static_cast<uint32_t>(platform_->chip()->Number("core.aiv")); }
uint32_t PlatformAscendC::GetCoreNum() const { return GetCoreNumAiv(); }
uint32_t PlatformAscendC::GetCoreNumVector() const { return 0; }

SocVersion PlatformAscendC::GetSocVersion() const {
  const std::string soc = platform_->chip()->Text("chip.short_soc");
  // The documentation: 910_93 answers as 910B does, so that binaries serve both.
  if (soc == "ascend910b" || soc == "ascend910_93") return SocVersion::ASCEND910B;
  if (soc == "ascend310p") return SocVersion::ASCEND310P;
  if (soc == "ascend310b") return SocVersion::ASCEND310B;
  if (soc == "ascend910") return SocVersion::ASCEND910;
  return SocVersion::RESERVED_VERSION;
}

void PlatformAscendC::GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const {
  platform_->GetLocalMemSize(static_cast<fe::LocalMemType>(type), bytes);
  // CANN keeps this much of UB and L1 for itself (platform query documentation: 192 KB - 256 B).
  const uint64_t reserved = platform_->chip()->Number("memory.ub_reserved_bytes");
  if (type == CoreMemType::UB || type == CoreMemType::L1) bytes = bytes > reserved ? bytes - reserved : 0;
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType& type, uint64_t& bytes_per_cycle) const {
  platform_->GetLocalMemBw(static_cast<fe::LocalMemType>(type), bytes_per_cycle);
}

uint32_t PlatformAscendC::CalcTschBlockDim(uint32_t slices, uint32_t aic_cores, uint32_t aiv_cores) const {
  if (aic_cores == 0 || aiv_cores == 0 || aic_cores > aiv_cores) return slices;
  const uint32_t vectors_per_cube = aiv_cores / aic_cores;
  return (slices + vectors_per_cube - 1) / vectors_per_cube;
}

// 16 MiB at the start of the workspace belong to the toolkit on this architecture (kernel entry documentation).
uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const { return 16U * 1024 * 1024; }
uint32_t PlatformAscendC::GetResGroupBarrierWorkSpaceSize() const { return 0; }
uint32_t PlatformAscendC::GetResCubeGroupWorkSpaceSize() const { return 0; }

}  // namespace platform_ascendc
