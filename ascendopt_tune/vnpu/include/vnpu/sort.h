// Sorting in local memory: what include/ascendc/vec_sort.h needs of libvnpu.so.
//
// A sorted list is a run of 8-byte records: the score (float, or half with 2 unused bytes behind it), then its index.
#pragma once
#include "device.h"

namespace vnpu {

// Sorts every 32 scores with their indices, descending.
void sort32(void* dst, const void* scores, const uint32_t* indices, DType dtype, uint32_t repeat);

struct MergeLists {
  const void* list[4] = {};
  uint16_t length[4] = {};  // records
  uint16_t valid = 15;      // bit i: list i takes part; 3, 7 or 15
  bool stop_when_exhausted = false;
  uint32_t repeat = 1;
};
// Merges 2 to 4 sorted lists; with equal scores the earlier list comes first.
void merge_sort(void* dst, const MergeLists& lists, DType dtype);
// Records the last merge took from list `index`.
uint16_t merged(uint32_t index);
// The same inside the API that merges: a kernel has no place for a flag in between.
uint16_t merged_just_now(uint32_t index);

// Sorts repeat * 32 scores completely; `work` takes as much as dst.
void sort_all(void* dst, const void* scores, const uint32_t* indices, void* work, DType dtype, uint32_t repeat);

}  // namespace vnpu
