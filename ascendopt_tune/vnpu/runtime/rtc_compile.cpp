// Translates the device compiler's options and runs the host's compiler.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <spawn.h>
#include <sys/wait.h>

#include "acl/acl_rt_compile.h"
#include "rtc.h"
#include "rtc_aggregates.h"
#include "rtc_attributes.h"
#include "rtc_constants.h"
#include "rtc_launches.h"
#include "rtc_specialize.h"

extern char** environ;

namespace vnpu_rtc {
namespace {

namespace fs = std::filesystem;

// Precompiled headers are accepted only when built with the same flags; build/toolkit.py repeats this list.
// -ffp-contract, -fno-strict-aliasing: scalar arithmetic and pointer casts mean what they mean on the device.
// The last four keep machine code plain enough to be checked: core/guard.cpp finds return addresses by frame pointers,
// no jump or call goes where a register says (build/machine_code.py), and no text goes to the assembler as it is.
const std::vector<std::string> kFlags = {"-std=c++17",
                                         "-Og",
                                         "-g1",
                                         "-fPIC",
                                         "-fvisibility=hidden",
                                         "-fno-gnu-unique",
                                         "-ffunction-sections",
                                         "-ffp-contract=off",
                                         "-fno-strict-aliasing",
                                         "-Wno-attributes",
                                         "-fno-omit-frame-pointer",
                                         "-fno-jump-tables",
                                         "-fno-stack-protector",
                                         "-fno-ident"};

// Every load and store of a kernel's own code becomes a call that core/guard.cpp answers. Only g++ has all of it.
const std::vector<std::string> kGuardFlags = {"-fsanitize=kernel-address",
                                              "--param=asan-instrumentation-with-call-threshold=0",
                                              "--param=asan-stack=0", "--param=asan-globals=0"};
const char* const kWrapped[] = {"memcpy", "memmove", "memset", "modf",    "modff",
                                "frexp",  "frexpf",  "sincos", "sincosf", "_Unwind_Resume"};

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

fs::path toolkit_prefix() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&toolkit_prefix), &info);
  return fs::absolute(info.dli_fname).parent_path().parent_path();
}

std::string host_compiler() {
  const char* chosen = getenv("ASCENDOPT_CXX");
  return chosen != nullptr && *chosen != '\0' ? chosen : "g++";
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A folder of one compilation, removed with everything in it.
class WorkFolder {
 public:
  WorkFolder() {
    std::error_code ignored;
    std::string pattern = (fs::temp_directory_path(ignored) / "aclrtc-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return !file.fail();
}

// Runs a command with both outputs going to `log`. Returns its exit status, or -1 when it can't be started.
int run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  static char language[] = "LC_ALL=C";  // messages are read by explain()
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "LC_ALL=", 7) != 0) environment.push_back(*entry);
  }
  environment.push_back(language);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    errno = failed;
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Paths of the work folder mean nothing to the user: what is left are the names of program and headers.
std::string without_folder(std::string text, const fs::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
    text.erase(at, prefix.size());
  return text;
}

std::string in_quotes(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    if (c != '\n') text += c;
  }
  return "\"" + text + "\"";
}

}  // namespace

namespace {

// The directive that an option stands for: ("-D", "N(x)=x") -> "#define N(x) x".
std::string directive(const std::string& option, const std::string& value) {
  if (option == "-include") return "#include " + in_quotes(value) + "\n";
  if (option == "-U") return "#undef " + value + "\n";
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return "#define " + value + " 1\n";
  return "#define " + value.substr(0, equals) + " " + value.substr(equals + 1) + "\n";
}

// Options with a value, in a word of its own or, the short ones, behind the name.
const std::vector<std::string> kPaired = {"-D", "-U", "-I", "-include", "-isystem"};

// About the device's machine code, or about warnings: nothing that changes what the kernel means.
bool is_ignored(const std::string& option) {
  static const char* const prefixes[] = {"-O", "-W", "--cce-", "-cce-", "-g", "-f"};
  return option == "-xcce" || option == "-xasc" || option == "-w" ||
         std::any_of(std::begin(prefixes), std::end(prefixes), [&](const char* p) { return starts_with(option, p); });
}

void take_pair(const std::string& option, const std::string& value, Options* translated) {
  if (option == "-I" || option == "-isystem")
    translated->arguments.insert(translated->arguments.end(), {option, value});
  else
    translated->preamble += directive(option, value);
}

// An option of one word. Returns why it can't be, "" when it can.
std::string take_word(const std::string& option, Options* translated) {
  static const std::string listing = "--vnpu-listing=";
  if (starts_with(option, "-D") || starts_with(option, "-U")) {
    translated->preamble += directive(option.substr(0, 2), option.substr(2));
  } else if (starts_with(option, "-I") || starts_with(option, "-std=")) {
    translated->arguments.push_back(option);
  } else if (starts_with(option, "--npu-arch=")) {
    if (option != "--npu-arch=dav-2201")
      return "aclrtc: option " + option + ": the only architecture modelled is dav-2201";
  } else if (starts_with(option, listing.c_str())) {
    translated->listing = option.substr(listing.size());
  } else if (option == "--cce-auto-sync=on" || option == "--cce-auto-sync" || option == "--cce-auto-sync=off") {
    translated->auto_sync = option != "--cce-auto-sync=off";
  } else if (!is_ignored(option)) {
    return "aclrtc: unknown option " + option;
  }
  return "";
}

}  // namespace

