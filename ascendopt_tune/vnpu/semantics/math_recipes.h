// Which instructions the elementwise functions of adv_math.cpp are made of: counted in asc-devkit@82b89a15,
// impl/adv_api/detail/math and activation, what is for architecture 2201.
#pragma once
#include "composite.h"
#include "vnpu/adv_math.h"

namespace vnpu {

// What a function issues on the elements of one pass, and how long a pass is.
struct Recipe {
  Math op;
  DType type;      // of its tensors
  uint8_t form;    // MathArguments::form; kAnyForm: whichever
  DType element;   // of its temporaries
  uint8_t parts;   // as many as the temporary memory is cut into, one for each temporary; 0: one pass does it
  uint16_t ahead;  // bytes of that memory before the first
  bool packed;     // temporaries follow each other without a gap where a pass doesn't fill its parts
  // [N*]NAME[.KIND][:UV][+], N instructions NAME. KIND: h on half, m on a bit an element, 1 on one repeat. UV: where
  // the two sources lie, when they aren't one: x and y are the function's sources, z its destination, a to h
  // temporaries, A to H half a part behind them. +: no barrier behind it. What stands before a | is issued once a call;
  // n* is once less than the call's form says.
  const char* steps;
};
constexpr uint8_t kAnyForm = 255;

// What a call costs, and how many barriers are inside.
struct MathCost {
  Work work;
  uint32_t barriers = 0;
};
MathCost math_cost(Math op, const Operand& destination, const MathArguments& arguments, Core& core);

}  // namespace vnpu
