// ops::OpDef: the definition of an operator, written by its author as a chain of calls and kept here as data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/types.h"
#include "register/op_impl_registry.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope { ALL, TILING };
enum class FollowType { ALL, DTYPE, FORMAT, SHAPE };
enum class FormatCheckOption { DEFAULT, STRICT };
enum class InitValueType { INIT_VALUE_DEFAULT, INIT_VALUE_UINT64_T };
enum class ScalarType { UINT64, INT64, UINT32, INT32, UINT16, INT16, UINT8, INT8, FLOAT32, FLOAT16 };

struct ScalarVar {
  ScalarVar() = default;
  template <typename T>
  ScalarVar(ScalarType scalar_type, T scalar_value) : type(scalar_type), value(static_cast<double>(scalar_value)) {}
  ScalarType type = ScalarType::UINT64;
  double value = 0;
};

// What needs containers is defined in libvnpu_host.so: a compiler instantiates what inline functions of a precompiled
// header use for every source again, and host programs are compiled once for every candidate.
class OpParamDef {
 public:
  explicit OpParamDef(const char* param_name);
  OpParamDef(const OpParamDef& other);
  ~OpParamDef();

  OpParamDef& ParamType(Option option);
  OpParamDef& DataType(std::initializer_list<ge::DataType> column);
  OpParamDef& DataType(const std::vector<ge::DataType>& column);
  OpParamDef& DataTypeList(std::initializer_list<ge::DataType> all);
  OpParamDef& DataTypeList(const std::vector<ge::DataType>& all);
  OpParamDef& DataTypeForBinQuery(std::initializer_list<ge::DataType>) { return *this; }
  OpParamDef& DataTypeForBinQuery(const std::vector<ge::DataType>&) { return *this; }
  OpParamDef& Format(std::initializer_list<ge::Format> column);
  OpParamDef& Format(const std::vector<ge::Format>& column);
  OpParamDef& FormatList(std::initializer_list<ge::Format> all);
  OpParamDef& FormatList(const std::vector<ge::Format>& all);
  OpParamDef& FormatForBinQuery(std::initializer_list<ge::Format>) { return *this; }
  OpParamDef& FormatForBinQuery(const std::vector<ge::Format>&) { return *this; }
  OpParamDef& UnknownShapeFormat(std::initializer_list<ge::Format>) { return *this; }
  OpParamDef& UnknownShapeFormat(const std::vector<ge::Format>&) { return *this; }
  OpParamDef& ValueDepend(Option option);
  OpParamDef& ValueDepend(Option option, DependScope) { return ValueDepend(option); }
  OpParamDef& Scalar();
  OpParamDef& ScalarList();
  OpParamDef& Follow(const char* parameter);
  OpParamDef& Follow(const char* parameter, FollowType type);
  OpParamDef& OutputShapeDependOnCompute();
  // What the output holds before the kernel runs, if the tiling function calls SetNeedAtomic(true): one value, or one
  // per column.
  OpParamDef& InitValue(uint64_t value);
  OpParamDef& InitValue(const ScalarVar& value);
  OpParamDef& InitValue(const std::vector<ScalarVar>& values);
  // The next ones steer graph building or the generated aclnn interface; neither exists here.
  OpParamDef& AutoContiguous() { return *this; }
  OpParamDef& IgnoreContiguous() { return *this; }
  OpParamDef& To(ge::DataType) { return *this; }
  OpParamDef& To(const char*) { return *this; }
  OpParamDef& Version(uint32_t) { return *this; }
  OpParamDef& Comment(const char*) { return *this; }

  std::string name;
  Option param_type = REQUIRED;
  Option value_depend = IGNORE;
  std::vector<ge::DataType> types, type_list;  // one per column; or all, to be combined with the other parameters
  std::vector<ge::Format> formats, format_list;
  std::string follow;
  std::vector<double> init_values;
  bool scalar = false, scalar_list = false, shape_from_kernel = false;
};

class OpAttrDef {
 public:
  explicit OpAttrDef(const char* attr_name);
  OpAttrDef(const OpAttrDef& other);
  ~OpAttrDef();

  OpAttrDef& AttrType(Option option) {
    required = option == REQUIRED;
    return *this;
  }
  OpAttrDef& Bool() { return Set("bool"); }
  OpAttrDef& Bool(bool value);
  OpAttrDef& Float() { return Set("float"); }
  OpAttrDef& Float(float value);
  OpAttrDef& Int() { return Set("int"); }
  OpAttrDef& Int(int64_t value);
  OpAttrDef& String() { return Set("str"); }
  OpAttrDef& String(const char* value);
  OpAttrDef& ListBool() { return Set("list_bool"); }
  OpAttrDef& ListBool(const std::vector<bool>& value);
  OpAttrDef& ListFloat() { return Set("list_float"); }
  OpAttrDef& ListFloat(const std::vector<float>& value);
  OpAttrDef& ListInt() { return Set("list_int"); }
  OpAttrDef& ListInt(const std::vector<int64_t>& value);
  OpAttrDef& ListListInt() { return Set("list_list_int"); }
  OpAttrDef& ListListInt(const std::vector<std::vector<int64_t>>&) { return ListListInt(); }
  OpAttrDef& Version(uint32_t) { return *this; }
  OpAttrDef& Comment(const char*) { return *this; }
  const std::string& GetName() const { return name; }
  bool IsRequired() const { return required; }

