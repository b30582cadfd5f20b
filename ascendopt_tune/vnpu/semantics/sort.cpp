// Sort32, MrgSort and the full sort made of them. Cycles: asc-devkit, theoretical throughput table, arch 2201: both
// handle 2 elements a cycle. Scores that are NaN come first (the reference doesn't say where they go).
#include "vnpu/sort.h"

#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kGroup = 32;
constexpr uint64_t kRecordBytes = 8;

struct Record {
  float score;
  uint64_t bytes;  // as in memory
};

bool before(const Record& a, const Record& b) {
  if (std::isnan(a.score)) return !std::isnan(b.score);
  return a.score > b.score;
}

Record record_of(uint64_t bytes, DType dtype) {
  float score =
      dtype == DType::F16 ? half_to_float(static_cast<uint16_t>(bytes)) : bits_to_float(static_cast<uint32_t>(bytes));
  return {score, bytes};
}

Record record_at(const void* list, uint64_t i, DType dtype) {
  uint64_t bytes;
  std::memcpy(&bytes, static_cast<const uint8_t*>(list) + i * kRecordBytes, kRecordBytes);
  return record_of(bytes, dtype);
}

void check_dtype(const LocalCall& call, DType t) {
  if (t != DType::F32 && t != DType::F16) unsupported_dtype(call.api, t, call.pc);
}

// The scores of a repeat start 128 bytes (float) or 64 bytes (half) after those of the one before.
void sort32(LocalCall& call, void* dst, const void* scores, const uint32_t* indices, DType dtype, uint32_t repeat) {
  call.require(repeat <= 255, "repeatTime " + std::to_string(repeat) + " is above 255");
  uint32_t size = dtype_size(dtype), n = repeat * kGroup;
  call.read(scores, uint64_t(n) * size, "scores");
  call.read(indices, uint64_t(n) * 4, "indices");
  call.write(dst, n * kRecordBytes, "destination");
  for (uint32_t r = 0; r < repeat; r++) {
    Record group[kGroup];
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

void merge(LocalCall& call, void* dst, const MergeLists& m, DType dtype) {
  call.require(m.valid == 3 || m.valid == 7 || m.valid == 15,
               "validBit " + std::to_string(m.valid) + " is not 3, 7 or 15");
  call.require(m.repeat <= 255, "repeatTimes " + std::to_string(m.repeat) + " is above 255");
  uint32_t lists = m.valid == 3 ? 2 : m.valid == 7 ? 3 : 4;
  uint64_t total = 0;
  for (uint32_t i = 0; i < lists; i++) {
    call.require(m.length[i] <= 4095, "elementLengths " + std::to_string(m.length[i]) + " is above 4095");
    total += m.length[i];
  }
  uint32_t repeat = m.repeat;
  if (repeat > 1) {  // documented conditions for repeats; otherwise they have no effect
    bool same = lists == 4 && !m.stop_when_exhausted;
    for (uint32_t i = 1; i < 4 && same; i++)
      same = m.length[i] == m.length[0] && static_cast<const uint8_t*>(m.list[i]) ==
                                               static_cast<const uint8_t*>(m.list[i - 1]) + m.length[0] * kRecordBytes;
    if (!same) repeat = 1;
  }
  uint64_t step = total * kRecordBytes, taken = 0;
  for (uint32_t i = 0; i < lists; i++)
    call.read(m.list[i], m.length[i] * kRecordBytes, "source list", kRecordBytes, repeat, step);
  for (uint32_t r = 0; r < repeat; r++) {
    uint32_t at[4] = {0, 0, 0, 0};
    uint8_t* out = static_cast<uint8_t*>(dst) + r * step;
    auto exhausted = [&](uint32_t i) { return at[i] >= m.length[i]; };
    uint64_t n = 0;
    while (n < total) {
      uint32_t best = 4;
      Record first{0, 0};
      bool stop = false;
      for (uint32_t i = 0; i < lists; i++) {
        if (exhausted(i)) {
          stop = stop || m.stop_when_exhausted;
          continue;
        }
        Record candidate = record_at(static_cast<const uint8_t*>(m.list[i]) + r * step, at[i], dtype);
        if (best == 4 || before(candidate, first)) best = i, first = candidate;
      }
      if (stop) break;
      Range next{reinterpret_cast<uint64_t>(out) + n * kRecordBytes, kRecordBytes, 1, 0};
      call.core.check_local(next, kRecordBytes, call.api, call.pc, "destination");
      std::memcpy(out + n++ * kRecordBytes, &first.bytes, kRecordBytes);
      at[best]++;
    }
    taken += n;
    for (uint32_t i = 0; i < 4; i++) call.core.merged[i] = static_cast<uint16_t>(at[i]);
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

uint8_t* at(void* p, uint64_t records) { return static_cast<uint8_t*>(p) + records * kRecordBytes; }

}  // namespace

void sort32(void* dst, const void* scores, const uint32_t* indices, DType dtype, uint32_t repeat) {
  LocalCall call("Sort32", VNPU_PC);
  check_dtype(call, dtype);
  if (repeat) sort32(call, dst, scores, indices, dtype, repeat);
}

void merge_sort(void* dst, const MergeLists& lists, DType dtype) {
  LocalCall call("MrgSort", VNPU_PC);
  check_dtype(call, dtype);
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
  check_dtype(call, dtype);
  if (repeat == 0) return;
  sort32(call, dst, scores, indices, dtype, repeat);
  uint32_t total = repeat * kGroup;
  call.core.barrier(Pipe::V);
  copy(call, work, dst, total * kRecordBytes);
  for (uint32_t length = kGroup; length < total; length *= 4) {
    call.core.barrier(Pipe::V);
    uint32_t full = total / (4 * length);
    MergeLists m;
    for (uint32_t i = 0; i < 4; i++) m.length[i] = static_cast<uint16_t>(length);
    for (uint32_t i = 0; i < 4; i++) m.list[i] = at(work, i * length);
    m.repeat = full;
    if (full) merge(call, dst, m, dtype);
    uint32_t done = full * 4 * length, rest = total - done;
    if (rest > length) {
      uint32_t lists = (rest + length - 1) / length;
      m.valid = lists == 2 ? 3 : lists == 3 ? 7 : 15;
      m.repeat = 1;
      for (uint32_t i = 0; i < lists; i++) m.list[i] = at(work, done + i * length);
      m.length[lists - 1] = static_cast<uint16_t>(rest - (lists - 1) * length);
      merge(call, at(dst, done), m, dtype);
    } else if (rest) {
      copy(call, at(dst, done), at(work, done), rest * kRecordBytes);
    }
    call.core.barrier(Pipe::V);
    copy(call, work, dst, total * kRecordBytes);
  }
}

}  // namespace vnpu
