// Reads C++ text just well enough to find kernels, and compiler logs well enough to name what is not covered.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "rtc.h"
#include "rtc_tokens.h"

namespace vnpu_rtc {
namespace {

// What __global__, __cube__ and its like, and KERNEL_TASK_TYPE expand to in the first pass (include/vnpu_export.h;
// compile() undefines these words' own meaning).
const char* const kMark = "VNPU_GLOBAL_MARK";
const char* const kCoresMark = "VNPU_CORES_MARK";
const char* const kTypeMark = "VNPU_TASK_TYPE_MARK";

// __section__
bool in_underscores(const std::string& word) {
  return word.size() > 4 && word.compare(0, 2, "__") == 0 && word.compare(word.size() - 2, 2, "__") == 0;
}

// The token behind the bracket that closes the one at `open`.
Token skip_brackets(Token open, Token end) {
  const std::string& opening = *open;
  const std::string closing = opening == "(" ? ")" : opening == "[" ? "]" : "}";
  int depth = 0;
  for (Token at = open; at != end; ++at) {
    if (*at == opening) ++depth;
    if (*at == closing && --depth == 0) return at + 1;
  }
  return end;
}

bool is_attribute(const std::string& word) {
  return word == "__attribute__" || word == "__attribute" || word == "alignas" || word == "__declspec" ||
         word == kCoresMark;
}

// The name of the function whose declaration goes from `first` on; "" when it has no body.
std::string defined_function(Token first, Token end) {
  for (Token at = first; at != end && *at != ";" && *at != "{"; ++at) {
    if (*at != "(") continue;
    const std::string& name = *(at - 1);
    const Token behind = skip_brackets(at, end);
    if (is_attribute(name)) {
      at = behind - 1;
      continue;
    }
    // Between the parameters and the body stand attributes at most.
    Token body = behind;
    while (body != end && *body != "{" && *body != ";") {
      body = *body == "(" || *body == "[" ? skip_brackets(body, end) : body + 1;
    }
    return body != end && *body == "{" ? name : "";
  }
  return "";
}

// What __cube__, __vector__ or __mix__ at `at` says; nothing where none of them stands there.
std::optional<Cores> marked(Token at, Token end) {
  if (*at != kCoresMark || end - at < 5) return std::nullopt;
  const std::string &cubes = *(at + 2), &vectors = *(at + 4);
  if (cubes == "0") return Cores::Vector;
  return vectors == "0" ? Cores::Cube : vectors == "1" ? Cores::MixedOne : Cores::MixedTwo;
}

// Finds kernels statement by statement, at namespace scope.
class KernelFinder {
 public:
  explicit KernelFinder(const std::vector<std::string>& tokens) : end_(tokens.end()), statement_(tokens.begin()) {}

  std::vector<Kernel> run() {
    bool is_kernel = false;  // the statement has the mark
    for (Token at = statement_; at != end_; ++at) {
      if (*at == kMark) is_kernel = true;
      if (const auto cores = marked(at, end_)) cores_ = cores;
      if (*at == "(" || *at == "[") {
        at = skip_brackets(at, end_) - 1;
        continue;
      }
      if (*at == "}")
        leave_scope();
      else if (*at == "{")
        at = open(at, is_kernel);
      else if (*at != ";")
        continue;
      statement_ = at + 1;
      is_kernel = false;
      cores_.reset();
    }
    return std::move(kernels_);
  }
  std::optional<Cores> of_templates() const { return of_templates_; }

 private:
  void leave_scope() {
    if (!scopes_.empty()) scopes_.pop_back();
  }

