// Who asks for a matrix multiplication and who makes it: a cube core its own, and, of a mixed kernel, the cube core
// of a group those of its vector cores.
#include "vnpu/matmul.h"

#include "handed_over.h"
#include "matmul_batch.h"
#include "tscm_place.h"
#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr size_t kAreaBytes = 256 << 10;  // of each

constexpr int kMostObjects = 64;  // of a core that have areas of their own

size_t number_of(const Matmul& m) {
  Core& asking = core();
  return asking.matmul_numbers.emplace(&m, asking.matmul_numbers.size()).first->second;
}

// Global memory of a vector core's object for what the cube core hands it, and for A, B and the bias.
uint8_t* area_of(const Matmul& m, MatmulArea which) {
  static CoreRooms areas(4 * kAreaBytes);
  const int number = static_cast<int>(number_of(m) % kMostObjects);
  return areas.of(core().index * kMostObjects + number) + static_cast<size_t>(which) * kAreaBytes;
}

// A or B that was brought over, where rows begin at multiples of 32 bytes: the setup that the cube core gets says
// where.
void point_over(Matrix& m, int32_t rows, int32_t columns, uint8_t* area, const char* api) {
  if (!m.in_ub || m.data == nullptr) return;
  if (m.turned) std::swap(rows, columns);
  const auto size = static_cast<int32_t>(dtype_size(m.dtype));
  m.data = area;
  m.pitch = up(columns, 32 / size);
  const int64_t all = m.layout == MatrixLayout::Tiles ? up(rows, 16) : rows;
  if (static_cast<uint64_t>(all * m.pitch * size) > m.brought)
    misuse(api, "the tensor in the Unified Buffer has fewer elements than the matrix");
}

// The tiling of a registered object is that of the cube core's program, and so are the kernel's own copies, which
// run there (asc-devkit, KfcServer::InitObj); what the vector core has said of sizes holds beside it.
void take_registered(MatmulSetup& s, const std::vector<MatmulSetup>& all) {
  if (s.registered < 0) return;
  const auto place = static_cast<size_t>(s.registered);
  if (place >= all.size() || !all[place].tiled)
    misuse("REGIST_MATMUL_OBJ", ("object " + std::to_string(place + 1) +
                                 " has no tiling in the cube core's program, which multiplies by it" +
                                 (s.tiled ? "" : ", and none in the vector core's"))
                                    .c_str());
  const MatmulSetup& r = all[place];
  s.cut = r.cut;
  if (s.own.m != -1) s.cut.m = s.own.m;
  if (s.own.n != -1) s.cut.n = s.own.n;
  if (s.own.k != -1) s.cut.k = s.own.k;
  s.batches = r.batches;
  s.copy_a = r.copy_a;
  s.copy_b = r.copy_b;
  s.copy_out = r.copy_out;
  if (s.own.whole) return;
  s.org_m = r.org_m;
  s.org_n = r.org_n;
  s.org_ka = r.org_ka;
  s.org_kb = r.org_kb;
}

