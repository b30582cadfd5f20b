// Which way a queue leads: the pipes and the memory that its positions stand for (AscendC reference, TQue and
// TQueBind).
#pragma once
#include "sync.h"

namespace AscendC::detail {

// CO2 is where results go, which on 2201 is global memory.
constexpr bool in_global(TPosition p) { return p == TPosition::GM || p == TPosition::CO2; }

// The pipe that fills a queue's buffers and the one that uses them, by the memories it leads between: nothing else of
// the two positions counts (asc-devkit, kernel_event.h, GetQueEvt). One inside of UB is for copies through it: its
// flags order MTE2 and MTE3, and no vector instruction.
constexpr PipePair pipes_between(TPosition src, TPosition dst) {
  using P = vnpu::Pipe;
  using M = vnpu::Memory;
  const M to = memory_of(dst);
  if (in_global(src)) return {P::MTE2, to == M::UB ? P::V : to == M::L1 ? P::MTE1 : P::M};
  switch (memory_of(src)) {
    case M::UB:
      return in_global(dst) ? PipePair{P::V, P::MTE3}
             : to == M::L1  ? PipePair{P::MTE3, P::MTE1}
                            : PipePair{P::MTE2, P::MTE3};
    case M::L1:
      return {P::MTE1, to == M::FB ? P::FIX : P::M};
    default:
      return {P::M, P::FIX};
  }
}
// Where its buffers are.
constexpr TPosition position_between(TPosition src, TPosition dst) { return in_global(dst) ? src : dst; }

// A half of the way through UB (AscendC reference, EnQue with positions).
template <TPosition src, TPosition dst, int32_t depth>
constexpr PipePair pipes_of_half() {
  static_assert(depth != 0, "TQue: a queue of depth 0 has no EnQue and DeQue with positions");
  static_assert((src == TPosition::GM || memory_of(src) == vnpu::Memory::UB) &&
                    (dst == TPosition::GM || memory_of(dst) == vnpu::Memory::UB) && src != dst,
                "TQue: positions of EnQue and DeQue are GM to UB, UB to GM, or inside of UB");
  return pipes_between(src, dst);
}

// What a TQue's position stands for (asc-devkit, kernel_event.h, GetBufferLogicPos); one that isn't there, VECCALC, for
// a way inside of UB.
constexpr TPosition source_of(TPosition p) {
  switch (p) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
    case TPosition::VECIN:
      return TPosition::GM;
    case TPosition::A2:
      return TPosition::A1;
    case TPosition::B2:
    case TPosition::C2PIPE2GM:
      return TPosition::B1;
    case TPosition::C2:
      return TPosition::C1;
    default:
      return p;
  }
}
constexpr TPosition destination_of(TPosition p) {
  switch (p) {
    case TPosition::VECOUT:
    case TPosition::SPM:
    case TPosition::CO2:
      return TPosition::GM;
    case TPosition::CO1:
      return TPosition::CO2;
    default:
      return p;
  }
}

}  // namespace AscendC::detail
