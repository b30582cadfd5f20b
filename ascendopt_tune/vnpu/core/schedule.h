// Which core of a launch runs when.
#pragma once
#include <memory>
#include <vector>

#include "fiber.h"

namespace vnpu {

using Fibers = std::vector<std::unique_ptr<Fiber>>;

// Runs cores from the first on, on `threads` threads, as long as their order can't matter (detached.h): what is left in
// memory, in the cores and their observers is what run_in_turn() would have left. Returns how many are done; the others
// have not begun.
size_t run_beside(Fibers& fibers, const Task& task, size_t threads);

// Runs all cores that are not done to their end, on this thread: between meetings each goes as far as it can, in the
// order of their numbers; those of a group take turns among themselves. Returns the first error in core order, or null.
KernelError* run_in_turn(Fibers& fibers, const Task& task);

}  // namespace vnpu
