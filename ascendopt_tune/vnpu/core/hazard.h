// Hazards: is every access ordered after the conflicting accesses of other pipes (and, where the hardware needs it, of
// the same pipe)? One vector clock per pipe, joined by flags and barriers; shadow cells tell who touched a byte last.
//
// Checks use the clock at issue, cells store the number of the accessing instruction (its completion), so a flag that
// was set before an instruction does not order it. See README.md beside this file for what is and isn't detected.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data_cache.h"
#include "event.h"
#include "knowledge.h"
#include "local_map.h"
#include "shadow.h"

#include "vnpu/types.h"

namespace vnpu {

struct AccessSite {
  Pipe pipe = Pipe::S;
  const char* api = "";
  const void* pc = nullptr;
  bool write = false;
};

struct HazardReport {
  AccessSite first, second;  // program order within one core; for two cores, by core number
  int first_core = 0, second_core = 0;
  bool gm = false;
  Memory memory = Memory::UB;   // unless `gm`
  uint64_t begin = 0, end = 0;  // byte range both touched: offset in `memory`, or canonical GM address
  std::string buffer;           // what it lies in, for people; "" when nothing is known
  std::string missing;          // the edge that would order them
};

// A dependency the compiler's automatic synchronization has to order: instruction `epoch` of `src`.
struct Dependency {
  Pipe src;
  uint32_t epoch;
};

// Per pipe, who touched local memory last.
struct Shadows {
  std::array<Shadow, kPipes> write, read;
};

class HazardTracker {
 public:
  static constexpr size_t kMaxReports = 16;  // per core; one missing flag repeats in every iteration
  struct What {
    bool report, auto_sync;
    bool groups;  // cores don't only meet all at once
  };
  // `map`: what lies in local memory, and `register_bytes` behind it stand for registers: between instructions of one
  // pipe they are never a hazard. `buffers` handed out, offset -> bytes, are looked at when a report names one.
  // `shadows` are made anew, and needed while the kernel runs.
  HazardTracker(int core, CoreKind kind, const Chip& chip, const LocalMap& map, uint8_t* local_base,
                uint32_t register_bytes, What what, const std::map<uint32_t, uint32_t>* buffers, Shadows& shadows);

  // Checks what an instruction touches, then marks it; follows flags and barriers. Local ranges must lie inside local
  // memory (or the registers behind it). A flag that is waited for is one that is_set().
  void on(const Event& event);
  // The instruction of the last event touches these, too.
  void access(const Access* accesses, size_t n);
  // The hardware itself holds instructions of `pipe` from now on until those before are complete; or until what another
  // one `knew` is, with that one.
  void held_back(Pipe pipe) { barrier(pipe); }
  void held_back(Pipe pipe, const Clock& knew) { join(known_[static_cast<size_t>(pipe)], knew); }
  // The latest instruction, with all that it was ordered after.
  Clock knew() const;
  // Its number on its pipe, from 1, and what it has to wait for under automatic synchronization.
  uint32_t epoch() const { return current_epoch_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }
  // What the flag between cores or the meeting that was told last hands over: what this core knows of the others, and
  // which of its own instructions are complete.
  const Knowledge& told() const { return told_; }
  // A vector core's message to its cube core goes out by MTE3, behind all that MTE3 has done; the scalar unit writes
  // the next one when this one has gone (asc-devkit, KfcCommClient::PostMessage and AllocMessage).
  void message();
  // The core has waited, and now knows this, too.
  void learn(const Knowledge& known);
  // Has somebody set the flag who nobody has waited for yet?
  bool is_set(Pipe src, Pipe dst, int id) const { return !flags_[flag_index(src, dst, id)].sets.empty(); }

  // A flag that was set and never waited for.
  struct OpenFlag {
    Pipe src, dst;
    int id;
    const void* pc;
  };
  // The flags that are set now; only those set twice before anyone waited with `twice`.
  std::vector<OpenFlag> open_flags(bool twice = false) const;

  // What the kernel takes from automatic synchronization or from the hardware beyond what is documented, "MTE2_V order"
  // or "MTE2_V set twice". The compiler is documented to order V with itself and S with every pipe (asc-devkit,
  // features of synchronization within a core); setting a flag that is set is undefined (asc-devkit, SetFlag/WaitFlag),
  // but hardware counts, and shipped operators rely on it.
  std::vector<std::string> relies_on() const;

  std::vector<HazardReport> reports;
  // Where it is told: of each order in relies_on, the first accesses that it orders.
  std::vector<HazardReport> leaned_on;

