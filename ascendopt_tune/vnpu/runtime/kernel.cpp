// Kernel binaries: loading, function lookup, and what can be asked of a function.
//
// A binary is a shared object with one `__vnpu_kernel_<name>` symbol (vnpu::KernelInfo) per kernel.
#include "kernel.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <set>
#include <unistd.h>

#include "../core/memory.h"
#include "state.h"

namespace vnpu_acl {
namespace {

struct Binaries {
  std::map<void*, std::unique_ptr<Binary>> live;
  std::set<const void*> functions;
};

Binaries& binaries() {
  static auto* const instance = new Binaries;
  return *instance;
}

// dlopen answers from what is loaded when it has seen the path before, so every binary gets a path never used again.
void* open_library(const void* data, size_t size, std::string* error) {
  static std::atomic<unsigned> counter{0};
  const char* folder = getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/vnpu-" +
                     std::to_string(getpid()) + "-" + std::to_string(counter++) + "-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) {
    *error = path + ": " + strerror(errno);
    return nullptr;
  }
  size_t written = 0;
  while (written < size) {
    const ssize_t n = write(file, static_cast<const char*>(data) + written, size - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  void* library = nullptr;
  if (close(file) != 0 || written != size) {
    *error = path + ": " + strerror(errno);
  } else {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) *error = dlerror();
  }
  unlink(path.c_str());
  return library;
}

// Tells the machine where the binary's constants lie: kernels copy from `const __gm__` arrays as from any tensor.
std::vector<void*> register_constants(void* library) {
  link_map* map = nullptr;
  std::vector<void*> registered;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return registered;
  struct Search {
    ElfW(Addr) base;
    std::vector<void*>* registered;
  } search{map->l_addr, &registered};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* s = static_cast<Search*>(data);
        if (info->dlpi_addr != s->base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & (PF_W | PF_X)) != 0) continue;
          void* begin = reinterpret_cast<void*>(info->dlpi_addr + segment.p_vaddr);
          vnpu::gm_register_constants(begin, segment.p_memsz);
          s->registered->push_back(begin);
        }
        return 1;
      },
      &search);
  return registered;
}

// Of the compiler's start-up files, and what its tables of clean-ups (a TPipe has an end) name.
bool is_the_compilers(const char* name, size_t size) {
  return (size == 1 && strncmp(name, "completed.", 10) == 0) || strncmp(name, "DW.ref.", 7) == 0;
}

// Whether kernels of this ELF file have variables, which all cores share; true where it has no symbols to tell.
bool has_variables(const char* data, size_t size) {
  using Section = ElfW(Shdr);
  using Symbol = ElfW(Sym);
  const auto* file = reinterpret_cast<const ElfW(Ehdr)*>(data);
  if (file->e_shoff > size || file->e_shnum > (size - file->e_shoff) / sizeof(Section)) return true;
  const auto* sections = reinterpret_cast<const Section*>(data + file->e_shoff);
  const auto* end = sections + file->e_shnum;
  const auto* table = std::find_if(sections, end, [](const Section& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == end) return true;
  const char* const names = data + sections[table->sh_link].sh_offset;
  const char* const section_names = data + sections[file->e_shstrndx].sh_offset;
  const auto* symbols = reinterpret_cast<const Symbol*>(data + table->sh_offset);
  return std::any_of(symbols, symbols + table->sh_size / sizeof(Symbol), [&](const Symbol& s) {
    if (s.st_size == 0 || s.st_shndx == SHN_UNDEF || s.st_shndx >= file->e_shnum) return false;
    const Section& in = sections[s.st_shndx];
    if ((in.sh_flags & SHF_WRITE) == 0 || strcmp(section_names + in.sh_name, ".data.rel.ro") == 0) return false;
    return !is_the_compilers(names + s.st_name, s.st_size);
  });
}

Binary* find_binary(void* handle, const char* caller) {
  const auto found = binaries().live.find(handle);
  if (found != binaries().live.end()) return found->second.get();
  fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the handle is not a loaded binary", caller);
  return nullptr;
}

}  // namespace

Function* find_function(const void* handle, const char* caller) {
  const std::lock_guard<std::mutex> lock(state_mutex());
  if (binaries().functions.count(handle) == 0) {
    fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the handle is not a function of a loaded binary", caller);
    return nullptr;
  }
  return static_cast<Function*>(const_cast<void*>(handle));
}

std::vector<ParamPlace> param_places(const Function& function) {
  std::vector<ParamPlace> places;
  size_t end = 0;
  for (uint32_t i = 0; i < function.info->param_count; ++i) {
    const size_t size = function.info->param_sizes[i];
    const size_t alignment = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
    const size_t offset = (end + alignment - 1) / alignment * alignment;
    places.push_back({offset, size});
    end = offset + size;
  }
  return places;
}

}  // namespace vnpu_acl

using namespace vnpu_acl;

aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions*,
                                 aclrtBinHandle* handle) {
  if (data == nullptr || handle == nullptr || length < 4) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryLoadFromData: no data, or no place for the handle");
  }
  if (memcmp(data, "\177ELF", 4) != 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryLoadFromData: the data is not an ELF file");
  }
  std::string error;
  void* library = open_library(data, length, &error);
  if (library == nullptr) {
    return fail(ACL_ERROR_RT_KERNEL_LOOKUP,
                "aclrtBinaryLoadFromData: the binary can't be loaded (%s); it has to be compiled by this toolkit's "
                "aclrtc, a binary for silicon doesn't run here",
                error.c_str());
  }
  auto created = std::make_unique<Binary>();
  created->library = library;
  created->constants = register_constants(library);
  created->variables = has_variables(static_cast<const char*>(data), length);
  const Lock lock(state_mutex());
  *handle = created.get();
  binaries().live[*handle] = std::move(created);
  return ACL_SUCCESS;
}

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions* options, aclrtBinHandle* handle) {
  std::ifstream file(path != nullptr ? path : "", std::ios::binary);
  if (!file)
    return fail(ACL_ERROR_INVALID_FILE, "aclrtBinaryLoadFromFile: %s can't be read", path != nullptr ? path : "(null)");
  const std::string data(std::istreambuf_iterator<char>(file), {});
  return aclrtBinaryLoadFromData(data.data(), data.size(), options, handle);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
  std::unique_ptr<Binary> binary;
  {
    const Lock lock(state_mutex());
    if (find_binary(handle, "aclrtBinaryUnLoad") == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
    binary = std::move(binaries().live[handle]);
    binaries().live.erase(handle);
    for (const auto& entry : binary->functions) binaries().functions.erase(entry.second.get());
  }
  for (void* constants : binary->constants) vnpu::gm_unregister(constants);
  dlclose(binary->library);
  return ACL_SUCCESS;
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name, aclrtFuncHandle* function) {
  const Lock lock(state_mutex());
  Binary* binary = find_binary(handle, "aclrtBinaryGetFunction");
  if (binary == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (name == nullptr || function == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryGetFunction: a pointer is null");
  }
  auto& entry = binary->functions[name];
  if (entry == nullptr) {
    const void* symbol = dlsym(binary->library, ("__vnpu_kernel_" + std::string(name)).c_str());
    if (symbol == nullptr) {
      binary->functions.erase(name);
      return fail(ACL_ERROR_RT_KERNEL_LOOKUP, "aclrtBinaryGetFunction: the binary has no kernel %s", name);
    }
    entry.reset(new Function{binary, name, static_cast<const vnpu::KernelInfo*>(symbol)});
    binaries().functions.insert(entry.get());
  }
  *function = entry.get();
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionName(aclrtFuncHandle handle, uint32_t max_length, char* name) {
  const Function* function = find_function(handle, "aclrtGetFunctionName");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (name == nullptr || max_length == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetFunctionName: no buffer");
  snprintf(name, max_length, "%s", function->name.c_str());
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle handle, void** aic, void** aiv) {
  const Function* function = find_function(handle, "aclrtGetFunctionAddr");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  const vnpu::KernelInfo& info = *function->info;
  const vnpu::EntryPoint cube = info.core_type >= 2 ? *info.cube_entry : info.core_type == 1 ? info.entry : nullptr;
  if (aic != nullptr) *aic = reinterpret_cast<void*>(cube);
  if (aiv != nullptr) *aiv = function->info->core_type == 1 ? nullptr : reinterpret_cast<void*>(function->info->entry);
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionAttribute(aclrtFuncHandle handle, aclrtFuncAttribute attribute, int64_t* value) {
  const Function* function = find_function(handle, "aclrtGetFunctionAttribute");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (attribute != ACL_FUNC_ATTR_KERNEL_TYPE) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetFunctionAttribute: attribute %d is not kept", attribute);
  }
  const int core = function->info->core_type;
  *value = core == 0 ? ACL_KERNEL_TYPE_VECTOR : core == 1 ? ACL_KERNEL_TYPE_CUBE : ACL_KERNEL_TYPE_MIX;
  return ACL_SUCCESS;
}

aclError aclrtFunctionGetBinary(const aclrtFuncHandle handle, aclrtBinHandle* binary) {
  const Function* function = find_function(handle, "aclrtFunctionGetBinary");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  *binary = function->binary;
  return ACL_SUCCESS;
}

aclError aclrtFunctionGetParamCount(const void* handle, size_t* count) {
  const Function* function = find_function(handle, "aclrtFunctionGetParamCount");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  *count = function->info->param_count;
  return ACL_SUCCESS;
}

aclError aclrtFunctionGetParamInfo(const void* handle, size_t index, size_t* offset, size_t* size) {
  const Function* function = find_function(handle, "aclrtFunctionGetParamInfo");
  if (function == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  const std::vector<ParamPlace> places = param_places(*function);
  if (index >= places.size()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFunctionGetParamInfo: %s has %zu parameters, asked for number %zu",
                function->name.c_str(), places.size(), index);
  }
  *offset = places[index].offset;
  *size = places[index].size;
  return ACL_SUCCESS;
}