// The cube core of the group does `what`, as this core's object wants it from block `block` on. The message goes out
// behind what MTE3 has done so far, and nothing else: as on the device (asc-devkit, KfcCommClient::PostMessage).
// Of vector cores that ask for one product the first one alone sends it, and all get the answer; with `joins` the
// product begins when all have come so far (asc-devkit, SyncCubeWithVec).
template <typename F>
void ask_cube(Matmul& m, const char* api, const void* pc, bool answer, uint32_t block, F what, bool joins = false) {
  Core& asking = core();
  const bool shared = m.configuration.shared;
  if (shared && asking.groups.sub(asking.index) != 0) {
    if (joins) asking.join_call(pc);
    return;
  }
  order(Pipe::S, Pipe::MTE3);
  const MatmulSetup setup = m;
  uint8_t *const a = area_of(m, MatmulArea::A), *const b = area_of(m, MatmulArea::B);
  const TscmPlace left(m.a.data), right(m.b.data);
  const size_t number = number_of(m);
  asking.call_cube(
      [setup, a, b, left, right, from = asking.index, number, api, pc, answer, block, what,
       together = shared && joins] {
        const Calling calling(pc);
        if (together) core().await_joined(from, pc);
        Matmul& held = core().multiplications[number];
        static_cast<MatmulSetup&>(held) = setup;
        take_registered(held, core().registered);
        point_over(held.a, held.cut.m, held.cut.k, a, api);
        point_over(held.b, held.cut.k, held.cut.n, b, api);
        if (held.a.in_l1 && held.a.data != nullptr) held.a.data = left.on_cube_core(api);
        if (held.b.in_l1 && held.b.data != nullptr) held.b.data = right.on_cube_core(api);
        if (held.from != from) held.seen_a = held.seen_b = 0;
        held.from = from;
        Multiplication on(held, api);
        on.notice_changes();
        held.at = block;
        what(held, on);
        if (!answer) return;
        const int last = setup.configuration.shared ? from + core().groups.vectors - 1 : from;
        for (int to = from; to <= last; to++) core().answer(to, number, pc);
      },
      pc);
}

bool asks(const Core& c) { return c.kind == CoreKind::Vector && c.groups.mixed(); }

void check_not_shared(const Matmul& m, const char* api) {
  if (m.configuration.shared)
    misuse(api, "with IBSHARE of A and B there is IterateAll to global memory alone (AscendC reference)");
}

// A block by itself, as it lies in global memory on its way to the Unified Buffer.
void out_aligned(Matmul& m, Multiplication& on, void* to) {
  if (m.c.layout == MatrixLayout::Rows) m.c.layout = MatrixLayout::AlignedRows;
  on.out(to, true, false);
}

// Rows lie there as they lie in global memory. Nothing orders the copy behind what this core still does with those
// bytes but what the kernel says, and, where an answer was awaited, that MTE3 had ended before the message; with `wait`
// V goes on when it has ended (asc-devkit, MatmulClient::CopyToUB).
void to_local(void* to, const void* from, uint64_t bytes, const char* api, bool wait = true, uint32_t rows = 1,
              uint64_t pitch = 0) {
  CopyShape s;
  s.bursts = rows;
  s.burst_bytes = bytes;
  s.src_stride = s.dst_stride = pitch;
  copy_gm_to_local(to, from, s, api);
  if (wait) order(Pipe::MTE2, Pipe::V);
}

}  // namespace

void matmul_bring(Matmul& m, MatmulArea which, const void* from, uint64_t bytes, const char* api) {
  const Calling calling(VNPU_PC);
  if (!asks(core()) || from == nullptr || bytes == 0) return;
  if (bytes > kAreaBytes) unsupported(api, "matrices of more than 256 KB");
  order(Pipe::V, Pipe::MTE3);
  CopyShape s;
  s.burst_bytes = bytes;
  s.byte_exact = true;
  uint8_t* area = area_of(m, which);
  copy_local_to_gm(area, from, s, api);
  if (which == MatmulArea::Bias)
    m.bias.data = area;
  else
    (which == MatmulArea::A ? m.a : m.b).brought = bytes;
}

void matmul_init(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (asks(core())) return ask_cube(m, api, pc, false, 0, [](Matmul&, Multiplication& on) { on.init(); });
  core().needs(CoreKind::Cube, api, pc);
  Multiplication(m, api).init();
}

void matmul_end(const Matmul& m) {
  Core::MatmulRooms& rooms = core().rooms_in(Memory::L1);
  if (rooms.turn == &m) rooms.ended = true;
}

bool matmul_next(Matmul& m, bool add, void* into, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).next(add, into, false);
  check_not_shared(m, api);
  matmul_needs_tiling(m, api);
  if (!Multiplication(m, api).go_on()) return false;
  m.ready = true;
  ask_cube(m, api, pc, false, m.at - 1, [add, into](Matmul&, Multiplication& on) { on.next(add, into, false); });
  return true;
}

