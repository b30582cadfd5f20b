// The high-level matrix multiplication, as the AscendC header asks for it: blocks of C are computed one after another
// from blocks of A and B that wait in L1. What a kernel calls becomes copies, loads, products and flags of vnpu/cube.h
// and vnpu/device.h on the core it runs on.
#pragma once
#include <cstdint>

#include "types.h"

namespace vnpu {

enum class MatrixLayout : uint8_t { Rows, Tiles, AlignedRows };  // rows that begin at multiples of 32 bytes

// One of A, B, C and the bias.
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::None;
  MatrixLayout layout = MatrixLayout::Rows;
  bool in_l1 = false;     // there already, as tiles; C: stays where the kernel wants it
  bool in_ub = false;     // of a vector core: its cube core gets it through global memory
  uint64_t brought = 0;   // bytes that lie there
  int32_t pitch = 0;      // elements from row to row where that isn't the whole matrix's
  bool may_turn = false;  // room is made for both directions
  bool turned = false;    // A lies as [k, m], B as [n, k]
  bool cached = true;     // through L2
};

// How the work is cut; elements, blocks, buffers. Documented as TCubeTiling's fields of like names.
struct MatmulCut {
  int32_t m = 0, n = 0, k = 0;                               // of this core
  int32_t base_m = 0, base_n = 0, base_k = 0;                // of one product
  int32_t depth_a = 1, depth_b = 1;                          // blocks that fit in L1
  int32_t step_m = 1, step_n = 1, step_ka = 1, step_kb = 1;  // blocks that are copied at once
  int32_t order = 0;                                         // 0: along m first
  int32_t buffers_a = 2, buffers_b = 2, buffers_c = 1;       // in L0A, L0B, L0C
  bool has_bias = false;
};

// How the matrices of a batch lie. S (rows) and D (columns) are axes of one matrix, B, N and G count them; the names
// say in which order the axes lie. BNGS1S2 and Normal: matrix behind matrix.
enum class BatchLayout : uint8_t { None, BSNGD, SBNGD, BNGS1S2, Normal };
struct BatchAxes {
  BatchLayout layout = BatchLayout::None;
  int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
};
// What L1 has room for: all of a call's matrices of A and B, some of them, or blocks of one.
enum class BatchRoom : uint8_t { All, Some, Blocks };
struct MatmulBatches {
  BatchAxes a, b, c;
  BatchRoom room = BatchRoom::All;
  int32_t most = 0;      // matrices of C that one call makes
  bool own_bias = true;  // each matrix of C has a bias of its own
};

// One call: how many matrices of A and B, the elements from one to the next (0: as the layout says), and how it ends.
struct BatchCall {
  int32_t count_a = 0, count_b = 0;
  uint32_t stride_a = 0, stride_b = 0;
  bool in_sequence = false, add = false;
};

struct MatmulConfiguration {
  bool packets = false;              // copies of step x step blocks (MDL); otherwise block by block (Norm)
  bool unit_flag = false;            // hands results over by unit flags where all blocks are computed at once
  bool split = false;                // float tiles of C get 8 columns
  bool partial = false;              // a block is one product's alone: products along k follow each other
  bool sparse = false;               // of B two in four elements along k are there, each row with their places
  bool shared = false;               // the vector cores of a group ask for one product (IBSHARE of A and B)
  int32_t triangle = 0;              // 1: blocks below the diagonal are left out, -1: above
  bool constant_tiling = false;      // known when the kernel is compiled
  uint32_t scalar_instructions = 0;  // that a product costs beside what is issued
};

// A kernel's own copy of a block to L1: which (along m or n, and along k; A's first along m), how much of each axis,
// and the two words the kernel has set.
using MatmulCopyIn = void (*)(void* to, uint64_t bytes, const void* from, int32_t row, int32_t column, int32_t rows,
                              int32_t columns, uint64_t tiling, uint64_t data);

// A kernel's own way out of L0C for a block, whose sums have 4 bytes: blocks of 16 columns, blocks of 32 bytes of all
// rows of these, and where the next ones lie (C in rows: elements from one row to the next; in tiles: blocks of 32
// bytes).
struct MatmulBlockOut {
  uint16_t column_blocks, burst_blocks;
  uint32_t stride;
  uint16_t columns;  // 0 where C lies in tiles
  bool unit_flag;
  int32_t row, column;  // which block
};
using MatmulCopyOut = void (*)(void* to, const void* from, uint64_t bytes, const MatmulBlockOut& block, uint64_t tiling,
                               uint64_t data);

// Blocks of one operand that wait in L1. `outer` and `inner` say which: along m or n, and along k.
struct MatmulPackets {
  static constexpr uint32_t kMost = 64;
  uint8_t* base = nullptr;
  uint64_t capacity = 0, bytes = 0;            // of all that was allocated, and of one
  uint32_t count = 0, next = 0, used = kMost;  // the one that is filled next, and the one that is read
  uint32_t coming = kMost;                     // the one that is under way, and that nobody has waited for
  int32_t outer[kMost], inner[kMost];
};

// What a kernel has said of the sizes beside the tiling; -1: nothing.
struct MatmulOwn {
  int32_t m = -1, n = -1, k = -1;  // of this core
  bool whole = false;              // of the whole matrices
};

