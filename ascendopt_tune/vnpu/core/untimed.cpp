#include "vnpu/untimed.h"

#include "machine.h"
#include "words.h"

namespace vnpu {
namespace {

constexpr int kMatrixFlagIds = 3;

// For the modelled pipes it happens where it stands, and takes none of the scalar unit's time.
void tell(Core& c, const Event& e, Record::Kind kind) {
  c.hazards.on(e);
  if (c.options.log) c.log.push_back({e, {}, {}});
  if (!c.options.timing || e.kind == Event::kBarrier) return;
  Record r;
  r.kind = kind;
  r.pipe = e.pipe;
  r.src = e.src;
  r.id = static_cast<uint8_t>(e.id);
  r.api = e.api;
  r.scalar = c.trace.scalars.number(ScalarWork{});
  c.trace.records.push_back(r);
}

Event matrix_flag(Event::Kind kind, int id) {
  Event e{kind, Pipe::MTE1, Pipe::M, id, kWords.set_flag};
  e.settled = true;
  return e;
}

}  // namespace

void order_within(Pipe pipe) { tell(core(), {Event::kBarrier, pipe, Pipe::S, 0, kWords.barrier}, Record::kBarrier); }

// Beside flags that the kernel has raised by number, as these are counted (asc-devkit, TPipe::Init); another TPipe that
// is left has the ids.
void raise_matrix_flags() {
  Core& c = core();
  if (c.kind != CoreKind::Cube) return;
  const int first = c.allocate_event(Pipe::M, Pipe::MTE1, nullptr);
  c.release_event(Pipe::M, Pipe::MTE1, first);
  if (first >= kMatrixFlagIds) return;
  for (int id = 0; id < kMatrixFlagIds; id++) {
    if (c.allocate_event(Pipe::M, Pipe::MTE1, nullptr) != id)
      throw KernelError(KernelError::kMisuse, "ids 0, 1 and 2 from M to MTE1 are taken", kWords.allocate_event,
                        nullptr);
    tell(c, matrix_flag(Event::kSetFlag, id), Record::kSetFlag);
  }
}

void count_matrix_flags() { core().scalar(ScalarKind::Flag, kMatrixFlagIds); }

void take_matrix_flags_down() {
  Core& c = core();
  if (c.kind != CoreKind::Cube) return;
  for (int id = 0; id < kMatrixFlagIds; id++) {
    c.needs_matrix_flag(id);
    tell(c, matrix_flag(Event::kWaitFlag, id), Record::kWaitFlag);
    c.release_event(Pipe::M, Pipe::MTE1, id);
  }
}

}  // namespace vnpu