void matmul_out(Matmul& m, void* to, bool in_sequence, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).out(to, in_sequence, false);
  check_not_shared(m, api);
  ask_cube(m, api, pc, true, m.at, [to, in_sequence](Matmul&, Multiplication& on) { on.out(to, in_sequence, false); });
  core().await_answer(number_of(m), pc);
}

void matmul_out_local(Matmul& m, void* to, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  core().needs(CoreKind::Vector, api, pc);
  if (!asks(core())) unsupported(api, "the Unified Buffer needs a cube core beside the vector core");
  uint8_t* area = area_of(m, MatmulArea::C);
  const uint64_t bytes = Multiplication(m, api).block_bytes();
  if (bytes > kAreaBytes) unsupported(api, "blocks of more than 256 KB");
  ask_cube(m, api, pc, true, m.at, [area](Matmul& held, Multiplication& on) { out_aligned(held, on, area); });
  core().await_answer(number_of(m), pc);
  to_local(to, area, bytes, api);
}

void matmul_all(Matmul& m, void* to, bool wait, bool later, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) return Multiplication(m, api).all(to);
  ask_cube(m, api, pc, wait || later, 0, [to](Matmul&, Multiplication& on) { on.all(to); }, true);
  if (wait)
    core().await_answer(number_of(m), pc);
  else
    m.unanswered += later;
}

void matmul_all_local(Matmul& m, void* to, uint64_t bytes, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  core().needs(CoreKind::Vector, api, pc);
  if (!asks(core())) unsupported(api, "the Unified Buffer needs a cube core beside the vector core");
  check_not_shared(m, api);
  if (bytes > kAreaBytes) unsupported(api, "results of more than 256 KB");
  uint8_t* area = area_of(m, MatmulArea::C);
  ask_cube(m, api, pc, true, 0, [area, api](Matmul& held, Multiplication& on) {
    const uint64_t row = static_cast<uint64_t>(held.org_kc != 0 ? held.org_kc : held.org_n) * dtype_size(held.c.dtype);
    if (static_cast<uint64_t>(up(held.cut.m, 16)) * row > kAreaBytes) unsupported(api, "results of more than 256 KB");
    on.all(area);
  });
  core().await_answer(number_of(m), pc);
  to_local(to, area, bytes, api);
}

void matmul_wait(Matmul& m) {
  const void* pc = VNPU_PC;
  for (; m.unanswered > 0; m.unanswered--) core().await_answer(number_of(m), pc);
}

bool matmul_start(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (!asks(core())) unsupported(api, "sync = false needs a cube core beside the vector core");
  check_not_shared(m, api);
  matmul_needs_tiling(m, api);
  if (m.workspace == nullptr) misuse(api, "sync = false needs SetWorkspace");
  if (m.unanswered > 0) return true;  // blocks that wait to be taken
  m.taken = 0;
  while (Multiplication(m, api).go_on()) {
    void* to = static_cast<uint8_t*>(m.workspace) + m.unanswered++ * Multiplication(m, api).whole_block_bytes();
    ask_cube(m, api, pc, true, m.at - 1, [to](Matmul& held, Multiplication& on) {
      if (on.next(false, nullptr, false)) out_aligned(held, on, to);
    });
  }
  return m.unanswered > 0;
}

void* matmul_take(Matmul& m, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.unanswered == 0) misuse(api, "there is no block: Iterate<false> has to come first");
  core().await_answer(number_of(m), pc);
  m.unanswered--;
  return static_cast<uint8_t*>(m.workspace) + m.taken++ * Multiplication(m, api).whole_block_bytes();
}

void matmul_take_local(Matmul& m, void* to, bool wait, const char* api) {
  const Calling calling(VNPU_PC);
  const void* from = matmul_take(m, api);
  to_local(to, from, Multiplication(m, api).block_bytes_of(m.taken - 1), api, wait);
}

