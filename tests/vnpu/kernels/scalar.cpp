// params: call, then operands; results as words of the output
#include "api_kernel.h"

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  run_api(in, out, params, bytes, [in](Params p) {
    LocalTensor<int32_t> d = output<int32_t>();
    LocalTensor<float> f = output<float>();
    float x = p.as_float(1);
    uint64_t u = p.as_u64(1);
    switch (p[0]) {
      case 0:
        d.SetValue(0, ScalarCast<float, int32_t, RoundMode::CAST_RINT>(x));
        d.SetValue(1, ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(x));
        d.SetValue(2, ScalarCast<float, int32_t, RoundMode::CAST_CEIL>(x));
        d.SetValue(3, ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(x));
        d.SetValue(4, (Cast<float, int32_t, RoundMode::CAST_TRUNC>(x)));
        d.SetValue(5, static_cast<int32_t>(GetScalarBitcodeValue(ScalarCast<float, half, RoundMode::CAST_NONE>(x))));
        d.SetValue(6, static_cast<int32_t>(GetScalarBitcodeValue(ScalarCast<float, half, RoundMode::CAST_ODD>(x))));
        d.SetValue(7, static_cast<int32_t>(GetScalarBitcodeValue(ToBfloat16(x))));
        f.SetValue(8, ToFloat(ToBfloat16(x)));
        f.SetValue(9, Cast(Cast(x)));  // to bfloat16_t and back, by their newer names
        return;
      case 1:
        d.SetValue(0, static_cast<int32_t>(ScalarGetCountOfValue<1>(u)));
        d.SetValue(1, static_cast<int32_t>(ScalarGetCountOfValue<0>(u)));
        d.SetValue(2, static_cast<int32_t>(ScalarCountLeadingZero(u)));
        d.SetValue(3, static_cast<int32_t>(ScalarGetSFFValue<1>(u)));
        d.SetValue(4, static_cast<int32_t>(ScalarGetSFFValue<0>(u)));
        d.SetValue(5, static_cast<int32_t>(CountBitsCntSameAsSignBit(static_cast<int64_t>(u))));
        return;
      case 2: {  // a list of tensors: count, then per tensor number of dimensions, last dimension, low word of the
                 // pointer
        ListTensorDesc list(in);
        d.SetValue(0, static_cast<int32_t>(list.GetSize()));
        for (uint32_t i = 0; i < list.GetSize(); i++) {
          uint64_t shape[8];
          TensorDesc<float> t;
          t.SetShapeAddr(shape);
          uint64_t dims = 0;
          if (p[1]) {
            list.GetDesc(t, i);
            dims = t.GetDim();
          }
          d.SetValue(1 + 3 * i, static_cast<int32_t>(dims));
          d.SetValue(2 + 3 * i, static_cast<int32_t>(dims ? t.GetShape(dims - 1) : 0));
          d.SetValue(3 + 3 * i, static_cast<int32_t>(reinterpret_cast<uint64_t>(list.GetDataPtr<float>(i))));
        }
        if (p[2]) list.GetDataPtr<float>(list.GetSize());
        return;
      }
      case 3:
        ASSERT(p[1] == 1 && "the first operand is one");
        ASSERT_MSG(p[2] == 1, "the second is %d", p[2]);
        assert(p[3] == 1);
        if (p[4]) Trap();
        return;
      case 4: {  // divisions of every width, of numbers in registers and in memory
        const int64_t wide = p[1];
        const int32_t word = p[1];
        const int16_t shorter = static_cast<int16_t>(p[1]);
        d.SetValue(0, p[3] / word);
        d.SetValue(1, p[3] % word);
        d.SetValue(2, static_cast<int32_t>(uint32_t(p[3]) / uint32_t(p[1])));
        d.SetValue(3, static_cast<int32_t>((int64_t(p[3]) << 33) / wide));
        d.SetValue(4, static_cast<int32_t>(uint64_t(p[3]) % uint64_t(wide)));
        d.SetValue(5, static_cast<int16_t>(p[3]) / shorter);
        d.SetValue(6, p[3] / p[2 + p[1]]);
        if (p[2]) d.SetValue(7, p[3] % p[4]);  // not used otherwise
        return;
      }
    }
  });
}
