// tuningtiling: what CANN's tuner keeps in its bank of tuned tilings, one class per operator with named fields. Tiling
// programs that could look there declare such classes. The bank here has no entries, as that of an installation that
// nobody tuned: classes are declared, and registering one changes nothing.
#pragma once
#define __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__  // repositories have copies of it: this stands for them
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/ascend_string.h"

namespace tuningtiling {

struct TilingItem {
  ge::AscendString dtype_;
  ge::AscendString name_;
};

class TuningTilingDef {
 public:
  virtual ~TuningTilingDef() = default;
  ge::AscendString GetClassName() const { return class_name_; }
  const std::vector<TilingItem>& GetItemInfo() const { return field_info_; }

 protected:
  bool Note(const char* dtype, const char* name) {
    field_info_.push_back({dtype, name});
    return true;
  }
  std::vector<TilingItem> field_info_;
  ge::AscendString class_name_;
};
using TuningTilingDefPtr = std::shared_ptr<TuningTilingDef>;

}  // namespace tuningtiling

#define BEGIN_TUNING_TILING_DEF(class_name)                   \
  class class_name : public ::tuningtiling::TuningTilingDef { \
   public:                                                    \
    class_name() { class_name_ = #class_name; }

#define TUNING_TILING_DATA_FIELD_DEF(data_type, field_name) \
  data_type field_name{};                                   \
  bool field_name##_noted_ = Note(#data_type, #field_name);

#define END_TUNING_TILING_DEF \
  }                           \
  ;

// How the bank's files are read and written, which nobody does.
#define FIELD(class_name, field_name) (&class_name::field_name)
#define DECLARE_SCHEMA(class_name, ...) static_assert(sizeof(class_name) > 0, #class_name)
#define REGISTER_TUNING_TILING_CLASS(op_type, class_name) static_assert(sizeof(class_name) > 0, #op_type)