// What a kernel has asked for.
struct MatmulSetup {
  // The place of the object of the cube core's program that has the tiling; negative: the tiling is here.
  int32_t registered = -1;
  bool tiled = true;  // the core that asks has a tiling, too
  MatmulOwn own;
  MatmulConfiguration configuration;
  MatmulCut cut;
  MatmulBatches batches;
  Matrix a, b, c, bias;
  int32_t org_m = 0, org_n = 0, org_ka = 0, org_kb = 0, org_kc = 0;  // of the whole matrices
  bool with_bias = false;
  uint64_t word = 0;             // of quantization, for all columns
  const void* words = nullptr;   // one for each column, in global memory
  const void* places = nullptr;  // of a sparse B's elements, in global memory
  MatmulCopyIn copy_a = nullptr, copy_b = nullptr;
  MatmulCopyOut copy_out = nullptr;
  uint64_t user_tiling = 0, user_data = 0;
  uint8_t atomic = 0;         // how blocks meet what is there: AtomicOp
  void* workspace = nullptr;  // in global memory, for blocks that are computed ahead
  // Count what was set: new matrices are not those that wait in L1, and begin with their first block.
  uint32_t version_a = 0, version_b = 0;
};

// All that a kernel's object remembers.
struct Matmul : MatmulSetup {
  uint32_t seen_a = 0, seen_b = 0;  // versions of what waits in L1
  MatmulPackets packets_a, packets_b;
  uint8_t *bias_slot = nullptr, *words_slot = nullptr;  // in L1
  uint64_t bias_capacity = 0;
  uint8_t* batch_room = nullptr;  // in L1, for whole matrices of A and B
  uint64_t batch_capacity = 0;
  const uint8_t* batch_halves[4] = {};  // of A and of B, as the latest call divided it
  uint8_t* result = nullptr;            // in L0C
  uint32_t result_bytes = 0;            // of one buffer
  uint32_t result_buffers = 0;
  uint32_t at = 0;              // blocks that have been computed
  int32_t row = 0, column = 0;  // of the latest block
  uint8_t buffer = 0;           // of L0C it is in
  bool ready = false;           // it has not been brought out
  int from = -1;                // the core that asked last, where a cube core serves several
  uint32_t taken = 0;           // of the blocks that were computed ahead
  uint32_t unanswered = 0;      // calls that nobody has waited for
};

// Each of them does its work on the cube core that calls, or asks the cube core of the vector core's group to.

// Of a vector core, an operand in its Unified Buffer: goes to global memory at once, for the cube core.
enum class MatmulArea { C, A, B, Bias };
void matmul_bring(Matmul& m, MatmulArea which, const void* from, uint64_t bytes, const char* api);
// New sizes and cut: memory is divided anew.
void matmul_init(Matmul& m, const char* api);
// Another object's turn may come.
void matmul_end(const Matmul& m);
// The next block: false when all are done. With `add` it is added to what the block before has left in L0C; `into` (may
// be null): where in L0C the kernel wants it.
bool matmul_next(Matmul& m, bool add, void* into, const char* api);
// Brings the latest block to `to` in global memory. `in_sequence`: a block by itself; otherwise to its place in C.
void matmul_out(Matmul& m, void* to, bool in_sequence, const char* api);
// Brings it to the Unified Buffer: a block by itself, rows begin at multiples of 32 bytes.
void matmul_out_local(Matmul& m, void* to, const char* api);
// All blocks, one after another; without `wait`, matmul_wait waits for them where `later` says that it will.
void matmul_all(Matmul& m, void* to, bool wait, bool later, const char* api);
// To the Unified Buffer: `bytes` of C as it lies in global memory.
void matmul_all_local(Matmul& m, void* to, uint64_t bytes, const char* api);
void matmul_wait(Matmul& m);
// All blocks to the workspace, ahead of those who take them: where the next one lies when it is there.
bool matmul_start(Matmul& m, const char* api);
void* matmul_take(Matmul& m, const char* api);
// With `wait`, V waits for what is brought; otherwise the kernel says so by matmul_local_is_there.
void matmul_take_local(Matmul& m, void* to, bool wait, const char* api);
void matmul_local_is_there();
// What lies in global memory, once more.
void matmul_copy_local(void* to, const void* from, uint64_t bytes, const char* api);
// Whether cube cores round float inputs first, and whether those halfway go towards zero; not of a mixed kernel.
void matmul_short_floats(bool on, bool ties_to_zero, const char* api);
// Products of a batch, all to their places in C; as matmul_all waits, or to the Unified Buffer, which has room for
// `bytes`.
void matmul_batch(Matmul& m, void* to, const BatchCall& call, bool wait, bool later, const char* api);
void matmul_batch_local(Matmul& m, void* to, uint64_t bytes, const BatchCall& call, const char* api);
// `loops` batches, one behind the other, to the workspace. Without `wait` and `later`, matmul_take_batch waits for the
// next of them and tells where it lies; matmul_take_batch_local brings it to the Unified Buffer.
void matmul_batches(Matmul& m, uint32_t loops, const BatchCall& call, bool wait, bool later, const char* api);
void* matmul_take_batch(Matmul& m, const BatchCall& call, const char* api);
void matmul_take_batch_local(Matmul& m, void* to, const BatchCall& call, const char* api);
// Of a vector core: whether its objects' products are its cube core's.
bool matmul_is_asked();
// What a vector core can't do with an object that has no tiling there ends the launch.
void matmul_needs_tiling(const Matmul& m, const char* api);
// Of a cube core: whether it has vector cores to work for; then its program registers its objects one by one, and does
// what the vector cores ask for until they have ended.
bool matmul_may_serve();
void matmul_offer(const MatmulSetup& setup);
void matmul_serve();

}  // namespace vnpu
