// Sort32, MrgSort and the full sort made of them. Cycles: asc-devkit, theoretical throughput table, arch 2201: both
// handle 2 elements a cycle. Scores that are NaN come first (the reference doesn't say where they go).
#include "vnpu/sort.h"

#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kGroup = 32;
constexpr uint64_t kRecordBytes = 8;

struct ScoreRecord {
  float score;
  uint64_t bytes;  // as in memory
};

bool before(const ScoreRecord& a, const ScoreRecord& b) {
  if (std::isnan(a.score)) return !std::isnan(b.score);
  return a.score > b.score;
}

ScoreRecord record_of(uint64_t bytes, DType dtype) {
  float score =
      dtype == DType::F16 ? half_to_float(static_cast<uint16_t>(bytes)) : bits_to_float(static_cast<uint32_t>(bytes));
  return {score, bytes};
}

ScoreRecord record_at(const void* list, uint64_t i, DType dtype) {
  uint64_t bytes;
  std::memcpy(&bytes, static_cast<const uint8_t*>(list) + i * kRecordBytes, kRecordBytes);
  return record_of(bytes, dtype);
}

void check_score_dtype(const LocalCall& call, DType t) {
  if (t != DType::F32 && t != DType::F16) unsupported_dtype(call.api, t, call.pc);
}

// The scores of a repeat start 128 bytes (float) or 64 bytes (half) after those of the one before.
void sort_groups(LocalCall& call, void* dst, const void* scores, const uint32_t* indices, DType dtype,
                 uint32_t repeat) {
  call.require(repeat <= 255, "repeatTime " + std::to_string(repeat) + " is above 255");
  uint32_t size = dtype_size(dtype), n = repeat * kGroup;
  call.read(scores, uint64_t(n) * size, "scores");
  call.read(indices, uint64_t(n) * 4, "indices");
  call.write(dst, n * kRecordBytes, "destination");
  for (uint32_t r = 0; r < repeat; r++) {
    ScoreRecord group[kGroup];
    for (uint32_t i = 0; i < kGroup; i++) {
      uint32_t at = r * kGroup + i;
      uint64_t score = size == 2 ? static_cast<const uint16_t*>(scores)[at] : static_cast<const uint32_t*>(scores)[at];
      group[i] = record_of(uint64_t(indices[at]) << 32 | score, dtype);
    }
    std::stable_sort(group, group + kGroup, before);
    for (uint32_t i = 0; i < kGroup; i++)
      std::memcpy(static_cast<uint8_t*>(dst) + (r * kGroup + i) * kRecordBytes, &group[i].bytes, kRecordBytes);
  }
  call.issue("Sort32", DType::None, n);
}

uint32_t lists_of(const LocalCall& call, const MergeLists& m) {
  call.require(m.valid == 3 || m.valid == 7 || m.valid == 15,
               "validBit " + std::to_string(m.valid) + " is not 3, 7 or 15");
  const uint32_t lists = m.valid == 3 ? 2 : m.valid == 7 ? 3 : 4;
  for (uint32_t i = 0; i < lists; i++)
    call.require(m.length[i] <= 4095, "elementLengths " + std::to_string(m.length[i]) + " is above 4095");
  return lists;
}

// Repeats have documented conditions; where they don't hold, repeats have no effect.
uint32_t merges_of(const LocalCall& call, const MergeLists& m, uint32_t lists) {
  call.require(m.repeat <= 255, "repeatTimes " + std::to_string(m.repeat) + " is above 255");
  if (m.repeat <= 1) return m.repeat;
  if (lists != 4 || m.stop_when_exhausted) return 1;
  for (uint32_t i = 1; i < 4; i++) {
    const bool follows = m.list[i] == byte_at(m.list[i - 1], m.length[0] * kRecordBytes);
    if (m.length[i] != m.length[0] || !follows) return 1;
  }
  return m.repeat;
}

// One repeat of a merge: the lists that begin `offset` bytes behind those of the call, and how far they are taken.
struct Merging {
  const MergeLists& m;
  const uint32_t lists;
  const uint64_t offset;
  const DType dtype;
  uint32_t at[4] = {0, 0, 0, 0};

  // Takes the first of all lists' next records; false when there is none, or a list is exhausted and that ends it.
  bool take(ScoreRecord& first) {
    uint32_t best = lists;
    for (uint32_t i = 0; i < lists; i++) {
      if (at[i] >= m.length[i]) {
        if (m.stop_when_exhausted) return false;
        continue;
      }
      const ScoreRecord candidate = record_at(byte_at(m.list[i], offset), at[i], dtype);
      if (best == lists || before(candidate, first)) best = i, first = candidate;
    }
    if (best == lists) return false;
    at[best]++;
    return true;
  }
};

