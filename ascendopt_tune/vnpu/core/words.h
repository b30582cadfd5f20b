// How the language of kernels spells what the machine does, for messages and reports. The machine knows no name of that
// language by itself: semantics/words.cpp tells it.
#pragma once
#include <string>

#include "vnpu/types.h"

namespace vnpu {

struct Words {
  const char *set_flag, *wait_flag;
  const char *barrier, *barrier_all;  // of one pipe; of all pipes of a core
  const char* meet;                   // of all cores
  const char *cross_set, *cross_wait;
  const char* answer;  // that a vector core waits for, of its cube core
  const char* clock;   // reads the system counter
  const char* atomic_off;
  const char *allocate_buffer, *allocate_event, *free_buffer;
  // Sentences: how a kernel says which cores it runs on; how its code asks; which flags only groups have.
  const char *choose_cores, *tell_cores, *group_flags;
  const char* copies_to_l1;                // that a vector core can't make
  const char *meet_other_kind, *counters;  // why cores would wait for ever
  const char* no_message;                  // that a cube core waits for a vector core's, and that none will come
  const char* load_tiling;
  const char* print;
  // Sentences with their sources.
  const char *flags_in_pairs, *set_twice, *most_buffers, *overlap;
  const char* write_back;  // what makes the data cache write back and load anew
};

extern const Words kWords;

// What would order an instruction of `q` after one of `p`.
std::string missing_edge(Pipe p, Pipe q);

}  // namespace vnpu
