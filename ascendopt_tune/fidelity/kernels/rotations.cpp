// Singular values of a 32 x 32 matrix in float by one-sided Jacobi rotations, every step of it on the scalar unit:
// twelve sweeps over all pairs of columns in UB, and the columns made orthogonal in GM. The matrix is drawn by the
// kernel: how many pairs have to be rotated differs by 1 or 2 % between matrices.
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t N = 32, SWEEPS = 12, HALVINGS = 8;

// Columns in blocks of 8, as a tile's.
__aicore__ inline int32_t At(int32_t row, int32_t column) { return column / 8 * 8 * N + row * 8 + column % 8; }

__aicore__ inline float Root(float x) {
  float root = x > 1.0f ? x : 1.0f;
  for (int32_t i = 0; i < HALVINGS; i++) root = 0.5f * (root + x / root);
  return root;
}

__aicore__ inline void Turn(LocalTensor<float>& m, int32_t p, int32_t q, float c, float s) {
  for (int32_t k = 0; k < N; k++) {
    const float left = m.GetValue(At(k, p)), right = m.GetValue(At(k, q));
    m.SetValue(At(k, p), c * left - s * right);
    m.SetValue(At(k, q), s * left + c * right);
  }
}

__aicore__ inline void Sweep(LocalTensor<float>& x, LocalTensor<float>& v) {
  for (int32_t p = 0; p < N; p++) {
    for (int32_t q = p + 1; q < N; q++) {
      float pp = 0, qq = 0, pq = 0;
      for (int32_t k = 0; k < N; k++) {
        const float left = x.GetValue(At(k, p)), right = x.GetValue(At(k, q));
        pp += left * left;
        qq += right * right;
        pq += left * right;
      }
      const float least = 1e-6f * (pp + qq + 1.0f);
      if (pq <= least && pq >= -least) continue;
      const float tau = (qq - pp) / (2.0f * pq);
      const float bottom = tau + (tau < 0 ? -1.0f : 1.0f) * Root(1.0f + tau * tau);
      const float t = bottom > 1e-6f || bottom < -1e-6f ? 1.0f / bottom : 0.0f, c = 1.0f / Root(1.0f + t * t);
      Turn(x, p, q, c, t * c);
      Turn(v, p, q, c, t * c);
    }
  }
}

__aicore__ inline void MakeOrthogonal(GlobalTensor<float>& u) {
  for (int32_t j = 0; j < N; j++) {
    for (int32_t k = 0; k < j; k++) {
      float along = 0;
      for (int32_t i = 0; i < N; i++) along += u.GetValue(i * N + k) * u.GetValue(i * N + j);
      for (int32_t i = 0; i < N; i++) u.SetValue(i * N + j, u.GetValue(i * N + j) - along * u.GetValue(i * N + k));
    }
    float square = 0;
    for (int32_t i = 0; i < N; i++) square += u.GetValue(i * N + j) * u.GetValue(i * N + j);
    const float norm = Root(square);
    for (int32_t i = 0; i < N; i++) u.SetValue(i * N + j, u.GetValue(i * N + j) / norm);
  }
}

extern "C" __global__ __aicore__ void rotations(GM_ADDR a, GM_ADDR u, GM_ADDR s, GM_ADDR vh) {
  GlobalTensor<float> as, us, ss, vs;
  as.SetGlobalBuffer((__gm__ float*)a);
  us.SetGlobalBuffer((__gm__ float*)u);
  ss.SetGlobalBuffer((__gm__ float*)s);
  vs.SetGlobalBuffer((__gm__ float*)vh);
  LocalTensor<float> x(TPosition::VECCALC, 0, N * N), v(TPosition::VECCALC, 4 * N * N, N * N);
  LocalTensor<float> sigma(TPosition::VECCALC, 8 * N * N, N);
  uint32_t drawn = 1;
  for (int32_t i = 0; i < N; i++) {
    for (int32_t j = 0; j < N; j++) {
      drawn = drawn * 1664525u + 1013904223u;
      as.SetValue(i * N + j, static_cast<float>(static_cast<int32_t>(drawn >> 8)) / 8388608.0f - 1.0f);
      x.SetValue(At(i, j), as.GetValue(i * N + j));
      v.SetValue(At(i, j), i == j ? 1.0f : 0.0f);
    }
  }
  for (int32_t sweep = 0; sweep < SWEEPS; sweep++) Sweep(x, v);
  for (int32_t j = 0; j < N; j++) {
    float square = 0;
    for (int32_t i = 0; i < N; i++) square += x.GetValue(At(i, j)) * x.GetValue(At(i, j));
    sigma.SetValue(j, square == 0 ? 0.0f : Root(square));
  }
  for (int32_t i = 0; i < N; i++)
    for (int32_t j = 0; j < N; j++)
      us.SetValue(i * N + j, sigma.GetValue(j) > 1e-6f ? x.GetValue(At(i, j)) / sigma.GetValue(j) : 0.0f);
  MakeOrthogonal(us);
  for (int32_t j = 0; j < N; j++) {
    float value = 0;
    for (int32_t i = 0; i < N; i++) value += us.GetValue(i * N + j) * x.GetValue(At(i, j));
    ss.SetValue(j, value);
  }
  for (int32_t i = 0; i < N; i++)
    for (int32_t j = 0; j < N; j++) vs.SetValue(i * N + j, v.GetValue(At(j, i)));
}
