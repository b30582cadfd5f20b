// What the cores' observers have found out, gathered into the report of their launch.
#pragma once
#include <string>
#include <vector>

#include "launch.h"
#include "machine.h"
#include "report.h"

namespace vnpu {

// Names places of global memory in the words of the kernel's caller.
struct BufferNames {
  const KernelInfo& kernel;
  void** args;
  // Of bytes [begin, end), which become counted in their allocation: the allocation, and the parameter that points
  // there. "" for bytes of none.
  std::string of(uint64_t& begin, uint64_t& end) const;
};

// Tells what is told of a launch that failed, too: the hazards that each core saw by itself, what the kernel relies on,
// how far it went past its tensors.
void tell_habits(const std::vector<Core*>& cores, const Crossing& crossing, const BufferNames& names, Report& report);

// Of cores that have all ended: hazards between them, with `hazards`, and unwritten bytes that were used; names the
// places of all hazards.
void tell_findings(const std::vector<Core*>& cores, const BufferNames& names, bool hazards, Report& report);

}  // namespace vnpu
