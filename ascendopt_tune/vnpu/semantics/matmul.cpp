// Who asks for a matrix multiplication and who makes it: a cube core its own, and, of a mixed kernel, the cube core
// of a group those of its vector cores.
#include "vnpu/matmul.h"

#include "handed_over.h"
#include "matmul_batch.h"
#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr size_t kAreaBytes = 256 << 10;  // of C, of A and of B

// Global memory of a vector core for what its cube core hands it.
uint8_t* area_of(int core) {
  static CoreRooms areas(3 * kAreaBytes);
  return areas.of(core);
}

// A or B in the Unified Buffer, where rows begin at multiples of 32 bytes: to global memory, for the cube core. The
// setup it gets says where.
void bring_over(Matrix& m, int32_t rows, int32_t columns, uint8_t* area, bool changed, const char* api) {
  if (!m.in_ub || m.data == nullptr) return;
  if (m.turned) std::swap(rows, columns);
  const auto size = static_cast<int32_t>(dtype_size(m.dtype));
  const bool tiles = m.layout == MatrixLayout::Tiles;
  const int32_t pitch = up(columns, 32 / size);
  const int64_t bytes = static_cast<int64_t>(tiles ? up(rows, 16) : rows) * pitch;
  if (bytes * size > static_cast<int64_t>(kAreaBytes)) unsupported(api, "matrices of more than 256 KB");
  if (changed) {
    order(Pipe::V, Pipe::MTE3);
    CopyShape s;
    s.burst_bytes = static_cast<uint64_t>(bytes * size);
    s.byte_exact = true;
    copy_local_to_gm(area, m.data, s, api);
  }
  m.data = area;
  m.pitch = pitch;
}

// The cube core of the group does `what`, as this core's object wants it from block `block` on, behind what this core
// has copied so far.
template <typename F>
void ask(Matmul& m, const char* api, const void* pc, bool answer, uint32_t block, F what) {
  Core& asking = core();
  order(Pipe::MTE2, Pipe::MTE3);
  MatmulSetup setup = m;
  uint8_t* area = area_of(asking.index);
  bring_over(setup.a, m.cut.m, m.cut.k, area + kAreaBytes, m.brought_a != m.version_a, api);
  bring_over(setup.b, m.cut.k, m.cut.n, area + 2 * kAreaBytes, m.brought_b != m.version_b, api);
  m.brought_a = m.version_a;
  m.brought_b = m.version_b;
  const size_t number = asking.matmul_numbers.emplace(&m, asking.matmul_numbers.size()).first->second;
  asking.call_cube(
      [setup, from = asking.index, number, api, pc, answer, block, what] {
        const Calling calling(pc);
        Matmul& held = core().multiplications[number];
        static_cast<MatmulSetup&>(held) = setup;
        if (held.from != from) held.seen_a = held.seen_b = 0;
        held.from = from;
        Multiplication on(held, api);
        on.notice_changes();
        held.at = block;
        what(held, on);
        if (answer) core().answer(from, pc);
      },
      pc);
}

bool asks(const Core& c) { return c.kind == CoreKind::Vector && c.groups.mixed(); }

// A block by itself, as it lies in global memory on its way to the Unified Buffer.
void out_aligned(Matmul& m, Multiplication& on, void* to) {
  if (m.c.layout == MatrixLayout::Rows) m.c.layout = MatrixLayout::AlignedRows;
  on.out(to, true, false);
}

// Rows lie there as they lie in global memory.
void to_local(void* to, const void* from, uint64_t bytes, const char* api, uint32_t rows = 1, uint64_t pitch = 0) {
  order(Pipe::V, Pipe::MTE2);
  order(Pipe::MTE3, Pipe::MTE2);
  CopyShape s;
  s.bursts = rows;
  s.burst_bytes = bytes;
  s.src_stride = s.dst_stride = pitch;
  copy_gm_to_local(to, from, s, api);
  order(Pipe::MTE2, Pipe::V);
}

}  // namespace

void matmul_init(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (asks(core())) return ask(m, api, pc, false, 0, [](Matmul&, Multiplication& on) { on.init(); });
  core().needs(CoreKind::Cube, api, pc);
  Multiplication(m, api).init();
}

bool matmul_next(Matmul& m, bool add, void* into, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).next(add, into, false);
  if (!Multiplication(m, api).go_on()) return false;
  m.ready = true;
  ask(m, api, pc, false, m.at - 1, [add, into](Matmul&, Multiplication& on) { on.next(add, into, false); });
  return true;
}

void matmul_out(Matmul& m, void* to, bool in_sequence, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).out(to, in_sequence, false);
  ask(m, api, pc, true, m.at, [to, in_sequence](Matmul&, Multiplication& on) { on.out(to, in_sequence, false); });
  core().await_answer(pc);
}

void matmul_out_local(Matmul& m, void* to, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  core().needs(CoreKind::Vector, api, pc);
  if (!asks(core())) unsupported(api, "the Unified Buffer needs a cube core beside the vector core");
  uint8_t* area = area_of(core().index);
  const uint64_t bytes = Multiplication(m, api).block_bytes();
  if (bytes > kAreaBytes) unsupported(api, "blocks of more than 256 KB");
  ask(m, api, pc, true, m.at, [area](Matmul& held, Multiplication& on) { out_aligned(held, on, area); });
  core().await_answer(pc);
  to_local(to, area, bytes, api);
}

