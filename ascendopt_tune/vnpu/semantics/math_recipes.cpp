#include "math_recipes.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include "../core/bank.h"

namespace vnpu {
namespace {

// Power of integers goes on for as long as exponents ask: 3 rounds of squares and 3 of products are counted, for
// exponents to 7. Where masks lie before temporaries (Sign, Lgamma, Digamma) is not followed; half Lgamma has six and a
// half parts.

constexpr Recipe kRecipes[] = {
    {Math::Acos, DType::F32, kAnyForm, DType::F32, 4, 0, false,
     "3*Mul 8*Muls 20*Adds 2*Sqrt Mul+ 7*Mul:ab 2*Mul:bz 8*Mul:az Mins 2*Cast Add:bz Abs Div:ab Muls+"},
    {Math::Acos, DType::F16, kAnyForm, DType::F32, 3, 0, false,
     "5*Cast Mul 5*Muls 10*Adds 9*Mul:ab Sqrt 2*Abs.h Mul.h+ Mul.h 4*Muls.h 10*Adds.h 6*Mul.h:cz 2*Mul.h:Cz "
     "Mins.h 2*Cast.h Add:ab Div.h:Cc Cast+"},
    {Math::Acosh, DType::F32, kAnyForm, DType::F32, 1, 0, true, "Mul Adds Sqrt Add:ax Div Mul:az Ln"},
    {Math::Acosh, DType::F16, kAnyForm, DType::F32, 2, 0, true, "2*Cast Mul Adds Sqrt Add:ab Div Mul:ab Ln"},
    {Math::Asin, DType::F32, kAnyForm, DType::F32, 4, 0, false,
     "3*Mul 8*Muls 19*Adds 2*Sqrt Mul+ 7*Mul:ab 2*Mul:bz 8*Mul:az Mins 2*Cast Add:bz Abs Div:ab"},
    {Math::Asin, DType::F16, kAnyForm, DType::F32, 3, 0, false,
     "5*Cast Mul 4*Muls 9*Adds 9*Mul:ab Sqrt 2*Abs.h Mul.h+ Mul.h 4*Muls.h 10*Adds.h 6*Mul.h:cz 2*Mul.h:Cz "
     "Mins.h 2*Cast.h Add:ab Div.h:Cc"},
    {Math::Asinh, DType::F32, kAnyForm, DType::F32, 3, 0, true, "2*Abs Mul 2*Adds Sqrt Add:ac Ln Muls Div:ab Mul:ac"},
    {Math::Asinh, DType::F16, kAnyForm, DType::F32, 3, 0, true,
     "3*Cast 2*Abs Mul 2*Adds Sqrt Add:ac Ln Muls Div:ab Mul:ac"},
    {Math::Atan, DType::F32, kAnyForm, DType::F32, 5, 0, false,
     "Mins Maxs 5*Abs 4*Mul+ 4*Mul 7*Muls 26*Adds 3*Mul:ez Mul:cz+ 3*Adds+ 3*Div:ad 6*Mul:de 3*Mul:ad "
     "2*Min:dz Div:de 5*Mul:ae Min:az Mul:az"},
    {Math::Atan, DType::F16, kAnyForm, DType::F32, 6, 0, false,
     "2*Cast Mins Maxs 5*Abs 4*Mul+ 4*Mul 7*Muls 26*Adds 3*Mul:ef Mul:cf+ 3*Adds+ 3*Div:ad 6*Mul:de 3*Mul:ad "
     "2*Min:df Div:de 5*Mul:ae Min:af Mul:af"},
    {Math::Atanh, DType::F32, kAnyForm, DType::F32, 1, 0, true, "2*Adds 2*Muls Div:az Ln"},
    {Math::Atanh, DType::F16, kAnyForm, DType::F32, 2, 0, true, "Cast 2*Adds 2*Muls Div:ab Ln Cast+"},
    {Math::Ceil, DType::F32, kAnyForm, DType::F32, 1, 0, false, "Cast"},
    {Math::Ceil, DType::F16, kAnyForm, DType::F32, 1, 0, false, "3*Cast"},
    {Math::ClampMax, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Mins+"},
    {Math::ClampMax, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Mins+"},
    {Math::ClampMin, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Maxs+"},
    {Math::ClampMin, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Maxs+"},
    {Math::Cos, DType::F32, kAnyForm, DType::F32, 3, 0, false,
     "10*Muls 8*Adds 2*Cast Sub:bx 4*Sub:bc Mul Add:az 3*Mul:ab Mul:ac Mul:az Mins Maxs"},
    {Math::Cos, DType::F16, kAnyForm, DType::F32, 4, 0, false,
     "4*Cast 10*Muls 8*Adds Sub:ac 4*Sub:cd Mul Add:ab 3*Mul:bc Mul:bd Mul:ab Mins Maxs"},
    {Math::Cosh, DType::F32, kAnyForm, DType::F32, 2, 0, false, "Adds Exp Duplicate Div:az Add:ab"},
    {Math::Cosh, DType::F16, kAnyForm, DType::F32, 3, 0, false, "2*Cast Adds Exp Duplicate Div:ac Add:ab"},
    {Math::Digamma, DType::F32, kAnyForm, DType::F32, 7, 0, false,
     "14*Duplicate+ 26*Duplicate 7*Compare:fx 7*SetCmpMask.1 7*Select 5*Add:dz 3*And.m 3*Cast Compare:bx "
     "Not.m+ Not.m 26*Adds 2*Ln 3*Div:bf 5*Muls 4*Sub:ac 2*Mul+ 14*Mul:bc 12*Sub:cf Div:fx+ 18*Div:cf "
     "18*Add:bc 2*Sub:ab Div:df+ Add Sub:bc And:cd Cast+ 2*Compare:cf Mul 6*Mul:ce Mul:be Add:be 2*Add:de "
     "Add:ae"},
    {Math::Digamma, DType::F16, kAnyForm, DType::F32, 8, 0, false,
     "11*Cast Sub:ef 38*Muls 28*Adds 16*Sub:bg 7*Mul 3*Mul:ag Mul:bg 8*Mul:ab Div:ag 21*Duplicate 3*Div:bg "
     "2*Duplicate+ 9*Compare:fg 6*SetCmpMask.1 6*Select 6*Add:be 4*And.m Compare:bf Not.m+ Not.m 2*Ln "
     "8*Sub:ag 2*Mul:bc 2*Div:fg+ 4*Div:cg 4*Add:bc 2*Sub:ab 2*Sub:fg Sub:ad Add:ad Mul:ad Mins Maxs 4*Sub:bf "
     "Add:ag Mul:af Div:dg Sub:cd"},
    {Math::Erf, DType::F32, kAnyForm, DType::F32, 3, 0, false, "Mins Maxs Mul Muls 10*Adds 8*Mul:ac Mul:cz Div:bc"},
    {Math::Erf, DType::F16, kAnyForm, DType::F32, 4, 0, false,
     "2*Cast Mins Maxs Mul Muls 10*Adds 8*Mul:ac Mul:cd Div:bc"},
    {Math::Erfc, DType::F32, kAnyForm, DType::F32, 5, 0, false,
     "2*Mins Maxs Abs 15*Adds Div:az 3*Muls 7*Mul:ad 5*Mul:ac Div:cd Mul Exp Mul:cz Add:bc"},
    {Math::Erfc, DType::F16, kAnyForm, DType::F32, 6, 0, false,
     "2*Cast 2*Mins Maxs Abs 15*Adds Div:af 3*Muls 7*Mul:ad 5*Mul:ac Div:cd Mul Exp Mul:cf Add:bc"},
    {Math::ExpTaylor, DType::F32, 0, DType::F32, 0, 0, false, "Exp"},
    {Math::ExpTaylor, DType::F32, kAnyForm, DType::F32, 3, 0, false,
     "4*Adds Cast Sub:ac Exp n*Mul:ab n*Muls n*Add:bz Mul:cz"},
    {Math::ExpTaylor, DType::F16, 0, DType::F16, 0, 0, false, "Exp"},
    {Math::ExpTaylor, DType::F16, kAnyForm, DType::F32, 4, 0, false,
     "3*Cast Sub:ad Exp 3*Adds n*Mul:ab n*Muls n*Add:bc Mul:cd"},
    {Math::FasterGelu, DType::F32, 0, DType::F32, 1, 0, false, "Muls Exp Adds Div:ax"},
    {Math::FasterGelu, DType::F32, 2, DType::F32, 1, 0, false, "Muls Exp Adds Reciprocal Mul:ax"},
    {Math::FasterGelu, DType::F16, 0, DType::F16, 1, 0, false, "Muls Exp Adds Div:ax"},
    {Math::FasterGelu, DType::F16, 1, DType::F32, 2, 0, false, "2*Cast Muls Exp Adds Div:ab"},
    {Math::FasterGelu, DType::F16, 2, DType::F16, 1, 0, false, "Muls Exp Adds Reciprocal Mul:ax"},
    {Math::FasterGelu, DType::F16, 3, DType::F32, 2, 0, false, "2*Cast Muls Exp Adds Reciprocal Mul:ab"},
    {Math::FasterGeluV2, DType::F32, 0, DType::F32, 3, 0, false, "2*Muls 2*Abs Mins 4*Adds Mul Div:bc Mul:ab Mul:ax"},
    {Math::FasterGeluV2, DType::F32, 2, DType::F32, 3, 0, false,
     "2*Muls 2*Abs Mins 4*Adds Mul Reciprocal Mul:bc Mul:ab Mul:ax"},
    {Math::FasterGeluV2, DType::F16, 0, DType::F16, 3, 0, false, "2*Muls 2*Abs Mins 4*Adds Mul Div:bc Mul:ab Mul:ax"},
    {Math::FasterGeluV2, DType::F16, 1, DType::F32, 4, 0, false,
     "2*Cast 2*Muls 2*Abs Mins 4*Adds Mul Div:bc Mul:ab Mul:ad"},
    {Math::FasterGeluV2, DType::F16, 2, DType::F16, 3, 0, false,
     "2*Muls 2*Abs Mins 4*Adds Mul Reciprocal Mul:bc Mul:ab Mul:ax"},
    {Math::FasterGeluV2, DType::F16, 3, DType::F32, 4, 0, false,
     "2*Cast 2*Muls 2*Abs Mins 4*Adds Mul Reciprocal Mul:bc Mul:ab Mul:ad"},
    {Math::Floor, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Cast+"},
    {Math::Floor, DType::F16, kAnyForm, DType::F32, 1, 0, false, "3*Cast"},
    {Math::Fmod, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Div:xy Cast Mul:yz Sub:xz"},
    {Math::Fmod, DType::F16, kAnyForm, DType::F32, 4, 0, false, "Cast+ 3*Cast Div:bc Mul:ac Sub:ab"},
    {Math::Frac, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Cast Sub:xz"},
    {Math::Frac, DType::F16, kAnyForm, DType::F32, 2, 0, false, "3*Cast Sub:ab"},
    {Math::GeGLU, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Mul 2*Adds Mul:yz Muls Exp Div:yz Mul:xz"},
    {Math::GeGLU, DType::F16, kAnyForm, DType::F32, 2, 0, true, "3*Cast Mul 2*Adds Muls Exp 2*Mul:ab Div:ab"},
    {Math::Gelu, DType::F32, 0, DType::F32, 2, 0, false, "Mul Mul:ax 3*Muls Add:ax Mins 2*Exp Abs Adds Div:ax Mul:ab"},
    {Math::Gelu, DType::F32, 2, DType::F32, 2, 0, false,
     "Mul Mul:ax 3*Muls Add:ax Mins 2*Exp Abs Adds Reciprocal Mul:ax Mul:ab"},
    {Math::Gelu, DType::F16, 0, DType::F16, 2, 0, false, "Mul Mul:ax 3*Muls Add:ax Mins 2*Exp Abs Adds Div:ax Mul:ab"},
    {Math::Gelu, DType::F16, 1, DType::F32, 3, 0, false,
     "2*Cast Mul Mul:ac 3*Muls Add:ac Mins 2*Exp Abs Adds Div:ac Mul:ab"},
    {Math::Gelu, DType::F16, 2, DType::F16, 2, 0, false,
     "Mul Mul:ax 3*Muls Add:ax Mins 2*Exp Abs Adds Reciprocal Mul:ax Mul:ab"},
    {Math::Gelu, DType::F16, 3, DType::F32, 3, 0, false,
     "2*Cast Mul Mul:ac 3*Muls Add:ac Mins 2*Exp Abs Adds Reciprocal Mul:ac Mul:ab"},
    {Math::Lgamma, DType::F32, kAnyForm, DType::F32, 8, 0, false,
     "23*Duplicate 2*Compare:ax 2*Abs 14*Compare:af 18*Muls 47*Adds 8*Mul:af Add:af 4*Ln 14*SetCmpMask.1 "
     "14*Select 6*Add:ae 8*And.m 24*Mul:ab 8*Mul:ac Div:bc Add:ac Reciprocal 2*Mul Mul:ad 6*Add:ab Sub:af "
     "3*Add:az 3*Add:ad Add 3*Cast Sub:bc 2*Compare:ac 3*Not.m Add:bf Not.m+"},
    {Math::Lgamma, DType::F16, kAnyForm, DType::F32, 6, 0, false,
     "11*Duplicate 4*Cast 16*Adds 5*Div 22*Muls 13*Ln 14*Add 8*Mul 7*Sub 3*Compare 4*SetCmpMask.1 4*Select "
     "3*Add:ab 2*Abs Not.m+ 2*Not.m And.m Cast+"},
    {Math::Log, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Ln+"},
    {Math::Log, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Ln+"},
    {Math::Log10, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Ln Muls+"},
    {Math::Log10, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Ln Muls+"},
    {Math::Log2, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Ln Muls+"},
    {Math::Log2, DType::F16, kAnyForm, DType::F32, 1, 0, false, "2*Cast Ln Muls"},
    {Math::Power, DType::F32, 0, DType::F32, 4, 256, false,
     "Duplicate.1+ Duplicate.1 | 6*Abs Ln Mul:yz Exp 4*Cast 3*Muls Sub:ab Adds ShiftRight 8*CompareScalar "
     "Sub:bc 3*And.m 3*SetCmpMask.1 3*Select Mul:bz 3*Or.m Or.m+ CompareScalar+"},
    {Math::Power, DType::F32, 1, DType::F32, 5, 256, false,
     "Duplicate.1+ Duplicate.1 Duplicate | 6*Abs Ln Mul:az Exp 4*Cast 3*Muls Sub:bc Adds ShiftRight "
     "8*CompareScalar Sub:cd 3*And.m 3*SetCmpMask.1 3*Select Mul:cz 3*Or.m Or.m+ CompareScalar+"},
    {Math::Power, DType::F16, 0, DType::F32, 7, 256, false,
     "Duplicate.1+ Duplicate.1 | Cast+ 6*Cast 6*Abs Ln Mul:bc Exp 3*Muls Sub:de Adds ShiftRight "
     "8*CompareScalar Sub:ef 3*And.m 3*SetCmpMask.1 3*Select Mul:ce 3*Or.m Or.m+ CompareScalar+"},
    {Math::Power, DType::F16, 1, DType::F32, 7, 256, false,
     "Duplicate.1+ Duplicate.1 Duplicate | 6*Cast 6*Abs Ln Mul:bc Exp 3*Muls Sub:de Adds ShiftRight "
     "8*CompareScalar Sub:ef 3*And.m 3*SetCmpMask.1 3*Select Mul:ce 3*Or.m Or.m+ CompareScalar+"},
    {Math::Power, DType::I32, kAnyForm, DType::I32, 6, 0, false,
     "11*Cast 11*CompareScalar 5*Muls 17*Duplicate.1 17*SetCmpMask.1 17*Select 4*Duplicate 4*ShiftRight "
     "8*ReduceRepeat 3*Mul 3*Mul:xz 3*Adds Sub:bc Div:ab"},
    {Math::ReGlu, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Maxs Mul:xz"},
    {Math::ReGlu, DType::F16, kAnyForm, DType::F32, 3, 0, false, "Cast+ 2*Cast Maxs Mul:ac"},
    {Math::Round, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Cast+"},
    {Math::Round, DType::F16, kAnyForm, DType::F32, 1, 0, false, "3*Cast"},
    {Math::Sigmoid, DType::F32, kAnyForm, DType::F32, 1, 0, false, "Muls Exp Adds+ Duplicate Div:az"},
    {Math::Sigmoid, DType::F16, kAnyForm, DType::F16, 1, 0, false, "Muls Exp Adds+ Duplicate Div:az"},
    {Math::Sign, DType::F32, kAnyForm, DType::F32, 3, 0, false,
     "3*Duplicate 2*Compare:xz+ 2*SetCmpMask.1+ 2*Select Add:bz"},
    {Math::Sign, DType::F16, kAnyForm, DType::F16, 3, 0, false,
     "3*Duplicate 2*Compare:xz+ 2*SetCmpMask.1+ 2*Select Add:bz"},
    {Math::Silu, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Muls Exp Adds Div:xz"},
    {Math::Silu, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Muls Exp Adds Div:xz"},
    {Math::Sin, DType::F32, kAnyForm, DType::F32, 3, 0, false,
     "9*Muls 2*Cast Sub:bx 3*Sub:bc Mul Add:az 5*Adds 3*Mul:ab Mul:ac Mul:az"},
    {Math::Sin, DType::F16, kAnyForm, DType::F32, 4, 0, false,
     "4*Cast 9*Muls Sub:ac 3*Sub:cd Mul Add:ab 5*Adds 3*Mul:bc Mul:bd Mul:ab"},
    {Math::Sinh, DType::F32, kAnyForm, DType::F32, 1, 0, false, "Muls 2*Adds 2*Exp Sub:az"},
    {Math::Sinh, DType::F16, kAnyForm, DType::F32, 2, 0, false, "2*Cast 2*Adds 2*Exp Muls Sub:ab"},
    {Math::SwiGLU, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Muls Exp Adds Div:yz Mul:xz"},
    {Math::SwiGLU, DType::F16, kAnyForm, DType::F32, 3, 0, true, "3*Cast Muls Exp Adds Div:ab Mul:bc"},
    {Math::Swish, DType::F32, kAnyForm, DType::F32, 0, 0, false, "Muls Exp Adds Div:xz"},
    {Math::Swish, DType::F16, kAnyForm, DType::F16, 0, 0, false, "Muls Exp Adds Div:xz"},
    {Math::Tan, DType::F32, kAnyForm, DType::F32, 4, 0, true,
     "8*Adds 7*Muls Cast 5*Sub:dz 3*Sub:bz 3*Sub:cz Mul Mul:az Mul:dz Mul:ab Mul:ac Div:az"},
    {Math::Tan, DType::F16, kAnyForm, DType::F32, 5, 0, true,
     "3*Cast 7*Muls 5*Sub:ab 7*Adds 3*Sub:ad 3*Sub:ae Mul Mul:ac Mul:ab Mul:cd Mul:ce Div:ac"},
    {Math::Tanh, DType::F32, kAnyForm, DType::F32, 1, 0, false, "Mins Maxs Muls Exp 2*Adds Div:az"},
    {Math::Tanh, DType::F16, kAnyForm, DType::F32, 2, 0, false, "2*Cast Mins Maxs Muls Exp 2*Adds Div:ab"},
    {Math::Trunc, DType::F32, kAnyForm, DType::F32, 1, 0, false, "Cast"},
    {Math::Trunc, DType::F16, kAnyForm, DType::F32, 1, 0, false, "3*Cast"},
    {Math::Xor, DType::I16, kAnyForm, DType::I16, 1, 0, false, "And:xy+ Or:xy Not And:az"},
};

// One entry of Recipe::steps.
struct Step {
  std::string name;
  uint32_t times = 1;
  char kind = 0, first = 0, second = 0;
  bool barrier = true, once = false;
};

Step read_step(const std::string& text, uint32_t form) {
  Step step;
  size_t at = text.find('*');
  if (at != std::string::npos) step.times = text[0] == 'n' ? form - 1 : static_cast<uint32_t>(std::stoul(text));
  const size_t name = at == std::string::npos ? 0 : at + 1, end = text.find_first_of(".:+", name);
  step.name = text.substr(name, end - name);
  if ((at = text.find('.')) != std::string::npos) step.kind = text[at + 1];
  if ((at = text.find(':')) != std::string::npos) step.first = text[at + 1], step.second = text[at + 2];
  step.barrier = text.back() != '+';
  return step;
}

// Read once by each thread: reading takes longer than what a call computes.
const std::vector<Step>& read_steps(const Recipe& recipe, uint8_t form) {
  static thread_local std::map<std::pair<const Recipe*, uint8_t>, std::vector<Step>> known;
  const auto [found, is_new] = known.try_emplace({&recipe, form});
  std::vector<Step>& out = found->second;
  if (!is_new) return out;
  std::istringstream words(recipe.steps);
  for (std::string word; words >> word;) {
    if (word != "|")
      out.push_back(read_step(word, form));
    else
      for (Step& step : out) step.once = true;
  }
  return out;
}

const Recipe* recipe_of(Math op, DType type, uint8_t form) {
  if (type == DType::U16) type = DType::I16;
  for (const Recipe& r : kRecipes)
    if (r.op == op && r.type == type && (r.form == form || r.form == kAnyForm)) return &r;
  return nullptr;
}

// The passes of one call, and where its operands lie in each.
class Passes {
 public:
  Passes(const Recipe& recipe, const Operand& destination, const MathArguments& a, Core& core)
      : recipe_(recipe), destination_(destination), a_(a), core_(core), piece_(a.count) {
    const uint32_t given = a.shared ? a.shared_bytes : core.local_rest_bytes();
    const uint32_t bytes = given - std::min<uint32_t>(given, recipe.ahead);
    base_ = core.local_offset(a.shared ? a.shared : core.local_rest()) + recipe.ahead;
    if (recipe.parts == 0) return;
    part_ = std::max(kGrain, bytes / dtype_size(recipe.element) / recipe.parts / kGrain * kGrain);
    piece_ = std::min(piece_, part_);
    if (recipe.packed) part_ = (piece_ + kGrain - 1) / kGrain * kGrain;
  }
  uint32_t piece() const { return piece_; }

  // Cycles that `step` loses to conflicts of banks in the pass over `n` elements from `begin` on.
  double stalls(const Step& step, uint32_t begin, uint32_t n, double pace) const {
    if (!step.first || !core_.options.timing) return 0;
    const DType type = type_of(step);
    const BankOperand sources[] = {banks(step.first, begin, n, type), banks(step.second, begin, n, type)};
    // In place: where results go is one source or another temporary.
    return bank_stalls(sources, 2, sources[0], static_cast<uint32_t>(units(step, n)), pace, core_.chip);
  }
  double units(const Step& step, uint32_t n) const {
    if (step.kind == '1') return 1;
    if (step.kind == 'm') return repeats_of((n + 15) / 16, sizeof(uint16_t));
    return repeats_of(n, dtype_size(type_of(step)));
  }
  DType type_of(const Step& step) const { return step.kind == 'h' ? DType::F16 : recipe_.element; }

 private:
  static constexpr uint32_t kGrain = 32;  // elements that parts are multiples of

  BankOperand banks(char where, uint32_t begin, uint32_t n, DType type) const {
    BankOperand out;
    out.row = offset(where, begin) / kBlockBytes;
    const uint32_t blocks = (n * dtype_size(type) + kBlockBytes - 1) / kBlockBytes;
    if (blocks < kBlocksPerRepeat) out.blocks = (1u << blocks) - 1;
    return out;
  }
  uint32_t offset(char where, uint32_t begin) const {
    const auto tensor = [&](const Operand& o) {
      return o.dtype == DType::None ? base_ : core_.local_offset(o.ptr) + begin * dtype_size(o.dtype);
    };
    if (where == 'x') return tensor(a_.src0);
    if (where == 'y') return tensor(a_.src1);
    if (where == 'z') return tensor(destination_);
    const bool middle = where < 'a';
    const uint32_t halves = 2 * static_cast<uint32_t>(where - (middle ? 'A' : 'a')) + middle;
    return base_ + halves * part_ * dtype_size(recipe_.element) / 2;
  }

  const Recipe& recipe_;
  const Operand& destination_;
  const MathArguments& a_;
  Core& core_;
  uint32_t piece_, part_ = 0, base_ = 0;
};

}  // namespace

MathCost math_cost(Math op, const Operand& destination, const MathArguments& a, Core& core) {
  MathCost out;
  const Recipe* recipe = recipe_of(op, destination.dtype, a.form);
  if (!recipe) return out;
  const Passes passes(*recipe, destination, a, core);
  Work& work = out.work;
  for (const Step& step : read_steps(*recipe, a.form)) {
    const DType type = passes.type_of(step);
    const uint16_t row = core.chip.instruction(step.name.c_str(), type);
    const double pace = core.chip.instructions[row].pace;
    double heads = 0, units = 0, stalls = 0;
    for (uint32_t begin = 0; begin < a.count; begin += passes.piece()) {
      const uint32_t n = std::min(passes.piece(), a.count - begin);
      heads += step.times;
      units += step.times * passes.units(step, n);
      stalls += step.times * passes.stalls(step, begin, n, pace);
      if (step.barrier) out.barriers += step.times;
      if (step.once) break;
    }
    if (heads == 0) continue;
    if (work.heads > 0) work.rest = core.trace.works.number(work);
    work.instruction = row;
    work.heads = static_cast<float>(heads);
    work.units = static_cast<float>(units);
    work.cycles = static_cast<float>(stalls);
  }
  return out;
}

}  // namespace vnpu
