// In front of a kernel: every synchronization it makes, its own and the queues', goes through here on its way to the
// virtual NPU and can be listed, left out or moved. The environment variable AOT_MUTATION says which; calls are told
// apart by where they are in the kernel.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernel_operator.h"

namespace mutants {

struct Call {
  // s(et), f(reed: a queue's set), w(ait), b(arrier), B(arrier of all pipes), A(ll cores); c, x: set and wait between
  // cores
  char kind;
  vnpu::Pipe src, dst;
  int id;  // of a flag; of a meeting 1 when it is one of the caller's kind
  const void* site;
  int mode = 0;  // of a flag between cores
};

inline void* real(const char* name) {
  static void* library = dlopen("libvnpu.so", RTLD_NOLOAD | RTLD_NOW);
  return dlsym(library, name);
}

inline void make(const Call& c) {
  using Flag = void (*)(vnpu::Pipe, vnpu::Pipe, int);
  static auto set = reinterpret_cast<Flag>(real("_ZN4vnpu8set_flagENS_4PipeES0_i"));
  static auto freed = reinterpret_cast<Flag>(real("_ZN4vnpu14set_freed_flagENS_4PipeES0_i"));
  static auto wait = reinterpret_cast<Flag>(real("_ZN4vnpu9wait_flagENS_4PipeES0_i"));
  static auto barrier = reinterpret_cast<void (*)(vnpu::Pipe)>(real("_ZN4vnpu7barrierENS_4PipeE"));
  static auto barrier_all = reinterpret_cast<void (*)()>(real("_ZN4vnpu11barrier_allEv"));
  static auto sync_all = reinterpret_cast<void (*)(bool)>(real("_ZN4vnpu8sync_allEb"));
  using Cross = void (*)(uint32_t, vnpu::Pipe, uint32_t);
  static auto cross_set = reinterpret_cast<Cross>(real("_ZN4vnpu9cross_setEjNS_4PipeEj"));
  static auto cross_wait = reinterpret_cast<void (*)(uint32_t)>(real("_ZN4vnpu10cross_waitEj"));
  switch (c.kind) {
    case 's':
      return set(c.src, c.dst, c.id);
    case 'f':
      return freed(c.src, c.dst, c.id);
    case 'w':
      return wait(c.src, c.dst, c.id);
    case 'b':
      return barrier(c.src);
    case 'B':
      return barrier_all();
    case 'A':
      return sync_all(c.id != 0);
    case 'c':
      return cross_set(static_cast<uint32_t>(c.mode), c.src, static_cast<uint32_t>(c.id));
    case 'x':
      return cross_wait(static_cast<uint32_t>(c.id));
  }
}

// AOT_MUTATION: "list <file>" appends every call to a file; "drop <site>..." leaves calls out; "delay <site>..." makes
// them just before the core's next call; "early <file> <site>..." makes them just before the core's previous call, as
// the file (of a list) tells. A site is a hexadecimal address.
struct Plan {
  std::string text, verb;
  std::vector<const void*> sites;
  FILE* file = nullptr;
  std::map<unsigned, std::vector<Call>> listed, delayed;
  std::map<unsigned, size_t> made;

  bool has(const void* site) const {
    for (const void* s : sites)
      if (s == site) return true;
    return false;
  }
  void read(const char* now) {
    if (file) fclose(file);
    *this = Plan();
    text = now;
    char word[256];
    int used = 0;
    for (const char* p = now; sscanf(p, "%255s%n", word, &used) == 1; p += used) {
      if (verb.empty())
        verb = word;
      else if (strncmp(word, "0x", 2) == 0)
        sites.push_back(reinterpret_cast<const void*>(strtoull(word, nullptr, 16)));
      else if (verb == "list")
        file = fopen(word, "a");
      else
        load(word);
    }
  }
  void load(const char* path) {
    FILE* f = fopen(path, "r");
    unsigned core;
    int src, dst, id, mode;
    char kind;
    void* site;
    while (f && fscanf(f, "%u %c %d %d %d %p %d\n", &core, &kind, &src, &dst, &id, &site, &mode) == 7)
      listed[core].push_back({kind, static_cast<vnpu::Pipe>(src), static_cast<vnpu::Pipe>(dst), id, site, mode});
    if (f) fclose(f);
  }
};

inline void call(const Call& c) {
  static Plan& plan = *new Plan;  // never destroyed: a kernel has nothing that runs when it is unloaded
  const char* now = getenv("AOT_MUTATION");
  if (plan.text != (now ? now : "")) plan.read(now ? now : "");
#ifdef __DAV_C220_CUBE__
  const unsigned core = 2 * vnpu::block_idx() + 1;  // cores of both kinds count from 0
#else
  const unsigned core = 2 * vnpu::block_idx();
#endif
  size_t number = plan.made[core]++;
  if (plan.verb == "list") {
    fprintf(plan.file, "%u %c %d %d %d %p %d\n", core, c.kind, int(c.src), int(c.dst), c.id, c.site, c.mode);
    fflush(plan.file);
  }
  std::vector<Call> due;
  due.swap(plan.delayed[core]);
  for (const Call& d : due) make(d);
  if (plan.verb == "early") {
    const auto& order = plan.listed[core];
    if (number + 1 < order.size() && plan.has(order[number + 1].site)) make(order[number + 1]);
    if (plan.has(c.site) && number > 0) return;
  } else if (plan.has(c.site)) {
    if (plan.verb == "delay") plan.delayed[core].push_back(c);
    return;
  }
  make(c);
}

}  // namespace mutants

#define MUTANT_SITE __builtin_return_address(0)
namespace vnpu {
__attribute__((noinline)) void set_flag(Pipe src, Pipe dst, int id) { mutants::call({'s', src, dst, id, MUTANT_SITE}); }
__attribute__((noinline)) void set_freed_flag(Pipe src, Pipe dst, int id) {
  mutants::call({'f', src, dst, id, MUTANT_SITE});
}
__attribute__((noinline)) void wait_flag(Pipe src, Pipe dst, int id) {
  mutants::call({'w', src, dst, id, MUTANT_SITE});
}
__attribute__((noinline)) void barrier(Pipe pipe) { mutants::call({'b', pipe, pipe, 0, MUTANT_SITE}); }
__attribute__((noinline)) void barrier_all() { mutants::call({'B', Pipe::S, Pipe::S, 0, MUTANT_SITE}); }
__attribute__((noinline)) void cross_set(uint32_t mode, Pipe pipe, uint32_t id) {
  mutants::call({'c', pipe, Pipe::S, static_cast<int>(id), MUTANT_SITE, static_cast<int>(mode)});
}
__attribute__((noinline)) void cross_wait(uint32_t id) {
  mutants::call({'x', Pipe::S, Pipe::S, static_cast<int>(id), MUTANT_SITE});
}
__attribute__((noinline)) void sync_all(bool own_kind) {
  mutants::call({'A', Pipe::S, Pipe::S, own_kind, MUTANT_SITE});
}
}  // namespace vnpu
