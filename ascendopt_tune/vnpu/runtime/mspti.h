// Activity records for profilers that ask through MSPTI (libmspti.so), as torch.profiler does.
#pragma once

#include <cstdint>
#include <string>

#include "../include/vnpu/kernel_info.h"

namespace vnpu_acl {

// Whether anybody asks for records of kernels; one load, as it is asked on every launch.
bool kernel_records_wanted();
// The host's clock in ns, which records are in.
uint64_t record_clock_ns();
// Records a kernel that was issued at `issued_ns` and takes `duration_us`, which is modelled: it begins when it was
// issued or when the stream's last one ended, whichever is later.
void record_kernel(const std::string& name, const vnpu::KernelInfo& info, int stream_id, uint64_t issued_ns,
                   double duration_us);

}  // namespace vnpu_acl