  // The last token of what the bracket at `brace` opens; of a namespace or linkage block, the bracket itself.
  Token open(Token brace, bool is_kernel) {
    const Token space = std::find(statement_, brace, "namespace");
    if (space != brace) {
      std::string scope;
      for (Token part = space + 1; part != brace; ++part) scope += *part;
      scopes_.push_back(scope.empty() ? "" : scope + "::");
      return brace;
    }
    if (brace - statement_ == 2 && *statement_ == "extern" && *(statement_ + 1) == "\"C\"") {
      scopes_.emplace_back();
      return brace;
    }
    if (is_kernel && *statement_ != "template") add(defined_function(statement_, end_));
    if (*statement_ == "template" && cores_) of_templates_ = cores_;
    return skip_brackets(brace, end_) - 1;  // bodies and classes hold no kernels
  }

  void add(const std::string& name) {
    std::string qualified = "::";
    for (const std::string& scope : scopes_) qualified += scope;
    if (!name.empty() && seen_.insert(qualified + name).second) kernels_.push_back({name, qualified + name, cores_});
  }

  const Token end_;
  Token statement_;  // where the current one begins
  std::optional<Cores> cores_,
      of_templates_;  // that it is marked for; that a template has been, whose instances carry none
  std::vector<Kernel> kernels_;
  std::set<std::string> seen_;
  std::vector<std::string> scopes_;  // open namespaces with a trailing "::"; "" for a linkage block
};

}  // namespace

std::vector<Kernel> find_kernels(const std::string& preprocessed) {
  const std::vector<std::string> tokens = tokenize(preprocessed);
  return KernelFinder(tokens).run();
}

namespace {

// 0x2UL and 2 are one key.
bool same_key(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && std::isdigit(static_cast<unsigned char>(a[0])) != 0 &&
         strtoull(a.c_str(), nullptr, 0) == strtoull(b.c_str(), nullptr, 0);
}

// What KERNEL_TASK_TYPE says for tiling key `key`, else for all; "" when it says nothing.
std::string task_type(const std::vector<std::string>& tokens, const std::string& key) {
  std::string type;
  for (size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (tokens[i] != kTypeMark) continue;
    const bool usual = tokens[i + 2] == "default" && type.empty();
    if (usual || same_key(tokens[i + 2], key)) type = tokens[i + 4];
  }
  return type;
}

// Whether one of these positions is named.
bool names_position(const std::vector<std::string>& tokens, const std::set<std::string>& positions) {
  for (size_t i = 2; i < tokens.size(); ++i)
    if (tokens[i - 1] == ":" && tokens[i - 2] == ":" && positions.count(tokens[i]) != 0) return true;
  return false;
}

bool says_any(const std::vector<std::string>& tokens, const std::set<std::string>& words) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const std::string& t) { return words.count(t) != 0; });
}

// Whether the cores of a group order each other by flags, or all cores of both kinds meet.
bool says_groups(const std::vector<std::string>& tokens) {
  static const std::set<std::string> flags = {"CrossCoreSetFlag", "NotifyEvent", "ffts_cross_core_sync"};
  static const std::vector<std::string> meeting = {"SyncAll", "<", "false", ">"};
  return says_any(tokens, flags) ||
         std::search(tokens.begin(), tokens.end(), meeting.begin(), meeting.end()) != tokens.end();
}

// Whether an operator() specialized for `kind` of core, as a library's kernels are, does something.
bool specialized_does(const std::vector<std::string>& tokens, const std::string& kind) {
  static const std::vector<std::string> call = {"operator", "(", ")", "<"};
  for (Token at = tokens.begin(); (at = std::search(at, tokens.end(), call.begin(), call.end())) != tokens.end();
       ++at) {
    const Token close = std::find(at, tokens.end(), ">");
    if (close == tokens.end() || *(close - 1) != kind) continue;
    // A call or a declaration ends before a body begins.
    const Token body = std::find_if(close, tokens.end(), [](const std::string& t) { return t == "{" || t == ";"; });
    if (tokens.end() - body > 1 && *body == "{" && *(body + 1) != "}") return true;
  }
  return false;
}

}  // namespace