void matmul_all(Matmul& m, void* to, bool wait, bool later, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).all(to);
  ask(m, api, pc, wait || later, 0, [to](Matmul&, Multiplication& on) { on.all(to); });
  if (wait)
    core().await_answer(pc);
  else
    m.unanswered += later;
}

void matmul_wait(Matmul& m) {
  const void* pc = VNPU_PC;
  for (; m.unanswered > 0; m.unanswered--) core().await_answer(pc);
}

bool matmul_start(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) unsupported(api, "sync = false needs a cube core beside the vector core");
  if (m.workspace == nullptr) misuse(api, "sync = false needs SetWorkspace");
  if (m.unanswered > 0) return true;  // blocks that wait to be taken
  m.taken = 0;
  while (Multiplication(m, api).go_on()) {
    void* to = static_cast<uint8_t*>(m.workspace) + m.unanswered++ * Multiplication(m, api).whole_block_bytes();
    ask(m, api, pc, true, m.at - 1, [to](Matmul& held, Multiplication& on) {
      if (on.next(false, nullptr, false)) out_aligned(held, on, to);
    });
  }
  return m.unanswered > 0;
}

void* matmul_take(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.unanswered == 0) misuse(api, "there is no block: Iterate<false> has to come first");
  core().await_answer(pc);
  m.unanswered--;
  return static_cast<uint8_t*>(m.workspace) + m.taken++ * Multiplication(m, api).whole_block_bytes();
}

void matmul_take_local(Matmul& m, void* to, const char* api) {
  const Calling calling(VNPU_PC);
  const void* from = matmul_take(m, api);
  to_local(to, from, Multiplication(m, api).block_bytes_of(m.taken - 1), api);
}

void matmul_short_floats(bool on, bool ties_to_zero, const char* api) {
  if (core().kind == CoreKind::Vector) {
    if (on) misuse(api, "HF32 is for kernels on cube cores alone (ASCENDC_CUBE_ONLY)");
    return;
  }
  const Calling calling(VNPU_PC);
  set_short_floats(on);
  set_short_ties_to_zero(ties_to_zero);
}

void matmul_batch(Matmul& m, void* to, const BatchCall& call, bool wait, bool later, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) {
    core().needs(CoreKind::Cube, api, pc);
    return make_batch(m, call, to, false, api);
  }
  ask(m, api, pc, wait || later, 0,
      [to, call, api](Matmul& held, Multiplication&) { make_batch(held, call, to, false, api); });
  if (wait)
    core().await_answer(pc);
  else
    m.unanswered += later;
}

void matmul_batch_local(Matmul& m, void* to, uint64_t bytes, const BatchCall& call, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  core().needs(CoreKind::Vector, api, pc);
  if (!asks(core())) unsupported(api, "the Unified Buffer needs a cube core beside the vector core");
  const uint64_t made = batch_bytes(m, call, api);
  if (made > bytes)
    misuse(api,
           ("C takes " + std::to_string(made) + " bytes, the tensor in the Unified Buffer has " + std::to_string(bytes))
               .c_str());
  if (made > kAreaBytes) unsupported(api, "results of more than 256 KB in the Unified Buffer");
  uint8_t* area = area_of(core().index);
  ask(m, api, pc, true, 0,
      [area, call, api](Matmul& held, Multiplication&) { make_batch(held, call, area, true, api); });
  core().await_answer(pc);
  to_local(to, area, made, api);
}

void matmul_batches(Matmul& m, uint32_t loops, const BatchCall& call, bool wait, bool later, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.workspace == nullptr) misuse(api, "IterateNBatch needs SetWorkspace");
  if (!asks(core())) unsupported(api, "IterateNBatch needs a cube core beside the vector core");
  const bool one_by_one = !wait && !later;
  m.taken = 0;
  ask(m, api, pc, !one_by_one, 0, [loops, call, one_by_one, api, pc](Matmul& held, Multiplication&) {
    for (uint32_t i = 0; i < loops; i++) {
      make_batch_of(held, call, i, held.workspace, api);
      if (one_by_one) core().answer(held.from, pc);
    }
  });
  if (wait)
    core().await_answer(pc);
  else
    m.unanswered += later ? 1 : loops;
}

void* matmul_take_batch(Matmul& m, const BatchCall& call, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.unanswered == 0) misuse(api, "there is no batch: IterateNBatch<false> has to come first");
  core().await_answer(pc);
  m.unanswered--;
  return static_cast<uint8_t*>(m.workspace) + batch_rows(m, call, m.taken++, api).offset;
}

void matmul_take_batch_local(Matmul& m, void* to, const BatchCall& call, const char* api) {
  const Calling calling(VNPU_PC);
  const void* from = matmul_take_batch(m, call, api);
  const BatchRows rows = batch_rows(m, call, m.taken - 1, api);
  to_local(to, from, rows.bytes, api, rows.pieces, rows.pitch);
}

bool matmul_serve() {
  if (!core().groups.mixed()) return false;
  core().serve();
  return true;
}

}  // namespace vnpu