void merge(LocalCall& call, void* dst, const MergeLists& m, DType dtype) {
  const uint32_t lists = lists_of(call, m), repeat = merges_of(call, m, lists);
  uint64_t total = 0, taken = 0;
  for (uint32_t i = 0; i < lists; i++) total += m.length[i];
  const uint64_t step = total * kRecordBytes;
  for (uint32_t i = 0; i < lists; i++)
    call.read(m.list[i], m.length[i] * kRecordBytes, "source list", kRecordBytes, repeat, step);
  for (uint32_t r = 0; r < repeat; r++) {
    Merging merging{m, lists, r * step, dtype};
    uint8_t* out = static_cast<uint8_t*>(dst) + r * step;
    ScoreRecord next{0, 0};
    for (; merging.take(next); out += kRecordBytes, taken++) {
      call.core.check_local({reinterpret_cast<uint64_t>(out), kRecordBytes, 1, 0}, kRecordBytes, call.api, call.pc,
                            "destination");
      std::memcpy(out, &next.bytes, kRecordBytes);
    }
    for (uint32_t i = 0; i < 4; i++) call.core.merged[i] = static_cast<uint16_t>(merging.at[i]);
  }
  call.write(dst, taken * kRecordBytes, "destination");
  call.write_register(Register::Merged);
  call.issue("MrgSort", DType::None, taken);
}

void copy(LocalCall& call, void* dst, const void* src, uint64_t bytes) {
  call.read(src, bytes, "sorted list");
  call.write(dst, bytes, "sorted list");
  std::memmove(dst, src, bytes);
  call.issue("Copy", DType::None, static_cast<double>((bytes + kRepeatBytes - 1) / kRepeatBytes));
}

uint8_t* records_at(void* p, uint64_t records) { return static_cast<uint8_t*>(p) + records * kRecordBytes; }

}  // namespace

void sort32(void* dst, const void* scores, const uint32_t* indices, DType dtype, uint32_t repeat) {
  LocalCall call("Sort32", VNPU_PC);
  check_score_dtype(call, dtype);
  if (repeat) sort_groups(call, dst, scores, indices, dtype, repeat);
}

void merge_sort(void* dst, const MergeLists& lists, DType dtype) {
  LocalCall call("MrgSort", VNPU_PC);
  check_score_dtype(call, dtype);
  if (lists.repeat) merge(call, dst, lists, dtype);
}

uint16_t merged(uint32_t index) {
  core().read_register(Register::Merged, "GetMrgSortResult", VNPU_PC);
  return core().merged[index];
}

uint16_t merged_just_now(uint32_t index) {
  core().scalar(ScalarKind::Cycle);
  return core().merged[index];
}

// Groups of 32, then four lists to one until a single list is left; between the rounds the result is copied to `work`.
void sort_all(void* dst, const void* scores, const uint32_t* indices, void* work, DType dtype, uint32_t repeat) {
  LocalCall call("Sort", VNPU_PC);
  check_score_dtype(call, dtype);
  if (repeat == 0) return;
  sort_groups(call, dst, scores, indices, dtype, repeat);
  uint32_t total = repeat * kGroup;
  call.core.barrier(Pipe::V);
  copy(call, work, dst, total * kRecordBytes);
  for (uint32_t length = kGroup; length < total; length *= 4) {
    call.core.barrier(Pipe::V);
    uint32_t full = total / (4 * length);
    MergeLists m;
    for (uint32_t i = 0; i < 4; i++) m.length[i] = static_cast<uint16_t>(length);
    for (uint32_t i = 0; i < 4; i++) m.list[i] = records_at(work, i * length);
    m.repeat = full;
    if (full) merge(call, dst, m, dtype);
    call.core.barrier(Pipe::V);
    uint32_t done = full * 4 * length, rest = total - done;
    if (rest > length) {
      uint32_t lists = (rest + length - 1) / length;
      m.valid = lists == 2 ? 3 : lists == 3 ? 7 : 15;
      m.repeat = 1;
      for (uint32_t i = 0; i < lists; i++) m.list[i] = records_at(work, done + i * length);
      m.length[lists - 1] = static_cast<uint16_t>(rest - (lists - 1) * length);
      merge(call, records_at(dst, done), m, dtype);
    } else if (rest) {
      copy(call, records_at(dst, done), records_at(work, done), rest * kRecordBytes);
    }
    call.core.barrier(Pipe::V);
    copy(call, work, dst, total * kRecordBytes);
  }
  call.core.barrier(Pipe::V);  // what comes next is ordered (dav_c220, DoFullSort)
}

}  // namespace vnpu
