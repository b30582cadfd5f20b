// AscendC's names for what the machine does (core/words.h).
#include "../core/words.h"

namespace vnpu {

const Words kWords = {
    "SetFlag",
    "WaitFlag",
    "PipeBarrier",
    "PipeBarrier<PIPE_ALL>",
    "SyncAll",
    "CrossCoreSetFlag",
    "CrossCoreWaitFlag",
    "the answer of the cube core, for which Matmul waits,",
    "GetSystemCycle",
    "SetAtomicNone, AscendC reference: it is to be switched off, so that what follows is not affected",
    "InitBuffer",
    "AllocEventID",
    "TQue::FreeTensor",
    "KERNEL_TASK_TYPE_DEFAULT, __cube__ or __mix__ says which cores a kernel runs on",
    "ASCEND_IS_AIC and ASCEND_IS_AIV tell which core it is",
    "modes 1 and 2 order the cores of one group, which only mixed kernels have, and mode 1 its vector cores",
    "copies to TSCM that a vector core asks its cube core for are DataCopy in a mixed kernel",
    "with false it needs cube cores and vector cores, and the core would wait for ever (AscendC reference, SyncAll)",
    "the workspace in global memory has to hold zeros for every core when the first one gets there (AscendC reference, "
    "SyncAll)",
    "the cube core waits for a message of its vector cores, and all of them have ended: each has to get to "
    "REGIST_MATMUL_OBJ, and the cube core with it",
    "GET_TILING_DATA",
    "printf",
    "they must come in pairs (AscendC reference, SetFlag/WaitFlag)",
    "the core hangs (AscendC reference, SetFlag/WaitFlag)",
    "(AscendC reference, InitBuffer)",
    "(AscendC reference, general notes: overlapping addresses)",
    "DataCacheCleanAndInvalid: the scalar unit loads and writes back whole lines of 64 bytes, when it likes",
};

std::string missing_edge(Pipe p, Pipe q) {
  if (p == q) return std::string("PipeBarrier<PIPE_") + pipe_name(p) + ">";
  const std::string event = std::string("<HardEvent::") + pipe_name(p) + "_" + pipe_name(q) + ">";
  const bool queue = p != Pipe::S && q != Pipe::S;
  return "SetFlag" + event + " / WaitFlag" + event + (queue ? " (or a queue's EnQue / DeQue)" : "");
}

}  // namespace vnpu
