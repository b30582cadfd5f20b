// Products of a batch: which matrices each of them takes, where these lie, and how they wait in L1.
#pragma once
#include <cstdint>

#include "multiplication.h"

namespace vnpu {

// On the cube core that works: all products of a call, to their places in C, which begins at `to`. `local`: C is on its
// way to the Unified Buffer, its rows begin at multiples of 32 bytes.
void make_batch(Matmul& m, const BatchCall& call, void* to, bool local, const char* api);
// The `loop`-th of several calls: A, B, the bias and C begin behind those of the calls before.
void make_batch_of(Matmul& m, const BatchCall& call, uint32_t loop, void* to, const char* api);

// Bytes from C's first element to its last, rows that begin at multiples of 32 bytes.
uint64_t batch_bytes(const Matmul& m, const BatchCall& call, const char* api);
// Where the `loop`-th call's C begins in the workspace, and its rows there: one of each matrix beside each other.
struct BatchRows {
  uint64_t offset = 0;
  uint32_t pieces = 1;
  uint64_t bytes = 0, pitch = 0;
};
BatchRows batch_rows(const Matmul& m, const BatchCall& call, uint32_t loop, const char* api);

}  // namespace vnpu