Cores cores_of(const std::string& preprocessed, const std::string& key) {
  static const std::map<std::string, Cores> types = {{"KERNEL_TYPE_AIC_ONLY", Cores::Cube},
                                                     {"KERNEL_TYPE_MIX_AIC_1_0", Cores::Cube},
                                                     {"KERNEL_TYPE_MIX_AIC_1_1", Cores::MixedOne},
                                                     {"KERNEL_TYPE_MIX_AIC_1_2", Cores::MixedTwo}};
  static const std::set<std::string> cube_positions = {"A1", "B1", "C1", "A2", "B2", "C2", "CO1", "C2PIPE2GM"};
  static const std::set<std::string> vector_positions = {"VECIN", "VECOUT", "VECCALC", "LCM"};
  const std::vector<std::string> tokens = tokenize(preprocessed);
  KernelFinder finder(tokens);
  finder.run();
  if (const auto cores = finder.of_templates()) return *cores;
  if (const auto cores = cores_of_selection(tokens, key)) return *cores;
  if (const std::string type = task_type(tokens, key); !type.empty()) {
    const auto found = types.find(type);
    return found == types.end() ? Cores::Vector : found->second;
  }
  // What REGIST_MATMUL_OBJ expands to (include/lib/matmul_intf.h); with ASCENDC_CUBE_ONLY nobody is served.
  const auto says = [&](const char* word) { return std::find(tokens.begin(), tokens.end(), word) != tokens.end(); };
  if (says("register_matmul")) return says("serve_matmul") ? Cores::MixedTwo : Cores::Cube;
  // A MatmulImpl that nobody registers multiplies where it is; `mad` is the compiler's own instruction.
  const bool multiplies = says_any(tokens, {"MatmulImpl", "mad"});
  if (!names_position(tokens, cube_positions) && !multiplies) return Cores::Vector;
  if (!names_position(tokens, vector_positions)) return Cores::Cube;
  if (says_groups(tokens)) return Cores::MixedTwo;
  if (specialized_does(tokens, "AIV") && !specialized_does(tokens, "AIC")) return Cores::Vector;
  // Recognized by what it uses, a kernel that says nothing gets two vector cores for each cube core.
  if (multiplies) return Cores::MixedTwo;
  return says("Mmad") ? Cores::Cube : Cores::Vector;  // a library's kernel that multiplies, and what else it offers
}

bool says_cores(const std::string& preprocessed, const std::string& key) {
  const std::vector<std::string> tokens = tokenize(preprocessed);
  KernelFinder finder(tokens);
  finder.run();
  return finder.of_templates().has_value() || cores_of_selection(tokens, key).has_value() ||
         !task_type(tokens, key).empty();
}

bool asks_for_cubes(const std::string& preprocessed, const std::string& program, const std::string& own) {
  const auto asks = [](const std::string& text) {
    return text.find("__DAV_C220_CUBE__") != std::string::npos || text.find("__DAV_CUBE__") != std::string::npos;
  };
  if (asks(program)) return true;
  std::set<std::string> seen;
  for (std::size_t at = preprocessed.find("\n# "); at != std::string::npos; at = preprocessed.find("\n# ", at + 1)) {
    const std::size_t start = preprocessed.find('"', at) + 1, end = preprocessed.find('"', start);
    if (start == 0 || end == std::string::npos) break;
    const std::string file = preprocessed.substr(start, end - start);
    const auto below = [&](const std::string& folder) { return file.compare(0, folder.size(), folder) == 0; };
    if (below(own) || below("/usr/") || below("<") || !seen.insert(file).second) continue;
    if (!std::filesystem::is_regular_file(file)) continue;  // the folder that the compiler is started in
    std::ifstream in(file, std::ios::binary);
    if (asks({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()})) return true;
  }
  return false;
}

bool multiplies_apart(const std::string& on_cubes, const std::string& on_vectors) {
  static const std::set<std::string> products = {"Mmad", "mad", "IterateAll"};
  std::map<std::string, int> surplus;
  for (const std::string& token : tokenize(on_cubes))
    if (products.count(token) != 0) ++surplus[token];
  for (const std::string& token : tokenize(on_vectors))
    if (products.count(token) != 0) --surplus[token];
  return std::any_of(surplus.begin(), surplus.end(), [](const auto& one) { return one.second > 0; });
}

