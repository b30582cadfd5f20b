// platform_ascendc::PlatformAscendC: the chip as tiling functions see it.
#pragma once
#include <cstdint>

#include "platform/soc_spec.h"
#include "platform/platform_infos_def.h"

namespace platform_ascendc {

enum class CoreMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, FB = 7, BT = 8, RESERVED };
enum class SocVersion {
  ASCEND910 = 0,
  ASCEND910B,
  ASCEND310P,
  ASCEND310B,
  ASCEND910_93,
  ASCEND950,
  ASCEND910_95 = ASCEND950,
  KIRINX90,
  KIRIN9030,
  RESERVED_VERSION = 99999
};

class PlatformAscendC {
 public:
  PlatformAscendC() = delete;
  explicit PlatformAscendC(fe::PlatFormInfos* platform) : platform_(platform) {}

  uint32_t GetCoreNum() const;  // vector cores on chips with separate cube and vector cores
  uint32_t GetCoreNumAic() const;
  uint32_t GetCoreNumAiv() const;
  uint32_t GetCoreNumVector() const;  // extra vector cores of 310P; 0 elsewhere
  SocVersion GetSocVersion() const;
  NpuArch GetCurNpuArch() const { return NpuArch::DAV_2201; }  // the only one that is modelled
  // Bytes; of the unified buffer and L1 the part the toolkit reserves is not counted.
  void GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const;
  void GetCoreMemBw(const CoreMemType& type, uint64_t& bytes_per_cycle) const;
  uint32_t CalcTschBlockDim(uint32_t slices, uint32_t aic_cores, uint32_t aiv_cores) const;
  uint32_t CalcTschNumBlocks(uint32_t slices, uint32_t aic_cores, uint32_t aiv_cores) const {
    return CalcTschBlockDim(slices, aic_cores, aiv_cores);
  }
  uint32_t GetLibApiWorkSpaceSize() const;  // 16 MiB on this architecture
  uint32_t GetResGroupBarrierWorkSpaceSize() const;
  uint32_t GetResCubeGroupWorkSpaceSize() const;

 private:
  fe::PlatFormInfos* platform_;
};

// For programs that launch kernels themselves: the chip called `name` ("Ascend910B2"), by default ASCENDOPT_CHIP's,
// else Ascend910B2. Null when there is no such chip.
class PlatformAscendCManager {
 public:
  static PlatformAscendC* GetInstance(const char* name = nullptr);
};

}  // namespace platform_ascendc
