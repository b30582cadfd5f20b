// gert::TilingParseContext: fills an operator's compile info once, from the platform.
#pragma once
#include "exe_graph/runtime/kernel_context.h"

namespace fe {
class PlatFormInfos;
}

namespace gert {

class TilingParseContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  const char* GetCompiledJson() const { return "{}"; }
  template <typename T>
  T* GetCompiledInfo() {
    return static_cast<T*>(CompiledInfo());
  }
  fe::PlatFormInfos* GetPlatformInfo() const;

 private:
  void* CompiledInfo() const;
};

}  // namespace gert