  std::string name;
  bool required = true;
  std::string type;
  std::string default_json;  // "" when there is none

 private:
  OpAttrDef& Set(const char* type_name);
};

// Parameters in order of their first mention; naming one again edits it.
class OpParams {
 public:
  OpParams();
  OpParams(const OpParams& other);
  OpParams& operator=(const OpParams& other);
  ~OpParams();
  OpParamDef& Get(const char* name);
  const std::deque<OpParamDef>& All() const { return params_; }

 private:
  std::deque<OpParamDef> params_;
};

// The definition for one chip, where it differs.
class OpAICoreConfig {
 public:
  OpAICoreConfig();
  explicit OpAICoreConfig(const char*);
  OpAICoreConfig(const OpAICoreConfig& other);
  OpAICoreConfig& operator=(const OpAICoreConfig& other);
  ~OpAICoreConfig();
  OpParamDef& Input(const char* name) { return inputs.Get(name); }
  OpParamDef& Output(const char* name) { return outputs.Get(name); }
  OpAICoreConfig& DynamicCompileStaticFlag(bool) { return *this; }
  OpAICoreConfig& DynamicFormatFlag(bool) { return *this; }
  OpAICoreConfig& DynamicRankSupportFlag(bool) { return *this; }
  OpAICoreConfig& DynamicShapeSupportFlag(bool) { return *this; }
  OpAICoreConfig& NeedCheckSupportFlag(bool) { return *this; }
  OpAICoreConfig& PrecisionReduceFlag(bool) { return *this; }
  OpAICoreConfig& ExtendCfgInfo(const char*, const char*) { return *this; }
  OpAICoreConfig& Async(bool) { return *this; }
  OpAICoreConfig& AsyncFlag(bool) { return *this; }  // of older versions, as the next one
  OpAICoreConfig& RangeLimitValue(const char*) { return *this; }

  OpParams inputs, outputs;
};

class OpAICoreDef {
 public:
  OpAICoreDef();
  ~OpAICoreDef();
  OpAICoreDef& SetTiling(gert::OpImplRegisterV2::TilingFunction function) {
    tiling = function;
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetTilingParse(F) {  // of older versions
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetCheckSupport(F) {
    return *this;
  }
  std::nullptr_t GetCheckSupport() const { return nullptr; }
  template <typename F>
  OpAICoreDef& SetOpSelectFormat(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetOpSupportInfo(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetOpSpecInfo(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetParamGeneralize(F) {
    return *this;
  }
  OpAICoreDef& AddConfig(const char* soc);
  OpAICoreDef& AddConfig(const char* soc, const OpAICoreConfig& config);

  gert::OpImplRegisterV2::TilingFunction tiling = nullptr;
  std::map<std::string, OpAICoreConfig> configs;
};

class OpMC2Def {
 public:
  OpMC2Def& HcclGroup(const char*) { return *this; }
  OpMC2Def& HcclGroup(std::vector<const char*>) { return *this; }
};

class OpAICPUDef {};

class OpDef {
 public:
  explicit OpDef(const char* op_type);
  virtual ~OpDef();

  OpParamDef& Input(const char* name) { return inputs.Get(name); }
  OpParamDef& Output(const char* name) { return outputs.Get(name); }
  OpAttrDef& Attr(const char* name);
  OpDef& SetInferShape(gert::OpImplRegisterV2::InferShapeFunction function) {
    infer_shape = function;
    return *this;
  }
  OpDef& SetInferShapeRange(gert::OpImplRegisterV2::InferShapeRangeFunction) { return *this; }
  OpDef& SetInferDataType(gert::OpImplRegisterV2::InferDataTypeFunction function) {
    infer_data_type = function;
    return *this;
  }
  OpDef& Comment(const char*) { return *this; }
  OpDef& FormatMatchMode(FormatCheckOption) { return *this; }
  OpDef& EnableFallBack() { return *this; }
  OpAICoreDef& AICore() { return ai_core; }
  OpAICPUDef& AICPU() { return ai_cpu; }
  OpMC2Def& MC2() { return mc2; }
  ge::AscendString GetOpType() const;

  OpParams inputs, outputs;
  std::deque<OpAttrDef> attrs;
  OpAICoreDef ai_core;
  OpAICPUDef ai_cpu;
  OpMC2Def mc2;
  gert::OpImplRegisterV2::InferShapeFunction infer_shape = nullptr;
  gert::OpImplRegisterV2::InferDataTypeFunction infer_data_type = nullptr;

 private:
  std::string type_;
};

}  // namespace ops