  // GM accesses for the comparison between cores, merged where one site walks contiguously.
  struct GmAccess {
    uint64_t begin, end;  // canonical
    AccessSite site;
    int interval;  // number of barriers between cores before it
    bool atomic;
    uint32_t epoch;
    int until = kOpen;             // number of the barrier that it is complete at
    int view = 0;                  // what its core knew of the others: a number of views
    std::vector<uint8_t> bytes{};  // what was written, of a copy while writes are kept; else empty
    bool whole_lines = false;      // by the data cache, which writes back no less than lines
  };
  static constexpr int kOpen = 0x7fffffff;
  std::vector<GmAccess> gm_accesses;
  std::vector<Knowledge> views{{}};  // without What::report, the empty one alone
  bool in_pairs = false;             // the core has raised flags in global memory, or waited for some
  // The data cache writes the line at `canonical` back, or all lines, and forgets them.
  void write_back(uint64_t canonical);
  void write_all_back();
  // From now on the bytes of copies to GM are kept: writes of two cores that store the same need no order.
  void keep_writes() { keep_writes_ = true; }
  // Forgets the kept bytes of writes that overwrite each other with other values, no barrier between cores in between.
  void forget_overwritten();

 private:
  struct Flag {
    struct Set {
      Clock clock;
      const void* pc;
      bool settled;
    };
    std::vector<Set> sets;  // one at a time, nearly always; there are hundreds of flags, so none may cost memory unused
    bool twice = false;     // was set while it was set
  };
  struct GmPending {
    uint64_t begin, end;     // of all pieces
    uint64_t bytes, stride;  // of one piece; from one to the next (stride <= bytes: dense)
    uint32_t epoch;
    AccessSite site;
    bool atomic;
  };
  static bool overlap(const GmPending& a, const GmPending& b);

  void begin(Pipe pipe, const char* api, const void* pc);
  void set_flag(const Event& e);
  void wait_flag(const Event& e);
  void barrier(Pipe pipe);
  void barrier_all();
  void sync_all();
  void cross_set(Pipe pipe);  // what `pipe` has done, and whatever it waited for, is known to whoever the flag reaches

  void conflict(Pipe other, uint32_t epoch, bool other_write, bool write, bool gm, uint64_t begin, uint64_t end);
  bool depend(Pipe other, uint32_t epoch);  // automatic synchronization orders the current instruction after it
  HazardReport report_of(Pipe other, uint32_t epoch, bool other_write, bool write, bool gm, uint64_t begin,
                         uint64_t end) const;
  bool reported(const HazardReport& r) const;
  bool ordered(Pipe other, uint32_t epoch, bool raw_or_waw) const;
  bool ordered_for(Pipe pipe, Pipe other, uint32_t epoch) const {
    return known_[static_cast<int>(pipe)][static_cast<int>(other)] >= epoch;
  }
  void check_local(uint64_t begin, uint64_t end, bool write);
  void check_shadow(Pipe other, const Shadow& shadow, bool other_write, uint64_t begin, uint64_t end, bool write);
  void gm(const Access& access);
  void check_pending(std::vector<GmPending>& pending, const GmPending& now, bool other_write);
  bool settled(const GmPending& a) const;
  void note_pieces(const Access& access, int interval);
  void through_cache(const Access& access);
  void past_cache(const Access& access);
  void written_back(uint64_t number, const CachedLine& line);
  void incoherent(Pipe other, uint32_t epoch, bool other_write, bool write, uint64_t begin, uint64_t end);
  bool continues(const GmAccess& now);
  size_t flag_index(Pipe src, Pipe dst, int id) const {
    return static_cast<size_t>((static_cast<int>(src) * kPipes + static_cast<int>(dst)) * event_ids_ + id);
  }
  std::string buffer_at(uint64_t offset) const;

  int core_;
  const LocalMap& map_;
  uint32_t gm_pipes_;  // that touch global memory, a bit each
  uint8_t* base_;
  uint32_t bytes_;
  int event_ids_;
  bool report_, auto_sync_, groups_;
  const std::map<uint32_t, uint32_t>* buffers_;
  Clock issued_{};                     // instructions issued per pipe
  std::array<Clock, kPipes> known_{};  // known_[p][q]: instructions of q that p's next one is ordered after
  Clock self_barrier_{};               // same-pipe barrier position
  AccessSite current_;
  uint32_t current_epoch_ = 0;
  std::vector<Dependency> dependencies_;
  uint8_t implicit_[kPipes] = {};               // bit q of implicit_[p]: automatic synchronization ordered q after p
  std::vector<std::vector<AccessSite>> sites_;  // per pipe, by instruction number - 1 (only while reporting)
  Shadows& shadows_;
  std::vector<Flag> flags_;
  std::vector<GmPending> gm_reads_, gm_writes_, scalar_writes_;
  // The next barrier between cores: a flag that is set, or a meeting. `clock`: the instructions complete there.
  void release(const Clock& clock);
  size_t first_open_ = 0;  // accesses before it are complete at some barrier
  int barriers_ = 0;
  int interval_ = 0;        // the last barrier of its own that it knows to be over
  uint32_t posted_ = 0;     // what MTE3 had done when the last message went out
  Knowledge knows_, told_;  // of the others; what the last barrier hands over
  bool scalar_gm_ = false;  // the scalar unit has touched GM
  DataCache cache_;
  bool keep_writes_ = false;
};

// Pairs of unordered GM accesses of different cores; at most `limit` reports.
std::vector<HazardReport> cross_core_hazards(const std::vector<const HazardTracker*>& cores, const Groups& groups,
                                             size_t limit);

}  // namespace vnpu
