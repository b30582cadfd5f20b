// The library that operators of CANN's open repositories ask for what older ones did (libophost_comm_legacy.so): it is
// in no public package, and a repository's own LegacyCommonMgr looks for it below CANN's installation. Here the class
// finds this library instead (sources/around.py leaves its own body out), and of the functions those that prepare the
// cache in which CANN keeps tilings: no tiling is kept here, so there is nothing to prepare, and they succeed, as
// the stubs do that the repositories' own tests are built with. Whoever asks for another function gets a null
// pointer, as where the library is missing.
#include <dlfcn.h>

namespace gert {
class TilingContext;
class TilingParseContext;
}  // namespace gert

namespace Ops::NN {

// As the repositories declare it.
class LegacyCommonMgr {
 public:
  LegacyCommonMgr();
  ~LegacyCommonMgr();
  static const LegacyCommonMgr& GetInstance();

 private:
  void* handle_;
};

}  // namespace Ops::NN

extern "C" bool LegacyTilingPrepareForOpCache(gert::TilingContext*) { return true; }
extern "C" bool LegacyTilingParsePrepareForOpCache(gert::TilingParseContext*) { return true; }

namespace Ops::NN {

LegacyCommonMgr::LegacyCommonMgr() : handle_(nullptr) {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&LegacyTilingPrepareForOpCache), &here) != 0)
    handle_ = dlopen(here.dli_fname, RTLD_LAZY | RTLD_LOCAL);
}

LegacyCommonMgr::~LegacyCommonMgr() {
  if (handle_ != nullptr) dlclose(handle_);
}

const LegacyCommonMgr& LegacyCommonMgr::GetInstance() {
  static const LegacyCommonMgr instance;
  return instance;
}

}  // namespace Ops::NN
