// Control registers, padding by register, atomic configurations. params: call, then per call; see the cases.
#include "api_kernel.h"
#include "c_api/asc_simd.h"

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  asc_init();
  GlobalTensor<half> source;
  source.SetGlobalBuffer(reinterpret_cast<half*>(in));
  GlobalTensor<float> sums;
  sums.SetGlobalBuffer(reinterpret_cast<float*>(out));
  run_api(in, out, params, bytes, [&](Params p) {
    LocalTensor<int32_t> d = output<int32_t>();
    switch (p[0]) {
      case 0:  // value
        d.SetValue(0, static_cast<int32_t>(GetCtrlSpr<48, 48>()));
        SetCtrlSpr<48, 48>(p[1]);
        d.SetValue(1, static_cast<int32_t>(GetCtrlSpr<48, 48>()));
        break;
      case 1:  // value
        d.SetValue(0, GetSaturationFlag<SaturationMode::FLOAT>());
        SetSaturationFlag<SaturationMode::FLOAT>(p[1]);
        break;
      case 2:  // value
        d.SetValue(0, GetSaturationFlag<SaturationMode::CAST>());
        SetSaturationFlag<SaturationMode::CAST>(p[1]);
        break;
      case 3: {  // left, right, value, register is set: 0 not, 1 before, 2 and a copy had a value of its own since
        DataCopyPadExtParams<half> none(false, p[1], p[2], static_cast<half>(9)), own(true, p[1], p[2], half(5));
        DataCopyExtParams shape(1, 2 * p[5], 0, 0, 0);
        if (p[4]) SetPadValue(static_cast<half>(p[3]));
        if (p[4] == 2) {
          DataCopyPad(output<half>(), source, shape, own);
          PipeBarrier<PIPE_MTE2>();
        }
        DataCopyPad(output<half>(), source, shape, none);
        break;
      }
      case 4: {  // what was on before: 0 nothing, 1 a sum of floats, 2 a maximum
        if (p[1] == 1) SetStoreAtomicConfig<AtomicDtype::ATOMIC_F32, AtomicOp::ATOMIC_SUM>();
        if (p[1] == 2) SetAtomicMax<float>();
        uint16_t type = 9, op = 9;
        GetStoreAtomicConfig(type, op);
        DataCopy(sums[16], input<float>(), 8);
        PipeBarrier<PIPE_ALL>();
        SetStoreAtomicConfig<AtomicDtype::ATOMIC_NONE, AtomicOp::ATOMIC_SUM>();
        DataCopy(output<float>(64), sums[16], 8);
        d.SetValue(0, type);
        d.SetValue(1, op);
        break;
      }
      case 5: {
        auto* base = GetTPipePtr();
        d.SetValue(0, static_cast<int32_t>(asc_get_block_idx() + asc_get_block_num()));
        TPipe pipe;
        d.SetValue(1, base == nullptr &&
                          pipe.GetBaseAddr(static_cast<int8_t>(TPosition::VECCALC)) ==
                              reinterpret_cast<uint8_t*>(LocalTensor<uint8_t>(TPosition::VECIN, 0, 32).GetPhyAddr()));
        asc_dcci_entire_out();
        break;
      }
    }
  });
}
