// The keys under which tuned tilings are found in CANN's bank: functions that make one from a tiling context. They are
// registered, and found again by who registered them; the bank (tuning_tiling_registry.h) has no entries to ask for.
#pragma once
#define __INC_REGISTER_TUNING_BANK_KEY_REGISTRY_HEADER__  // repositories have copies of it: this stands for them
#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/ascend_string.h"

namespace tuningtiling {

using OpBankKeyConvertFunV2 = std::function<bool(const gert::TilingContext*, std::shared_ptr<void>&, size_t&)>;
using OpBankParseFunV2 = std::function<bool(const std::shared_ptr<void>&, size_t, ge::AscendString&)>;
using OpBankLoadFunV2 = std::function<bool(std::shared_ptr<void>&, size_t&, const ge::AscendString&)>;

class OpBankKeyFuncInfoV2 {
 public:
  const OpBankKeyConvertFunV2& GetBankKeyConvertFuncV2() const { return convert; }
  const OpBankParseFunV2& GetBankKeyParseFuncV2() const { return parse; }
  const OpBankLoadFunV2& GetBankKeyLoadFuncV2() const { return load; }

  OpBankKeyConvertFunV2 convert;
  OpBankParseFunV2 parse;
  OpBankLoadFunV2 load;
};

// A template, of which nothing is compiled in the many programs that use none of it.
template <typename = void>
class BankKeyFuncRegistry {
 public:
  BankKeyFuncRegistry(const ge::AscendString& op_type, const OpBankKeyConvertFunV2& convert) {
    RegisteredOpFuncInfoV2()[op_type].convert = convert;
  }
  BankKeyFuncRegistry(const ge::AscendString& op_type, const OpBankParseFunV2& parse, const OpBankLoadFunV2& load) {
    RegisteredOpFuncInfoV2()[op_type].parse = parse;
    RegisteredOpFuncInfoV2()[op_type].load = load;
  }
  static std::map<ge::AscendString, OpBankKeyFuncInfoV2>& RegisteredOpFuncInfoV2() {
    static std::map<ge::AscendString, OpBankKeyFuncInfoV2> functions;
    return functions;
  }
};
using OpBankKeyFuncRegistryV2 = BankKeyFuncRegistry<>;

// A key has no text here: nobody stores or prints one.
inline bool NoBankKeyText(const std::shared_ptr<void>&, size_t, ge::AscendString&) { return false; }
inline bool NoBankKeyLoaded(std::shared_ptr<void>&, size_t&, const ge::AscendString&) { return false; }

}  // namespace tuningtiling

#define REGISTER_OP_BANK_KEY_CONVERT_FUN_V2(op_type, convert) \
  static ::tuningtiling::OpBankKeyFuncRegistryV2 g_##op_type##_bank_key_convert(#op_type, (convert))
#define REGISTER_OP_BANK_KEY_PARSE_FUN_V2(op_type, parse, load) \
  static ::tuningtiling::OpBankKeyFuncRegistryV2 g_##op_type##_bank_key_parse(#op_type, (parse), (load))
#define DECLARE_STRUCT_RELATE_WITH_OP_V2(op_type, key_struct, ...) \
  REGISTER_OP_BANK_KEY_PARSE_FUN_V2(op_type, ::tuningtiling::NoBankKeyText, ::tuningtiling::NoBankKeyLoaded)
