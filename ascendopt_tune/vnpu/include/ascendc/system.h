// Who am I, where does the workspace start, cache control and other system calls of a kernel.
#pragma once
#include "pipe.h"

namespace AscendC {

ASCENDC_INLINE void InitSocState() {}
ASCENDC_INLINE int64_t GetBlockIdx() { return vnpu::block_idx(); }
ASCENDC_INLINE int64_t GetBlockNum() { return vnpu::block_num(); }
ASCENDC_INLINE int64_t GetSubBlockIdx() { return vnpu::sub_block_idx(); }
ASCENDC_INLINE int64_t GetSubBlockNum() { return vnpu::sub_block_num(); }
ASCENDC_INLINE int64_t GetTaskRatio() { return vnpu::sub_block_num(); }
ASCENDC_INLINE int64_t GetTaskRation() { return vnpu::sub_block_num(); }
// The user's part of the workspace is what the kernel gets already.
ASCENDC_INLINE GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }
// The system's part: only handed on, no covered API stores anything there.
ASCENDC_INLINE void SetSysWorkspaceForce(GM_ADDR workspace) { *vnpu::system_workspace() = workspace; }
ASCENDC_INLINE GM_ADDR GetSysWorkSpacePtr() { return static_cast<GM_ADDR>(*vnpu::system_workspace()); }
ASCENDC_INLINE void SetSysWorkspace(GM_ADDR workspace) {
  if (GetSysWorkSpacePtr() == nullptr) SetSysWorkspaceForce(workspace);
}
constexpr uint32_t GetDataBlockSizeInBytes() { return 32; }
ASCENDC_INLINE uint32_t GetUBSizeInBytes() { return vnpu::local_bytes(); }
// Where flags between cores lie on the device; here they lie nowhere.
ASCENDC_INLINE void SetSyncBaseAddr(uint64_t) {}
// Modelled time in ticks of 50 MHz, of this core as if it were alone.
ASCENDC_INLINE int64_t GetSystemCycle() { return vnpu::system_counter(); }
// Values of scalar stores to GM are there at once; who may see them, and what is lost, depends on this
// (core/data_cache.h).
template <typename T, CacheLine entireType = CacheLine::ENTIRE_DATA_CACHE, DcciDst dcciDst = DcciDst::CACHELINE_OUT>
ASCENDC_INLINE void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst) {
  vnpu::scalar_cost(1);
  if constexpr (dcciDst != DcciDst::CACHELINE_UB)
    vnpu::clean_cache(dst.pointer(), entireType == CacheLine::ENTIRE_DATA_CACHE);
}
// Limit of DataCachePreload: the scalar unit waits for the line as GetValue does, where a device goes on.
template <typename T>
ASCENDC_INLINE void DataCachePreload(const GlobalTensor<uint64_t>& src, const T cacheOffset) {
  const uint8_t* from = reinterpret_cast<const uint8_t*>(src.pointer()) + cacheOffset;
  vnpu::scalar_access(from, 1, false, "DataCachePreload");
}
ASCENDC_INLINE int64_t GetICachePreloadStatus() { return 0; }
ASCENDC_INLINE void ICachePreLoad(const int64_t) {}
#define PRELOAD(len) AscendC::ICachePreLoad(len)  // from where the program is

}  // namespace AscendC

// The instruction behind ICachePreLoad, by the name that the device's compiler has for it.
ASCENDC_INLINE void icache_preload(const int64_t) {}

// The registers count groups of cores.
ASCENDC_INLINE int64_t get_block_idx() { return vnpu::group_idx(); }
ASCENDC_INLINE int64_t get_subblockid() { return vnpu::sub_block_idx(); }
ASCENDC_INLINE int64_t get_subblockdim() { return vnpu::sub_block_num(); }
ASCENDC_INLINE int64_t get_block_num() { return vnpu::block_num(); }
template <typename T>
ASCENDC_INLINE void dcci(T* at, uint64_t all, uint64_t = 0) {
  vnpu::clean_cache(at, all != 0);
}
