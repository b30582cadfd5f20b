// The words of the virtual machine: pipes, data types, and one instruction as the core sees it.
// No AscendC names here; the headers under include/ translate AscendC calls into these.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vnpu {

// Execution pipes of an AI core of architecture 2201 (vector core: S, V, MTE2, MTE3; cube core: S,
// MTE1, MTE2, MTE3, M, FIX).
enum class Pipe : uint8_t { S = 0, V, MTE1, MTE2, MTE3, M, FIX, kCount };
constexpr int kPipes = static_cast<int>(Pipe::kCount);
const char* pipe_name(Pipe pipe);

// Local memories of cores. UB is vector cores'; the others are cube cores': L1, the matrix unit's inputs L0A and L0B
// and its results L0C, the table of biases, and the table of the pipe that brings results out.
enum class Memory : uint8_t { UB, L1, L0A, L0B, L0C, BT, FB, kCount };
constexpr int kMemories = static_cast<int>(Memory::kCount);
const char* memory_name(Memory memory);

// Numbered freely; `dtype_of<T>` in include/ascendc/types.h maps C++ types to them.
enum class DType : uint8_t { F32, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64, F64, Bool, C64, I4, None };
constexpr uint32_t dtype_size(DType t) {
  switch (t) {
    case DType::F64:
    case DType::I64:
    case DType::U64:
    case DType::C64:
      return 8;
    case DType::F32:
    case DType::I32:
    case DType::U32:
      return 4;
    case DType::F16:
    case DType::BF16:
    case DType::I16:
    case DType::U16:
      return 2;
    case DType::None:
      return 0;
    default:
      return 1;
  }
}

constexpr uint32_t kBlockBytes = 32;    // one data block: the unit of UB addressing (AscendC programming guide)
constexpr uint32_t kRepeatBytes = 256;  // what the vector unit handles in one repeat
constexpr uint32_t kBlocksPerRepeat = kRepeatBytes / kBlockBytes;
constexpr uint32_t kFractalRows = 16;    // of the matrix unit's tiles; a row of an input's is one data block
constexpr uint32_t kHeldByItself = 10;   // tiles of a result from which on products need no barrier in between
constexpr uint32_t kFractalBytes = 512;  // an input's tile

// One operand of a vector instruction. Strides are in 32-byte blocks, as in AscendC's repeat parameters.
struct Operand {
  void* ptr = nullptr;
  DType dtype = DType::None;
  uint16_t blk_stride = 1;
  uint16_t rep_stride = 8;
};

// A run of equally spaced byte ranges: what an instruction touches in memory.
struct Range {
  uint64_t addr = 0;    // host address of the first piece
  uint32_t bytes = 0;   // bytes per piece
  uint32_t pieces = 1;  // number of pieces
  uint64_t stride = 0;  // bytes from one piece to the next
  uint64_t span() const { return pieces == 0 ? 0 : (pieces - 1) * stride + bytes; }
};

// GM transfer of an MTE instruction, for the bandwidth model.
struct Transfer {
  uint64_t gm_addr = 0;      // canonical device address (see memory.h), not a host pointer
  uint32_t bytes = 0;        // payload bytes moved
  uint32_t bursts = 1;       // separate pieces on the GM side
  uint32_t burst_bytes = 0;  // bytes of one piece
  uint64_t burst_stride = 0;
  uint32_t requests = 1;    // windows of GM that are touched, piece by piece
  uint32_t gm_bytes = 0;    // bytes that these requests occupy in the memory system
  uint32_t pieces = 1;      // that are asked for one by one
  uint32_t same_line = 0;   // of them, those that begin in the line in which the piece before them ended
  uint32_t same_block = 0;  // of these, those that follow it without a gap inside of a block of 32 bytes
  uint32_t padded = 0;      // pieces of one stretch of GM, each filled up to a block with a value
  uint32_t partial = 0;     // of the windows, those that are touched in part (counted for FIX)
  bool write = false;
  bool rearranged = false;    // its rows become tiles on the way in: of these
  uint32_t off_cuts = 0;      //   those that don't begin where requests are cut,
  uint32_t off_requests = 0;  // the windows that they touch,
  uint32_t crossing = 0;      // and those that begin inside of a window and go on into the next one
  bool cached = true;         // false: past L2 (SetL2CacheHint)
};

}  // namespace vnpu