bool translate_options(const std::vector<std::string>& options, Options* translated, std::string* error) {
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (option == "-mllvm" || option == "-Xclang") {
      ++i;  // the next word belongs to it; both tune code generation for the device
    } else if (std::find(kPaired.begin(), kPaired.end(), option) == kPaired.end()) {
      *error = take_word(option, translated);
    } else if (i + 1 == options.size()) {
      *error = "aclrtc: option " + option + " has no value";
    } else {
      take_pair(option, options[++i], translated);
    }
    if (!error->empty()) return false;
  }
  return true;
}

namespace {

const char* const kUnmarked =
    "#undef VNPU_GLOBAL_MARK\n#undef VNPU_CORES_MARK\n#undef VNPU_TASK_TYPE_MARK\n#undef VNPU_TPL_SELECTED\n";

// A compilation of the program for the cores of one kind.
enum class Pass { Vector, Cube };

// A program's text is read, to find its kernels, and compiled, for the kinds of cores that they run on; in a folder of
// its own. Every step returns an aclError of the aclrtc family.
class Compilation {
 public:
  Compilation(Program* program, const Options& options)
      : program_(program),
        options_(options),
        text_(options.preamble + "#line 1 " + in_quotes(program->name) + "\n" + program->source + "\n") {}

  int run() {
    int code = write_program();
    if (code == ACL_SUCCESS) code = find();
    if (code == ACL_SUCCESS) code = build();
    if (code != ACL_SUCCESS) return code;
    if (kernels_.empty())
      return refuse(ACL_ERROR_RTC_COMPILATION,
                    "aclrtc: " + program_->name + " defines no kernel (a __global__ function with a body)\n");
    program_->log = messages();
    program_->binary = read_file(binary_);
    program_->compiled = true;
    return ACL_SUCCESS;
  }

 private:
  int write_program() {
    // Undefined, the marks in __global__ and its like survive preprocessing, and the first pass can see them.
    bool written = !folder_.path().empty() && write_file(source_, kUnmarked + text_);
    for (const auto& header : program_->headers) {
      const fs::path place = (folder_.path() / header.first).lexically_normal();
      // A header's name must not lead out of the folder.
      if (starts_with(place.lexically_relative(folder_.path()).string(), ".."))
        return refuse(ACL_ERROR_RTC_INVALID_INPUT,
                      "aclrtc: header name " + header.first + " leads out of the program\n");
      written = written && write_file(place, header.second);
    }
    if (written) return ACL_SUCCESS;
    return refuse(ACL_ERROR_RTC_FAILURE, "aclrtc: the temporary folder can't be written; set TMPDIR to one that can\n");
  }

  // Of a program that seems to be for vector cores, says nothing itself, and asks for which it is compiled: whether it
  // is for groups of both.
  int look_further(std::vector<Kernel>* on_cubes, Cores* unsaid) {
    if (says_cores(expanded_, tiling_key())) return ACL_SUCCESS;
    if (!asks_for_cubes(expanded_, program_->source, (prefix_ / "include").string())) return ACL_SUCCESS;
    const std::string on_vectors = expanded_;
    const int code = look(Pass::Cube, on_cubes);
    if (code == ACL_SUCCESS && multiplies_apart(expanded_, on_vectors)) *unsaid = Cores::MixedTwo;
    return code;
  }

