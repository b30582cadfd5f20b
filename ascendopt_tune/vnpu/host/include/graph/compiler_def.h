// Compiler attribute spelled as CANN's headers do.
#pragma once
#ifndef VAR_UNUSED
#define VAR_UNUSED [[maybe_unused]]
#endif
