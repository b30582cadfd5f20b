// Run-time compilation: a program is text plus headers, compiled by the host's C++ compiler against this toolkit.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vnpu_rtc {

// Which cores a kernel runs on, by the number that its binary says (vnpu/kernel_info.h). Mixed: on groups of one cube
// core and one or two vector cores.
enum class Cores { Vector, Cube, MixedOne, MixedTwo };

// One kernel to export from a binary.
struct Kernel {
  std::string name;                 // as aclrtBinaryGetFunction is asked for it
  std::string function;             // C++ expression that names the function
  std::optional<Cores> cores = {};  // where its declaration says so, or the program
};

struct Program {
  std::string source;
  std::string name;
  std::vector<std::pair<std::string, std::string>> headers;  // name in #include, text
  std::vector<Kernel> expressions;                           // from aclrtcAddNameExpr
  std::string binary;
  std::string log;
  bool compiled = false;
};

// Compiler options after translation from those of the device compiler.
struct Options {
  std::vector<std::string> arguments;
  // -D, -U and -include, as text in front of the program: given as arguments they would come before the precompiled
  // header, which compilers then don't accept.
  std::string preamble;
  bool auto_sync = true;  // CANN's default
  // Where the compiler lists every function it makes machine code of, after it has put in the checks of addresses: a
  // file, and another with a 0 behind its name for functions that are not optimized. Empty: nowhere.
  std::string listing;
};

// False with `error` set to a sentence that names the first option that is not understood.
bool translate_options(const std::vector<std::string>& options, Options* translated, std::string* error);

// The kernels defined in preprocessed text: functions marked __global__ at namespace scope that are no templates.
std::vector<Kernel> find_kernels(const std::string& preprocessed);

// The cores that a program's kernels are for, where they don't say it themselves: as a template of theirs is marked;
// else as ASCENDC_TPL_SEL says for the key's template arguments; else as KERNEL_TASK_TYPE says (for tiling key `key`,
// or for all); else by what occurs: positions of cube cores alone, of both kinds with flags or a meeting between them
// or a MatmulImpl, of both kinds with products but neither (cube cores), or anything else.
Cores cores_of(const std::string& preprocessed, const std::string& key);

// The same as ASCENDC_TPL_SEL says it for the template arguments that tiling key `key` stands for; nothing where no
// selection has a kernel type for them.
std::optional<Cores> cores_of_selection(const std::vector<std::string>& tokens, const std::string& key);

// Whether a program says itself, for all of its kernels, what cores they are for.
bool says_cores(const std::string& preprocessed, const std::string& key);

// Whether one of the text's files asks whether it is compiled for cube cores, by the device compiler's macros; none of
// those below `own`, the toolkit's headers.
bool asks_for_cubes(const std::string& preprocessed, const std::string& program, const std::string& own);

// Whether what a program is for cube cores alone, beside what it is for vector cores, multiplies matrices.
bool multiplies_apart(const std::string& on_cubes, const std::string& on_vectors);

// The first attribute in preprocessed text whose string goes to the assembler as it is, and with it instructions that
// no compiler has seen; "" when there is none.
std::string assembled(const std::string& preprocessed);

// Sentences about errors in the compiler's log that mean an API this toolkit does not cover; "" when there are none.
std::string explain(const std::string& log);

// Fills binary and log. Returns an aclError of the aclrtc family.
int compile(Program* program, const Options& options);

}  // namespace vnpu_rtc