  // Finds the kernels of either kind of cores, by what a preprocessor makes of the program for them: for cube cores,
  // too, where it has kernels that run there.
  int find() {
    std::vector<Kernel> on_vectors, on_cubes;
    int code = look(Pass::Vector, &on_vectors);
    if (code != ACL_SUCCESS) return code;
    Cores unsaid = cores_of(expanded_, tiling_key());
    if (unsaid == Cores::Vector && (code = look_further(&on_cubes, &unsaid)) != ACL_SUCCESS) return code;
    const auto take = [&](std::vector<Kernel>& found, Pass pass) {
      for (Kernel& kernel : found) {
        if (!kernel.cores) kernel.cores = unsaid;
        if (*kernel.cores == Cores::MixedOne || *kernel.cores == Cores::MixedTwo ||
            (*kernel.cores == Cores::Cube) == (pass == Pass::Cube))
          kernels_[pass].push_back(kernel);
      }
    };
    const auto elsewhere = [](const Kernel& k) { return k.cores && *k.cores != Cores::Vector; };
    const bool both = unsaid != Cores::Vector || std::any_of(on_vectors.begin(), on_vectors.end(), elsewhere);
    if (both && on_cubes.empty()) code = look(Pass::Cube, &on_cubes);
    take(on_vectors, Pass::Vector);
    take(on_cubes, Pass::Cube);
    return code;
  }

  // What TILING_KEY_VAR is defined as; "" when it isn't.
  std::string tiling_key() const {
    static const std::string word = "TILING_KEY_VAR";
    const size_t at = options_.preamble.find(word);
    if (at == std::string::npos) return "";
    const size_t digit = options_.preamble.find_first_of("0123456789\n", at + word.size());
    return digit == std::string::npos ? ""
                                      : options_.preamble.substr(digit, options_.preamble.find('\n', digit) - digit);
  }

  // Macros expanded, to find the kernels. The precompiled header stays a reference.
  int look(Pass pass, std::vector<Kernel>* kernels) {
    const fs::path preprocessed = folder_.path() / "aclrtc_preprocessed.ii";
    std::vector<std::string> command = base(pass);
    command.insert(command.end(), {"-E", "-fpch-preprocess", source_.string(), "-o", preprocessed.string()});
    const int status = vnpu_rtc::run(command, log_);
    if (status == -1)
      return refuse(ACL_ERROR_RTC_FAILURE, "aclrtc: the compiler " + compiler_ + " can't be started: " +
                                               strerror(errno) + "; install g++ or set ASCENDOPT_CXX\n");
    if (status != 0) return explained(ACL_ERROR_RTC_COMPILATION);
    expanded_ = read_file(preprocessed);
    const std::string attribute = guarded_ ? assembled(expanded_) : "";
    if (!attribute.empty())
      return refuse(ACL_ERROR_RTC_COMPILATION,
                    program_->name + ": error: the attribute " + attribute + " is not for kernels\n");
    if (as_the_compiler_takes_it(expanded_) != expanded_) rewritten_passes_.insert(pass);
    *kernels = find_kernels(expanded_);
    kernels->insert(kernels->end(), program_->expressions.begin(), program_->expressions.end());
    return ACL_SUCCESS;
  }

  // The same text with an export behind it for each kernel.
  int build() {
    // Only kernels are looked for in a binary: what else the file defines (host code beside them) goes where no kernel
    // needs it.
    if (!write_file(visible_, "{ global: __vnpu_kernel_*; local: *; };\n")) return full();
    if (kernels_.size() > 1) return build_both();
    const Pass pass = kernels_.empty() ? Pass::Vector : kernels_.begin()->first;  // without any, for what is wrong
    if (const int code = write_for(pass); code != ACL_SUCCESS) return code;
    std::vector<std::string> command = compiling(pass, options_.listing);
    command.push_back(text_of(pass).string());
    return finish(linking(std::move(command)));
  }