void matmul_copy_local(void* to, const void* from, uint64_t bytes, const char* api) {
  const Calling calling(VNPU_PC);
  to_local(to, from, bytes, api);
}

void matmul_local_is_there() {
  const Calling calling(VNPU_PC);
  if (asks(core())) order(Pipe::MTE2, Pipe::V);
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
  ask_cube(m, api, pc, wait || later, 0,
           [to, call, api](Matmul& held, Multiplication&) { make_batch(held, call, to, false, api); });
  if (wait)
    core().await_answer(number_of(m), pc);
  else
    m.unanswered += later;
}

void matmul_batch_local(Matmul& m, void* to, uint64_t bytes, const BatchCall& call, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  core().needs(CoreKind::Vector, api, pc);
  if (!asks(core())) unsupported(api, "the Unified Buffer needs a cube core beside the vector core");
  matmul_needs_tiling(m, api);
  const uint64_t made = batch_bytes(m, call, api);
  if (made > bytes)
    misuse(api,
           ("C takes " + std::to_string(made) + " bytes, the tensor in the Unified Buffer has " + std::to_string(bytes))
               .c_str());
  if (made > kAreaBytes) unsupported(api, "results of more than 256 KB in the Unified Buffer");
  uint8_t* area = area_of(m, MatmulArea::C);
  ask_cube(m, api, pc, true, 0,
           [area, call, api](Matmul& held, Multiplication&) { make_batch(held, call, area, true, api); });
  core().await_answer(number_of(m), pc);
  to_local(to, area, made, api);
}

void matmul_batches(Matmul& m, uint32_t loops, const BatchCall& call, bool wait, bool later, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.workspace == nullptr) misuse(api, "IterateNBatch needs SetWorkspace");
  if (!asks(core())) unsupported(api, "IterateNBatch needs a cube core beside the vector core");
  const bool one_by_one = !wait && !later;
  m.taken = 0;
  const size_t number = number_of(m);
  ask_cube(m, api, pc, !one_by_one, 0, [loops, call, one_by_one, number, api, pc](Matmul& held, Multiplication&) {
    for (uint32_t i = 0; i < loops; i++) {
      make_batch_of(held, call, i, held.workspace, api);
      if (one_by_one) core().answer(held.from, number, pc);
    }
  });
  if (wait)
    core().await_answer(number_of(m), pc);
  else
    m.unanswered += later ? 1 : loops;
}

void* matmul_take_batch(Matmul& m, const BatchCall& call, const char* api) {
  const void* pc = VNPU_PC;
  const Calling calling(pc);
  if (m.unanswered == 0) misuse(api, "there is no batch: IterateNBatch<false> has to come first");
  matmul_needs_tiling(m, api);
  core().await_answer(number_of(m), pc);
  m.unanswered--;
  return static_cast<uint8_t*>(m.workspace) + batch_rows(m, call, m.taken++, api).offset;
}

void matmul_take_batch_local(Matmul& m, void* to, const BatchCall& call, const char* api) {
  const Calling calling(VNPU_PC);
  const void* from = matmul_take_batch(m, call, api);
  const BatchRows rows = batch_rows(m, call, m.taken - 1, api);
  to_local(to, from, rows.bytes, api, true, rows.pieces, rows.pitch);
}

bool matmul_is_asked() { return asks(core()); }

// asc-devkit, MatmulClient::InitStatic: without a tiling nothing is counted there.
void matmul_needs_tiling(const Matmul& m, const char* api) {
  if (!m.tiled)
    misuse(api,
           "this vector core has registered the object without a tiling, by which it counts blocks and where they lie: "
           "IterateAll does without");
}

bool matmul_may_serve() { return core().groups.mixed(); }

void matmul_offer(const MatmulSetup& setup) { core().registered.push_back(setup); }

void matmul_serve() { core().serve(); }

}  // namespace vnpu
