// A device that tells a time and nothing else, for tests: CANN's libraries as the binding knows them, played by the
// virtual NPU's. Every function goes on to the library TARGET, loaded so that none of its other symbols is seen: no
// report, no profile, no options. Times scatter by up to 1 %, as on a device, and LOG gets a line per loaded binary.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using Word = intptr_t;
using Any = Word (*)(Word, Word, Word, Word, Word, Word);  // six words in registers fit every function below

Any find(const char* name) {
  static void* const library = dlopen(TARGET, RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    abort();
  }
  return reinterpret_cast<Any>(found);
}

}  // namespace

#define FORWARD(name)                                                    \
  extern "C" Word name(Word a, Word b, Word c, Word d, Word e, Word f) { \
    static const Any go = find(#name);                                   \
    return go(a, b, c, d, e, f);                                         \
  }

#ifdef LOG
FORWARD(aclInit)
FORWARD(aclGetRecentErrMsg)
FORWARD(aclrtGetSocName)
FORWARD(aclrtSetDevice)
FORWARD(aclrtMalloc)
FORWARD(aclrtFree)
FORWARD(aclrtMemcpy)
FORWARD(aclrtMemset)
FORWARD(aclrtBinaryGetFunction)
FORWARD(aclrtBinaryUnLoad)
FORWARD(aclrtLaunchKernelWithArgsArray)
FORWARD(aclrtCreateStream)
FORWARD(aclrtDestroyStream)
FORWARD(aclrtSynchronizeDevice)
FORWARD(aclrtSynchronizeStream)
FORWARD(aclrtCreateEventExWithFlag)
FORWARD(aclrtDestroyEvent)
FORWARD(aclrtRecordEvent)
FORWARD(aclrtSynchronizeEvent)

extern "C" Word aclrtBinaryLoadFromData(Word data, Word size, Word options, Word handle) {
  static const Any go = find("aclrtBinaryLoadFromData");
  if (FILE* log = fopen(LOG, "a")) {
    fprintf(log, "%lld bytes\n", static_cast<long long>(size));
    fclose(log);
  }
  return go(data, size, options, handle, 0, 0);
}

extern "C" Word aclrtEventElapsedTime(float* ms, Word start, Word end) {
  static const Any go = find("aclrtEventElapsedTime");
  static uint32_t state = 1;
  const Word code = go(reinterpret_cast<Word>(ms), start, end, 0, 0, 0);
  state = state * 1664525u + 1013904223u;  // a linear congruential generator: Numerical Recipes, 7.1
  *ms *= 0.99f + 0.02f * static_cast<float>(state >> 8) / 16777216.0f;
  return code;
}
#else
FORWARD(aclrtcCreateProg)
FORWARD(aclrtcCompileProg)
FORWARD(aclrtcDestroyProg)
FORWARD(aclrtcGetBinDataSize)
FORWARD(aclrtcGetBinData)
FORWARD(aclrtcGetCompileLogSize)
FORWARD(aclrtcGetCompileLog)
#endif
