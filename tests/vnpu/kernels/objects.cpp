// params: what is asked, then operands. Answers are words of `out`, written by the scalar unit.
#include "api_kernel.h"

struct Answers {
  GlobalTensor<int32_t> out;
  uint32_t n = 0;
  __aicore__ inline void operator()(int64_t value) { out.SetValue(n++, static_cast<int32_t>(value)); }
};

__aicore__ inline void tensors(Answers& say, GM_ADDR in, TPipe& pipe) {
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 512);
  LocalTensor<float> x = buffer.Get<float>(), y = buffer.GetWithOffset<float>(32, 128);
  for (int i = 0; i < 128; i++) x.SetValue(i, static_cast<float>(i));
  say(y.GetValue(1));
  say(y.GetSize());
  say(x.GetLength());
  say(static_cast<TPosition>(x.GetPosition()) == TPosition::VECCALC);
  say(x.ReinterpretCast<int32_t>().GetValue(2));
  say(x.ReinterpretCast<half>().GetSize());
  say(x[5](6));
  y.SetAddrWithOffset(x, 100);
  say(y.GetValue(3));
  x.SetSize(7);
  say(x.GetSize());
  x.SetBufferLen(64);
  say(x.GetSize());
  x.SetUserTag(42);
  say(x.GetUserTag());
  ShapeInfo shape;
  shape.shapeDim = 2;
  shape.shape[1] = 9;
  x.SetShapeInfo(shape);
  say(x.GetShapeInfo().shapeDim * 100 + x.GetShapeInfo().shape[1]);
  GlobalTensor<int32_t> gm;
  gm.SetGlobalBuffer((__gm__ int32_t*)in, 8);
  gm.SetShapeInfo(shape);
  say(gm.GetShapeInfo().shape[1]);
  say(gm.GetSize());
  say(gm[3].GetValue(1));
  say(gm.GetPhyAddr(2) - gm.GetPhyAddr());
}

constexpr TQueConfig kTwoOf64{false, false, false, 64, 2, 0, {TPosition::MAX}};

__aicore__ inline void queues(Answers& say, TPipe& pipe) {
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2, &kTwoOf64> queue;
  pipe.InitBuffer(queue, 2, 64);
  say(queue.HasIdleBuffer());
  say(queue.VacantInQue());
  say(queue.HasTensorInQue());
  auto first = queue.AllocTensor<float>();
  auto second = queue.AllocTensor<float>();
  say(queue.HasIdleBuffer());
  queue.EnQue(first);
  say(queue.GetTensorCountInQue());
  queue.EnQue(second);
  say(queue.VacantInQue());
  say(queue.HasTensorInQue());
  first = queue.DeQue<float>();
  queue.FreeTensor(first);
  say(queue.GetTensorCountInQue());
  say(queue.HasIdleBuffer());
  second = queue.DeQue<float>();
  queue.FreeTensor(second);
  queue.FreeAllEvent();
  say(queue.HasTensorInQue());
  int8_t id = pipe.FetchEventID(HardEvent::V_MTE3);
  int8_t taken = pipe.AllocEventID<HardEvent::V_MTE3>();
  say(id == taken);
  say(pipe.FetchEventID<HardEvent::V_MTE3>() != taken);
  pipe.ReleaseEventID<HardEvent::V_MTE3>(taken);
  say(pipe.FetchEventID(HardEvent::V_MTE3) == taken);
  say(GetTPipePtr() == &pipe);
  LocalTensor<float> rest;
  say(PopStackBuffer<float, TPosition::VECCALC>(rest));
  uint32_t before = rest.GetLength();
  pipe.Reset();
  PopStackBuffer<float, TPosition::VECCALC>(rest);
  say(rest.GetLength() - before);
  say(rest.GetLength() <= GetUBSizeInBytes());
}

__aicore__ inline void scalars(Answers& say, uint64_t value, GM_ADDR in, GM_ADDR out) {
  say(CountLeadingZero(value));
  say(GetBitCount<1>(value));
  say(GetBitCount<0>(value));
  say(GetSFFValue<1>(value));
  say(GetSFFValue<0>(value));
  say(DivCeil(static_cast<uint32_t>(value & 0xffff), 7));
  say(AlignUp(static_cast<uint32_t>(value & 0xffff), 7));
  say(ReadGmByPassDCache((__gm__ int32_t*)in + 2));
  DataCacheCleanAndInvalid<int32_t, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(say.out);
  WriteGmByPassDCache((__gm__ int32_t*)out + say.n++, static_cast<int32_t>(value));
}

__aicore__ inline void system(Answers& say, GM_ADDR workspace) {
  InitSocState();
  ICachePreLoad(1);
  say(GetBlockIdx());
  say(GetBlockNum());
  say(GetSubBlockIdx());
  say(GetSubBlockNum());
  say(GetTaskRatio());
  say(GetDataBlockSizeInBytes());
  say(GetICachePreloadStatus());
  say(GetSystemCycle() >= 0);
  SetSysWorkspace(workspace);
  say(GetSysWorkSpacePtr() == workspace);
  say(GetUserWorkspace(workspace) == workspace);
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  Params p = {reinterpret_cast<const int32_t*>(params)};
  TPipe pipe;
  Answers say;
  say.out.SetGlobalBuffer((__gm__ int32_t*)out);
  if (p[0] == 0) tensors(say, in, pipe);
  if (p[0] == 1) queues(say, pipe);
  if (p[0] == 2) scalars(say, p.as_u64(1), in, out);
  if (p[0] == 3) system(say, in);
  if (p[0] == 4) {
    GlobalTensor<int16_t> half_words;
    half_words.SetGlobalBuffer((__gm__ int16_t*)out);
    InitGlobalMemory(say.out, static_cast<uint64_t>(p[1]), p[2]);
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
    auto later = half_words[2 * p[1]];
    InitOutput(later, static_cast<uint32_t>(p[3]), static_cast<int16_t>(p[4]));
    DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(say.out);
  }
}