  // Both passes have names in common that mean different things, so each keeps its own to itself.
  int build_both() {
    std::vector<std::string> command = {compiler_};
    for (const auto& [pass, kernels] : kernels_) {
      const fs::path object = folder_.path() / (pass == Pass::Cube ? "aclrtc_cube.o" : "aclrtc_vector.o");
      if (const int code = write_for(pass); code != ACL_SUCCESS) return code;
      std::vector<std::string> one = compiling(pass, options_.listing.empty() ? "" : listing_.string());
      one.insert(one.end(),
                 {text_of(pass).string(), "-o", object.string(), "-r", "-nostdlib", "-Wl,--force-group-allocation"});
      int code = finish(one);
      if (code == ACL_SUCCESS) code = finish({"objcopy", "--localize-hidden", object.string()});
      if (code != ACL_SUCCESS) return code;
      collect_listing();
      command.push_back(object.string());
    }
    return finish(linking(std::move(command)));
  }

  std::string as_the_compiler_takes_it(const std::string& text) const {
    const std::string plain = with_initializers(without_launches(without_core_attributes(text)));
    const std::string specialized = with_partial_specializations(plain);
    const auto newer = [](const std::string& option) {
      return starts_with(option, "-std=") && option.find("17") == std::string::npos;
    };
    const auto& options = options_.arguments;
    return std::any_of(options.begin(), options.end(), newer) ? with_aggregates(specialized) : specialized;
  }

  // What a pass compiles: the program, or what is left of it when it is said in a way that the compiler takes.
  fs::path text_of(Pass pass) const { return rewritten_passes_.count(pass) != 0 ? rewritten_ : source_; }
  int write_for(Pass pass) {
    if (!write_file(source_, text_ + exports(pass))) return full();
    if (rewritten_passes_.count(pass) == 0) return ACL_SUCCESS;
    std::vector<std::string> command = base(pass);
    command.insert(command.end(), {"-E", "-fpch-preprocess", source_.string(), "-o", rewritten_.string()});
    if (const int code = finish(command); code != ACL_SUCCESS) return code;
    std::string text = read_file(rewritten_);
    // Reserved words have been looked for: what macros made of them since is no word of the program.
    static const std::string poison = "#pragma GCC poison";
    for (size_t at = text.find(poison); at != std::string::npos; at = text.find(poison, at)) text.replace(at, 2, "//");
    return write_file(rewritten_, as_the_compiler_takes_it(text)) ? ACL_SUCCESS : full();
  }

  std::string exports(Pass pass) const {
    std::string text = "#line 1 \"<kernel exports>\"\n#undef VNPU_AUTO_SYNC\n#define VNPU_AUTO_SYNC ";
    text += options_.auto_sync ? "1\n" : "0\n";
    const auto found = kernels_.find(pass);
    if (found == kernels_.end()) return text;
    for (const Kernel& kernel : found->second) {
      const bool mixed = *kernel.cores == Cores::MixedOne || *kernel.cores == Cores::MixedTwo;
      const std::string names = kernel.name + ", (" + kernel.function + ")";
      if (!mixed)
        text += "VNPU_EXPORT_KERNEL(" + names + ")\n";
      else if (pass == Pass::Cube)
        text += "VNPU_EXPORT_CUBE_PASS(" + names + ")\n";
      else
        text += "VNPU_EXPORT_MIXED(" + names + ", " + std::to_string(static_cast<int>(*kernel.cores)) + ")\n";
    }
    return text;
  }

  // What a pass's compilation lists goes behind what those before have listed.
  void collect_listing() const {
    if (options_.listing.empty()) return;
    for (const char* part : {"", "0"})
      std::ofstream(options_.listing + part, std::ios::binary | std::ios::app) << read_file(listing_.string() + part);
  }

  // Whether all lines of `log` with `mark` (at least one) are of a name that means something else behind its first use
  // in a class: the device's compiler takes that, and g++ asks for a diagnosis that the language doesn't.
  static bool later_names_alone(const std::string& log, const std::string& mark) {
    bool any = false;
    for (size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
      const size_t begin = log.rfind('\n', at) + 1;
      if (log.substr(begin, log.find('\n', at) - begin).find("changes meaning of") == std::string::npos) return false;
      any = true;
    }
    return any;
  }

  // Once more, with errors of that kind as warnings: other ones that become warnings by it are none to be passed over.
  int run_with_later_names(std::vector<std::string> command) {
    command.insert(command.begin() + 1, "-fpermissive");
    const int status = vnpu_rtc::run(command, log_);
    std::string log = read_file(log_);
    if (status != 0 || later_names_alone(log, "[-fpermissive]")) return status;
    for (size_t at = log.find("warning: "); at != std::string::npos; at = log.find("warning: ", at))
      log.replace(at, strlen("warning"), "error");
    return write_file(log_, log) ? 1 : status;
  }

