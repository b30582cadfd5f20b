// Broadcast, Sum, Mean, SoftMax: one body each, with the summed cost of the vector instructions they are documented to
// consist of (asc-devkit, implementation notes of the API pages). How many there are is an estimate: one for every 255
// repeats.
#include "vnpu/adv_compose.h"

#include <vector>

#include "composite.h"
#include "local_call.h"
#include "tree_sum.h"

namespace vnpu {
namespace {

template <typename T>
void row_sum_as(void* dst, const void* src, uint32_t outer, uint32_t inner, uint32_t n, bool mean, bool in_float) {
  T scale;
  scale = 1.0f / static_cast<float>(static_cast<int32_t>(n));
  std::vector<float> row(n + 128);
  for (uint32_t r = 0; r < outer; r++) {
    const T* from = static_cast<const T*>(src) + uint64_t(r) * inner;
    for (uint32_t i = 0; i < n; i++) row[i] = static_cast<float>(from[i]);
    float sum = in_float ? sum_of<float>(row, n) : sum_of<T>(row, n);
    if (mean) sum *= in_float ? 1.0f / static_cast<float>(static_cast<int32_t>(n)) : static_cast<float>(scale);
    static_cast<T*>(dst)[r] = sum;
  }
}

void fill_block(void* p, uint32_t row, DType t, float v) {
  uint32_t per_block = kBlockBytes / dtype_size(t);
  for (uint32_t i = 0; i < per_block; i++) store_float(p, uint64_t(row) * per_block + i, t, v);
}

}  // namespace

void* local_rest() { return core().local_rest(); }
uint32_t local_rest_bytes() { return core().local_rest_bytes(); }

namespace {

// How the instructions of Broadcast get from `in` to `out`: what the values are, and what they cost.
void copy_all(uint8_t* out, const uint8_t* in, uint64_t bytes, Composite& cost) {
  std::memmove(out, in, bytes);
  cost.add("Copy", repeats_of(bytes, 1));
}

void repeat_row(uint8_t* out, const uint8_t* in, uint32_t rows, uint32_t columns, uint32_t size, Composite& cost) {
  const uint64_t row_bytes = uint64_t(columns) * size;
  std::memmove(out, in, row_bytes);
  for (uint32_t r = 1; r < rows; r++) std::memcpy(out + r * row_bytes, out, row_bytes);
  cost.add("Copy", rows * repeats_of(columns, size));
}

void repeat_elements(uint8_t* out, const uint8_t* in, uint32_t rows, uint32_t columns, uint32_t size, Composite& cost) {
  const uint64_t row_bytes = uint64_t(columns) * size;
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t c = 0; c < columns; c++) std::memcpy(out + r * row_bytes + c * size, in + uint64_t(r) * size, size);
  // Every element to a block (Brcb), blocks to rows (Copy); rows that don't fill blocks are compacted (GatherMask).
  const uint64_t padded = (row_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  cost.add("Brcb", repeats_of(uint64_t(rows) * kBlockBytes, 1));
  cost.add("Copy", rows * repeats_of(padded, 1));
  if (padded != row_bytes) cost.add("GatherMask", rows * repeats_of(padded, 1));
}

}  // namespace

namespace {

// Bytes that Broadcast needs of its temporary memory, and the most it uses (asc-devkit, broadcast_v220_impl.h and
// broadcast_common_impl.h): as many rows at a time as fit, a block for each of a block's number of elements at least,
// and whole blocks of those rows where they don't end with one. 8-bit numbers are converted to half on the way.
struct Temporary {
  uint64_t least = 0, most = 0;
};
Temporary of_broadcast(uint32_t size, uint32_t rows, uint32_t columns, int axis, bool copies) {
  const uint32_t wide = std::max(size, 2u), per_block = kBlockBytes / wide;
  const auto blocks = [&](uint64_t elements) { return (elements + per_block - 1) / per_block * kBlockBytes; };
  Temporary t;
  if (size == 1) {
    const uint64_t source = copies ? uint64_t(rows) * columns : axis == 0 ? columns : rows;
    t.least = blocks(source) + blocks(uint64_t(rows) * columns);
  }
  t.most = t.least;
  const bool one = (axis == 0 ? columns : rows) == 1;
  if (copies || one) return t;
  if (axis == 0) {
    t.least += kBlockBytes;
    t.most += kBlockBytes;
    return t;
  }
  const uint64_t row = kBlockBytes + (columns % per_block ? blocks(columns) : 0);
  t.least += per_block * row;
  t.most += (rows + per_block - 1) / per_block * per_block * row;
  return t;
}

}  // namespace

void broadcast(void* dst, const void* src, void* work, uint64_t work_bytes, DType dtype, const Broadcast& b) {
  const auto [rows, columns, axis, copies] = b;
  LocalCall call("Broadcast", VNPU_PC);
  if (dtype != DType::I8 && dtype != DType::U8 && dtype != DType::F16 && dtype != DType::F32)
    unsupported_dtype(call.api, dtype, call.pc);
  uint32_t size = dtype_size(dtype);
  uint64_t bytes = uint64_t(rows) * columns * size, row_bytes = uint64_t(columns) * size;
  if (bytes == 0) return;
  call.require(copies || axis == 1 || rows == 1 || row_bytes % kBlockBytes == 0,
               "srcShape[1] * sizeof(T) = " + std::to_string(row_bytes) + " B has to be a multiple of 32 B for axis 0");
  uint64_t source = copies ? bytes : axis == 0 ? row_bytes : uint64_t(rows) * size;
  call.read(src, source, "source");
  call.write(dst, bytes, "destination");
  const Temporary temporary = of_broadcast(size, rows, columns, axis, copies);
  call.require(work_bytes >= temporary.least,
               "sharedTmpBuffer, or what is left of the Unified Buffer, of " + std::to_string(work_bytes) +
                   " B is too small: " + std::to_string(temporary.least) + " B are the least");
  call.write(work, std::min(work_bytes, temporary.most), "temporary buffer");
  uint8_t* out = static_cast<uint8_t*>(dst);
  const uint8_t* in = static_cast<const uint8_t*>(src);
  Composite cost(call.core);
  if (copies)
    copy_all(out, in, bytes, cost);
  else if (axis == 0)
    repeat_row(out, in, rows, columns, size, cost);
  else
    repeat_elements(out, in, rows, columns, size, cost);
  call.issue(cost.work());
  call.core.barrier(Pipe::V);
  leave_whole_mask(call.core);
}

namespace {

// One step for each row ends without a barrier, several end with one, and with the number of elements of the last in
// the mask register (asc-devkit, sum_common_impl.h). `repeats`: of a row.
void end_sum(Core& core, uint64_t repeats, uint32_t size) {
  leave_whole_mask(core);
  if (repeats <= 1) return;
  core.barrier(Pipe::V);
  while (repeats_of(repeats, size) > 1) repeats = static_cast<uint64_t>(repeats_of(repeats, size));
  core.mask[0] = repeats;
  core.mask[1] = 0;
}

}  // namespace

void row_sum(void* dst, const void* src, void* work, DType dtype, uint32_t outer, uint32_t inner, uint32_t n, bool mean,
             bool in_float, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_float(call, dtype);
  uint32_t size = dtype_size(dtype);
  call.require(n >= 1 && n <= inner, "n = " + std::to_string(n) + " has to be in 1..inner = " + std::to_string(inner));
  call.require(inner * uint64_t(size) % kBlockBytes == 0, "inner * sizeof(T) has to be a multiple of 32 B");
  if (outer == 0) return;
  call.read(src, uint64_t(n) * size, "source", kBlockBytes, outer, uint64_t(inner) * size);
  call.write(dst, uint64_t(outer) * size, "destination");
  uint32_t add_size = in_float ? 4 : size;
  double per_row = repeats_of(n, add_size);
  if (work && per_row > 1)
    call.write(work, in_float ? (inner + uint64_t(per_row)) * 4 : uint64_t(per_row) * size, "sharedTmpBuffer");
  in_float = in_float && dtype == DType::F16;
  if (dtype == DType::F16)
    row_sum_as<f16>(dst, src, outer, inner, n, mean, in_float);
  else
    row_sum_as<float>(dst, src, outer, inner, n, mean, false);
  Composite cost(call.core);
  for (double left = per_row;; left = repeats_of(static_cast<uint64_t>(left), add_size)) {
    cost.add_heads("ReduceRepeatSum", outer, outer * left);
    if (left <= 1) break;
  }
  if (in_float) cost.add("Cast", per_row, 3.0 * outer);  // there and back, and the last step
  if (mean) cost.add("Muls", repeats_of(outer, size));
  call.issue(cost.work());
  if (!mean) end_sum(call.core, static_cast<uint64_t>(per_row), size);
}

namespace {

// Checks and declares the operands of a softmax of at least one element.
void declare_softmax(LocalCall& call, const Softmax& s) {
  const uint32_t size = dtype_size(s.dtype);
  call.require(uint64_t(s.columns) * size % kBlockBytes == 0,
               "the last axis, " + std::to_string(s.columns) + " elements, has to be a multiple of 32 B");
  call.require(s.valid >= 1 && s.valid <= s.columns, "oriSrcK has to be in 1..srcK");
  const uint64_t bytes = uint64_t(s.rows) * s.columns * size, statistics = uint64_t(s.rows) * kBlockBytes;
  call.read(s.src, bytes, "source");
  call.write(s.dst, bytes, "destination");
  if (s.sum) call.write(s.sum, statistics, "sumTensor");
  if (s.max) call.write(s.max, statistics, "maxTensor");
  if (s.work) call.write(s.work, statistics, "sharedTmpBuffer");
}

// Row r. In float whatever the dtype; rounded once at the end.
void softmax_row(const Softmax& s, uint32_t r) {
  const uint64_t first = uint64_t(r) * s.columns;
  float max = load_float(s.src, first, s.dtype), sum = 0;
  for (uint32_t c = 1; c < s.valid; c++) max = std::max(max, load_float(s.src, first + c, s.dtype));
  for (uint32_t c = 0; c < s.valid; c++) sum += std::exp(load_float(s.src, first + c, s.dtype) - max);
  // Padding columns take part in everything but the reductions.
  for (uint32_t c = 0; c < s.columns; c++) {
    const float v = std::exp(load_float(s.src, first + c, s.dtype) - max) / sum;
    store_float(s.dst, first + c, s.dtype, s.log10 ? std::log10(v) : v);
  }
  if (s.max) fill_block(s.max, r, s.statistics, max);
  if (s.sum) fill_block(s.sum, r, s.statistics, sum);
}

}  // namespace

void softmax(const Softmax& s, const char* api) {
  LocalCall call(api, VNPU_PC);
  check_float(call, s.dtype);
  if (s.sum) check_float(call, s.statistics);
  if (s.rows == 0 || s.columns == 0) return;
  declare_softmax(call, s);
  for (uint32_t r = 0; r < s.rows; r++) softmax_row(s, r);
  // Row maximum, Brcb, Sub, Exp, row sum, Brcb, Div; half is converted to float and back.
  double all = repeats_of(uint64_t(s.rows) * s.columns, 4), rows = repeats_of(uint64_t(s.rows) * kBlockBytes, 1);
  Composite cost(call.core);
  for (const char* instruction : {"ReduceDataBlock", "ReduceDataBlockSum"}) cost.add(instruction, all);
  for (const char* instruction : {"ReduceRepeat", "ReduceRepeatSum"}) cost.add(instruction, rows);
  cost.add("Brcb", rows, 2);
  for (const char* instruction : {"Sub", "Exp", "Div"}) cost.add(instruction, all);
  if (s.log10)
    for (const char* instruction : {"Ln", "Muls"}) cost.add(instruction, all);
  if (s.dtype == DType::F16) cost.add("Cast", all, 2);
  call.issue(cost.work());
}

}  // namespace vnpu
