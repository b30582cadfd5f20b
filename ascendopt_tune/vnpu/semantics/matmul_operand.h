// How the two operands of a multiplication get from global memory to L1 and on to L0A or L0B, block by block.
#pragma once
#include "../core/vector.h"
#include "vnpu/device.h"
#include "vnpu/matmul.h"

namespace vnpu {

using Flag = MultiplicationFlags::Flag;

inline int32_t up(int32_t n, int32_t to) { return (n + to - 1) / to * to; }
inline int32_t pieces_of(int32_t n, int32_t size) { return (n + size - 1) / size; }
inline int32_t rest(int32_t whole, int32_t done, int32_t most) { return std::min(most, whole - done); }

// int4 has two elements in a byte. Columns of a tile fill a block.
inline uint64_t matrix_bytes(DType t, int64_t elements) {
  return static_cast<uint64_t>(elements) * dtype_size(t) / (t == DType::I4 ? 2 : 1);
}
inline int32_t tile_columns(DType t) { return t == DType::I4 ? 64 : 32 / static_cast<int32_t>(dtype_size(t)); }
inline bool multiplies_integers(DType t) { return t == DType::I8 || t == DType::I4; }

// `dst` goes on when what `src` has got so far is complete.
inline void hand_over(Pipe src, Pipe dst, const Flag& flag) {
  set_flag(src, dst, flag.id);
  wait_flag(src, dst, flag.id);
}
// Back, from who uses a buffer to who fills it. Raised again, it is lowered first: nobody had to fill in between.
inline void await_free(Pipe user, Pipe filler, Flag& flag) {
  if (flag.raised) wait_freed_flag(user, filler, flag.id);
  flag.raised = false;
}
inline void set_free(Pipe user, Pipe filler, Flag& flag) {
  await_free(user, filler, flag);
  set_freed_flag(user, filler, flag.id);
  flag.raised = true;
}

// A (outer axis m) or B (outer axis n); the inner axis is k.
class Operand2D {
 public:
  Operand2D(Matmul& m, bool left, const char* api);

  // Divides L1: room for `depth` blocks, or a packet of step x step blocks once or more often. Bytes that are needed;
  // they are taken where they are more than what was taken before.
  uint64_t plan();
  void allocate();
  // What was taken is others' now.
  void drop() { packets_.capacity = 0; }
  // Block (outer, inner) comes to L1, if it isn't there, and is the one to be read.
  void use(int32_t outer, int32_t inner);
  // It comes where there is room beside the one that is read.
  void expect(int32_t outer, int32_t inner);
  // The block of use() goes from there to L0A or L0B at `to`.
  void load(int32_t outer, int32_t inner, uint8_t* to);
  // What waits in L1 is another matrix's.
  void forget();
  // Of a batch: bytes of a whole matrix in L1, and the way there for `count` of them that lie `stride` elements apart.
  uint64_t whole_bytes() const;
  void copy_whole(uint8_t* to, const uint8_t* from, int32_t count, int64_t stride) const;
  // Blocks are loaded from there from now on, a matrix that copy_whole has brought.
  void hold(const uint8_t* at) { held_ = at; }
  // Rows and columns of the whole matrix as it lies in global memory.
  int32_t lying_rows() const { return rows_along_k() ? inner_all_ : outer_all_; }
  int32_t lying_columns() const { return rows_along_k() ? outer_all_ : inner_all_; }
  int32_t blocks_at_once() const { return step_inner_; }
  // Whether rows run along k: then tiles have to be turned on the way to L0.
  bool rows_along_k() const { return left_ == matrix_.turned; }
  // Columns of a product that are really computed: squares of 32 x 32 (int4: 64 x 64) are turned as a whole.
  int32_t outer_tiles(int32_t outer) const;

 private:
  struct Packet {
    uint8_t* at;            // in L1
    int32_t outer, inner;   // its first element in the core's part
    int32_t rows, columns;  // of the matrix as it lies in global memory
    Flag* free;             // raised when it has been read
  };
  int32_t size() const { return static_cast<int32_t>(dtype_size(matrix_.dtype)); }
  uint64_t bytes(int64_t elements) const { return matrix_bytes(matrix_.dtype, elements); }
  int32_t c0() const { return tile_columns(matrix_.dtype); }
  // What rows and columns of a packet are rounded up to in L1.
  int32_t row_unit(bool along_k) const { return along_k && size() == 1 ? c0() : 16; }
  int32_t column_unit(bool along_k) const { return along_k && size() == 4 ? 16 : c0(); }
  uint64_t packet_bytes(bool along_k) const;
  bool sparse() const { return !left_ && m_.configuration.sparse; }
  int64_t pitch() const;
  Packet packet(int32_t outer, int32_t inner, uint32_t slot) const;
  uint32_t slot_of(int32_t outer, int32_t inner) const;  // count: none
  Flag& flag(uint32_t slot, bool filled) const;
  void arrive();
  void bring(int32_t outer, int32_t inner);
  void copy(const Packet& p) const;
  void check_rows() const;
  void copy_places(const Packet& p) const;
  void copy_rows(const Packet& p, const uint8_t* from, int32_t count = 1, int64_t stride = 0) const;
  void copy_tiles(const Packet& p, const uint8_t* from) const;
  void load_plain(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners, uint8_t* to) const;
  void load_sparse(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners, uint8_t* to) const;
  void load_turned_2(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners, uint8_t* to) const;
  void load_turned_squares(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners,
                           uint8_t* to) const;
  void must_begin_a_square(int32_t outer, int32_t side) const;

  Matmul& m_;
  const bool left_;
  const char* const api_;
  Matrix& matrix_;
  MatmulPackets& packets_;
  const int32_t outer_all_, base_outer_, step_outer_, step_inner_;
  const int32_t inner_all_, base_inner_;
  const uint8_t* held_ = nullptr;
};

}  // namespace vnpu