std::string assembled(const std::string& preprocessed) {
  static const std::set<std::string> attributes = {"section", "weakref", "symver",
                                                   "alias",   "ifunc",   "patchable_function_entry"};
  static const std::set<std::string> encodings = {"u8", "u", "U", "L"};
  const std::vector<std::string> tokens = tokenize(preprocessed, true);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string word = tokens[i];
    if (in_underscores(word)) word = word.substr(2, word.size() - 4);
    if (attributes.count(word) == 0) continue;
    size_t next = i + 1;
    while (next < tokens.size() && tokens[next] == "(") ++next;
    if (next == i + 1) continue;
    if (next < tokens.size() && encodings.count(tokens[next]) != 0) ++next;
    if (next < tokens.size() && tokens[next][0] == '"') return word;
  }
  return "";
}

std::string explain(const std::string& log) {
  static const std::regex member(R"(error: '(\w+)' is not a member of 'AscendC')");
  static const std::regex undeclared(R"(error: '(\w+)' was not declared in this scope)");
  static const std::regex overload(R"(error: no matching function for call to '(?:AscendC::)?([A-Z]\w*)[(<])");
  // Of arguments that depend on a template's, g++ says it another way.
  static const std::regex unknown(R"(error: (?:'(\w+)' was not declared|there are no arguments to '(\w+)'))");
  static const std::regex instruction(
      R"((copy|load|set|get)_(gm|cbuf|ubuf|matrix|smask|atomic|fmatrix|l3d|nd|quant|fpc|vector|ctrl|loop)\w*|)"
      R"(mad|ffts_\w+|v(add|sub|mul|div|conv|cmp|sel|brcb|reducev2|gather|axpy|madd|ector_dup)\w*)");
  static const std::regex header(R"(fatal error: (\S+): No such file or directory)");
  const std::string where =
      " Add it in ascendopt_tune/vnpu/include/ascendc (CONTRIBUTING.md, \"How to add an AscendC API\").\n";
  std::string text;
  std::set<std::string> said;
  const auto say = [&](const std::string& sentence) {
    if (said.insert(sentence).second) text += "virtual NPU: " + sentence;
  };
  const auto each = [&](const std::regex& pattern, auto&& use) {
    for (std::sregex_iterator it(log.begin(), log.end(), pattern), end; it != end; ++it) use((*it)[1].str());
  };
  each(member, [&](const std::string& name) { say("the API AscendC::" + name + " is not covered." + where); });
  each(undeclared, [&](const std::string& name) {
    if (std::isupper(static_cast<unsigned char>(name[0])) != 0) {
      say("if " + name + " is an AscendC API, it is not covered." + where);
    }
  });
  std::string instructions;
  int told = 0;
  for (std::sregex_iterator it(log.begin(), log.end(), unknown), end; it != end; ++it) {
    const std::string name = (*it)[1].matched ? (*it)[1].str() : (*it)[2].str();
    if (std::regex_match(name, instruction) && said.insert(name).second && ++told <= 6)
      instructions += (instructions.empty() ? "" : ", ") + name;
  }
  if (!instructions.empty())
    say("instructions of CANN's own compiler (" + instructions + ") are not covered, AscendC's functions are.\n");
  each(overload, [&](const std::string& name) {
    say("if " + name + " is an AscendC API, this form of it is not covered, or its arguments are wrong." + where);
  });
  each(header, [&](const std::string& name) {
    const bool leads_up = name.rfind("..", 0) == 0;
    say("if " + name + " is the kernel's own, " +
        (leads_up ? "give a folder with -I from which it is found" : "name its folder with -I") +
        "; if it is a CANN header, it is not covered." + where);
  });
  return text;
}

}  // namespace vnpu_rtc