  // Runs a step of building.
  int finish(const std::vector<std::string>& command) {
    int status = vnpu_rtc::run(command, log_);
    if (status > 0 && later_names_alone(read_file(log_), "error: ")) status = run_with_later_names(command);
    if (status == 0) return ACL_SUCCESS;
    if (status == -1)
      return refuse(ACL_ERROR_RTC_FAILURE,
                    "aclrtc: " + command.front() + " can't be started: " + strerror(errno) + "; it comes with g++\n");
    const std::string found = read_file(log_);
    const bool linker = found.find("error:") == std::string::npos || found.find("ld returned") != std::string::npos;
    return explained(linker ? ACL_ERROR_RTC_LINKING : ACL_ERROR_RTC_COMPILATION);
  }

  // The compiler with what all its runs for one kind of cores have in common.
  std::vector<std::string> base(Pass pass) const {
    std::vector<std::string> command = {compiler_};
    command.insert(command.end(), kFlags.begin(), kFlags.end());
    if (guarded_) command.insert(command.end(), kGuardFlags.begin(), kGuardFlags.end());
    command.insert(command.end(), {"-I" + folder_.path().string(), "-I" + (prefix_ / "include").string(),
                                   "-I" + (prefix_ / "include" / "kernel_std").string()});
    // The device compiler knows __global__ and its like without any header.
    command.insert(command.end(), {"-include", (prefix_ / "include" / "kernel_operator.h").string()});
    if (pass == Pass::Cube)
      command.insert(command.end(), {"-include", (prefix_ / "include" / "vnpu_cube_pass.h").string()});
    if (is_another_file()) command.push_back("-fno-diagnostics-show-caret");
    command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
    return command;
  }

  // Whether a file with the program's name has another text: messages would quote its lines.
  bool is_another_file() const {
    std::error_code unknown;
    return fs::is_regular_file(program_->name, unknown) && read_file(program_->name) != program_->source;
  }

  std::vector<std::string> compiling(Pass pass, const std::string& listing) const {
    std::vector<std::string> command = base(pass);
    if (guarded_ && !listing.empty())
      command.insert(command.end(), {"-fdump-tree-asan=" + listing, "-fdump-tree-asan0=" + listing + "0"});
    return command;
  }

  std::vector<std::string> linking(std::vector<std::string> command) const {
    command.insert(command.end(),
                   {"-o", binary_.string(), "-shared", "-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-undefined",
                    "-Wl,-z,relro,-z,now", "-L" + (prefix_ / "lib64").string(), "-lvnpu"});
    for (const char* name : kWrapped)
      if (guarded_) command.push_back(std::string("-Wl,--wrap=") + name);
    command.push_back("-Wl,--version-script=" + visible_.string());
    return command;
  }

  int full() { return refuse(ACL_ERROR_RTC_FAILURE, "aclrtc: the temporary folder is full\n"); }

  int refuse(int code, const std::string& why) {
    program_->log = why;
    return code;
  }

  std::string messages() const { return without_folder(read_file(log_), folder_.path()); }

  int explained(int code) {
    const std::string text = messages();
    return refuse(code, text + explain(text));
  }

  Program* const program_;
  const Options& options_;
  const std::string text_;
  const WorkFolder folder_;
  const fs::path source_ = folder_.path() / "aclrtc_source.cpp";
  const fs::path rewritten_ = folder_.path() / "aclrtc_rewritten.ii";
  const fs::path log_ = folder_.path() / "aclrtc_log";
  const fs::path binary_ = folder_.path() / "aclrtc_kernel.so";
  const fs::path prefix_ = toolkit_prefix();
  const std::string compiler_ = host_compiler();
  const fs::path visible_ = folder_.path() / "aclrtc_exports";
  const fs::path listing_ = folder_.path() / "aclrtc_listing";
  std::string expanded_;                         // the program, preprocessed
  std::set<Pass> rewritten_passes_;              // whose text is said another way for the compiler
  std::map<Pass, std::vector<Kernel>> kernels_;  // those that a pass compiles; none is empty
  const bool guarded_ = fs::path(compiler_).filename().string().find("clang") == std::string::npos;
};

}  // namespace

int compile(Program* program, const Options& options) {
  program->log.clear();
  program->compiled = false;
  return Compilation(program, options).run();
}

}  // namespace vnpu_rtc
