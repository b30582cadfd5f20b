// One block after another of a matrix multiplication on one cube core: which is next, its products, and its way out.
#pragma once
#include <algorithm>
#include <string>

#include "matmul_operand.h"

namespace vnpu {

// While it lives, what happens on the core is the kernel's call.
class Calling {
 public:
  explicit Calling(const void* pc) : core_(core()), before_(core_.caller) {
    if (before_ == nullptr) core_.caller = pc;
  }
  ~Calling() { core_.caller = before_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  Core& core_;
  const void* before_;
};

class Multiplication {
 public:
  Multiplication(Matmul& m, const char* api)
      : m_(m),
        cut_(m.cut),
        api_(api),
        core_(core()),
        flags_(core_.multiplication),
        a_(m, true, api),
        b_(m, false, api) {}

  void init();
  // What was set since the last call counts from now on.
  void notice_changes();
  // To the next block, without computing it.
  bool go_on();
  bool next(bool add, void* into, bool by_unit_flags);
  // Of a block by itself whose rows begin at multiples of 32 bytes: the latest, the `block`-th, one without tails.
  uint64_t block_bytes() const { return bytes_of(used_m(), used_n()); }
  uint64_t block_bytes_of(uint32_t block) const {
    const Place p = place_of(block / turns());
    return bytes_of(rest(cut_.m, p.row * cut_.base_m, cut_.base_m), rest(cut_.n, p.column * cut_.base_n, cut_.base_n));
  }
  uint64_t whole_block_bytes() const { return bytes_of(cut_.base_m, cut_.base_n); }
  void out(void* to, bool in_sequence, bool by_unit_flags);
  // Blocks that a product makes may be handed over by unit flags.
  bool may_hand_over_tiles() const;
  void all(void* to);
  Operand2D& a() { return a_; }
  Operand2D& b() { return b_; }

 private:
  int32_t rows() const { return pieces_of(cut_.m, cut_.base_m); }
  int32_t columns() const { return pieces_of(cut_.n, cut_.base_n); }
  int32_t used_m() const { return rest(cut_.m, m_.row * cut_.base_m, cut_.base_m); }
  int32_t used_n() const { return rest(cut_.n, m_.column * cut_.base_n, cut_.base_n); }
  // How often a block is next.
  uint32_t turns() const {
    return m_.configuration.partial ? static_cast<uint32_t>(pieces_of(cut_.k, cut_.base_k)) : 1;
  }
  DType sum_type() const { return multiplies_integers(m_.a.dtype) ? DType::I32 : DType::F32; }
  uint64_t bytes_of(int32_t m, int32_t n) const {
    const auto size = static_cast<int32_t>(dtype_size(m_.c.dtype));
    const bool tiles = m_.c.layout == MatrixLayout::Tiles;
    const int32_t width = tiles ? (size == 1 ? 32 : 16) : 32 / size;
    return static_cast<uint64_t>(tiles ? up(m, 16) : m) * static_cast<uint64_t>(up(n, width) * size);
  }
  void require(bool holds, const std::string& rule) const {
    if (!holds) misuse(api_, rule.c_str());
  }
  void check() const;
  void take_rooms();
  void take_turn();
  void await_room();
  // An object that a kernel registers and doesn't use may have a tiling of zeros.
  bool untiled() const { return cut_.base_m == 0 && cut_.base_n == 0 && cut_.base_k == 0; }
  struct Place {
    int32_t row, column;
  };
  Place place_of(uint32_t block) const;
  bool left_out(const Place& p) const { return m_.configuration.triangle * (p.row - p.column) > 0; }
  bool next_place(Place& p);
  void expect_next(int32_t step);
  bool halved() const { return cut_.buffers_a > 1 && cut_.buffers_b > 1; }
  void bring_bias();
  uint8_t* half(Memory memory) const;
  Product product_of(int32_t step, bool add, bool bias, int unit_flag) const;
  void multiply_block(int32_t step, bool add, uint8_t* c, int unit_flag);
  void bring_words();
  Outgoing outgoing(bool in_sequence, uint64_t& offset) const;
  void own_out(void* to, const uint8_t* from, const Outgoing& o, uint64_t offset, bool in_sequence) const;

  Matmul& m_;
  const MatmulCut& cut_;
  const char* const api_;
  Core& core_;
  MultiplicationFlags& flags_;
  Operand2D a_, b_;
};

}  // namespace vnpu
