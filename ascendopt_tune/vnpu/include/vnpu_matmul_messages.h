// What the Matmul of other headers takes from CANN's inner headers in mixed kernels: the messages with which its client
// on a vector core asks its server on the cube core (KFC), under CANN's names. How they get there is the virtual NPU's
// (ascendc/matmul_messages.h). Fields are those that the Matmul sets and reads.
#pragma once
#include "kernel_operator.h"

#define MSG_POS

namespace AscendC {

constexpr int32_t MAX_MATMUL_OBJ = 8;
constexpr uint64_t INC_PROCESS_CHECK = 14;  // blocks of one call that are told one by one

// The high byte is a service; the Matmul asks by mask which calls multiply.
enum class KFC_Enum : uint16_t {
  SERVICE_ID_SCM = 0x0100,
  SCMFUN_GM2L1,
  SCMFUN_GM2L1ND2NZ,
  SERVICE_ID_MATMUL = 0x0300,
  MMFUN_INIT,
  MMFUN_GET_TENSOR_C,
  MMFUN_SET_ORG_SHAPE,
  MMFUN_SET_HF32,
  MMFUN_SET_USER_DEF_INFO,
  MMFUN_ITERATE_BATCH_ALL,
  MMFUN_ITERATE_N_BATCH_ALL,
  MMFUN_END,
  MMFUN_MASK = 0x0380,
  MMFUN_ITERATE = 0x0380,
  MMFUN_ITERATE_ALL,
  SERVICE_QUIT = 0xfd00,
  SERVICE_ID_MASK = 0xff00,
};

// A call and its object in a message's head.
ASCENDC_INLINE uint32_t KfcMsgMakeFlag(KFC_Enum function, uint16_t object) {
  return static_cast<uint32_t>(function) << 16 | object;
}
ASCENDC_INLINE KFC_Enum KfcMsgGetFunID(uint32_t head) { return static_cast<KFC_Enum>(head >> 16); }
ASCENDC_INLINE uint16_t KfcMsgGetInstID(uint32_t head) { return static_cast<uint16_t>(head); }

struct TilingInfo {
  GM_ADDR tilingAddr;
};
struct MatmulOrgShape {
  uint32_t orgM, orgN, orgKa, orgKb, orgKc;
};
struct MatmulUserDefInfo {
  uint64_t tilingPtr;
};
// The flags are within the first 8 bytes, which the Matmul clears as one word.
struct MatmulConfigParams {
  uint32_t enAtomic : 8, enSequentialWrite : 1, isTransA : 1, isTransB : 1, enPartialSum : 1, isFirstIter : 1, sync : 1,
      cIsTscm : 1, setTail : 1, setTensorA : 1, setTensorB : 1, setTensorBias : 1, setQuant : 1, setBatch : 1,
      enHF32 : 1, hf32TransMode : 1, waitIterateAll : 1, waitIterateBatch : 1, iterateFakeMsg : 1;
  uint32_t singleM, singleN, singleK;
  uint32_t sizeAmatrix, sizeBmatrix;  // bytes
  uint32_t quantMode, quantSize;      // 1: a word for all columns, 2: a word for each
  uint32_t batchA, batchB, batchLoop;
  uint32_t matrixStrideA, matrixStrideB, matrixStrideC;
  uint64_t aAddr, bAddr, cAddr, biasAddr, quantAddr, quantScalar, dataPtr;
};
// The first 8 bytes are cleared as one word, too.
struct alignas(64) KfcMsg {
  uint32_t head = 0;
  int32_t ubAddr = -1;  // where what lies in the client's room ends
  union {
    uint8_t buffer[120];
    TilingInfo tilingInfo;
    MatmulConfigParams body;
    MatmulOrgShape orgShape;
    MatmulUserDefInfo userDefInfo;
  };
};
static_assert(sizeof(KfcMsg) == 128, "a message of CANN's is two cache lines");

// Of a vector core. What it sends last says that it has ended.
class KfcCommClient {
 public:
  ASCENDC_INLINE KfcCommClient(GM_ADDR, int, uint8_t = 0) {}
  ASCENDC_INLINE ~KfcCommClient() noexcept(false) {
    message_ = {};
    message_.head = KfcMsgMakeFlag(KFC_Enum::SERVICE_QUIT, 0);
    message_.ubAddr = static_cast<int32_t>(GetTaskRatio());
    PostMessage<false>(&message_);
  }
  KfcCommClient(const KfcCommClient&) = delete;

  // The one message there is: it is copied when it is posted.
  ASCENDC_INLINE KfcMsg* AllocMessage() { return &message_; }
  template <bool isAck>
  ASCENDC_INLINE void PostMessage(KfcMsg*) {
    matmul_api::matmul_inner::send_message(message_);
  }
  ASCENDC_INLINE GM_ADDR AllocUB(uint32_t bytes, int32_t& end) {
    return matmul_api::matmul_inner::message_room(bytes, end);
  }

 private:
  KfcMsg message_;

 public:
  KfcMsg* const ubMsg = &message_;
};

// Of a cube core, for one vector core of its group.
class KfcCommServer {
 public:
  // What starts a kernel of CANN's clears the workspace for messages, for which vector cores wait. Here it is none.
  ASCENDC_INLINE void Init(GM_ADDR, int sub) {
    constexpr uint16_t kCleared = 15;
    subBlockID = static_cast<uint8_t>(sub);
    if (sub == 0) CrossCoreSetFlag<2, PIPE_MTE3>(kCleared);
  }
  ASCENDC_INLINE KfcMsg* RcvMessage() {
    return matmul_api::matmul_inner::receive_message(subBlockID, message_) ? &message_ : nullptr;
  }
  ASCENDC_INLINE void RollBackMsg() { matmul_api::matmul_inner::put_back_message(subBlockID, message_); }
  ASCENDC_INLINE void FreeMessage(KfcMsg*) { matmul_api::matmul_inner::message_done(); }
  ASCENDC_INLINE void FreeUB(int32_t end) { matmul_api::matmul_inner::message_room_done(subBlockID, end); }

  uint8_t subBlockID = 0;

 private:
  KfcMsg message_;
};
using KFC_COMM_SERVER_PTR = KfcCommServer*;
using KFC_COMM_SERVER = KfcCommServer;

ASCENDC_INLINE void ClearWorkspaceImpl(GM_ADDR) {}  // there is none

// Where their macro leaves the client; nobody takes it from there.
struct KfcClientOfAll {
  ASCENDC_INLINE void operator=(KfcCommClient*) const {}
};
constexpr KfcClientOfAll g_kfcClient{};

// Copies that vector cores ask the cube core for, to L1.
ASCENDC_INLINE void ScmDataCopy(void*) { matmul_api::matmul_inner::refuse_copy_to_tscm(); }
ASCENDC_INLINE void ScmDataCopyND2NZ(void*) { matmul_api::matmul_inner::refuse_copy_to_tscm(); }

// Their flags, two for each object: the cube core raises one for the vector core that its number ends with.
namespace detail {
// The workspace for messages: one that nobody looks into.
ASCENDC_INLINE GM_ADDR message_workspace(const void*) { return reinterpret_cast<GM_ADDR>(uintptr_t{1}); }
template <pipe_t pipe>
ASCENDC_INLINE void raise_notice(uint16_t id) {
  matmul_api::matmul_inner::raise_notice<pipe>(id % 2, id);
}
template <pipe_t = PIPE_S>
ASCENDC_INLINE void await_notice(uint16_t id) {
  matmul_api::matmul_inner::await_notice(id);
}
}  // namespace detail

}  // namespace AscendC
