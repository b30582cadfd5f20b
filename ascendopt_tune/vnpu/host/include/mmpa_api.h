// CANN's layer over the operating system: what log macros of operator repositories use of it.
#pragma once
#include <sys/syscall.h>
#include <unistd.h>

inline int mmGetTid() { return static_cast<int>(syscall(SYS_gettid)); }
