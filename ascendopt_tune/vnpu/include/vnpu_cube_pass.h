// What differs where a kernel is compiled for cube cores. Included behind kernel_operator.h, whose precompiled form
// both passes use.
#pragma once

#undef VNPU_CUBE_PASS
#define VNPU_CUBE_PASS true
#undef __DAV_C220_VEC__
#undef __DAV_VEC__
#define __DAV_C220_CUBE__ 1
#define __DAV_CUBE__ 1
