// ops::OpDef and ge::Operator: what their headers leave to the library, so that it is compiled once.
#include <utility>

#include "graph/operator.h"
#include "host.h"

namespace ops {

OpParamDef::OpParamDef(const char* param_name) : name(param_name) {}
OpParamDef::OpParamDef(const OpParamDef& other) = default;
OpParamDef::~OpParamDef() = default;

namespace {

template <typename T, typename V>
OpParamDef& Set(OpParamDef* param, T OpParamDef::* member, V&& value) {
  param->*member = std::forward<V>(value);
  return *param;
}

}  // namespace

OpParamDef& OpParamDef::ParamType(Option option) { return Set(this, &OpParamDef::param_type, option); }
OpParamDef& OpParamDef::DataType(std::initializer_list<ge::DataType> column) {
  return Set(this, &OpParamDef::types, column);
}
OpParamDef& OpParamDef::DataType(const std::vector<ge::DataType>& column) {
  return Set(this, &OpParamDef::types, column);
}
OpParamDef& OpParamDef::DataTypeList(std::initializer_list<ge::DataType> all) {
  return Set(this, &OpParamDef::type_list, all);
}
OpParamDef& OpParamDef::DataTypeList(const std::vector<ge::DataType>& all) {
  return Set(this, &OpParamDef::type_list, all);
}
OpParamDef& OpParamDef::Format(std::initializer_list<ge::Format> column) {
  return Set(this, &OpParamDef::formats, column);
}
OpParamDef& OpParamDef::Format(const std::vector<ge::Format>& column) {
  return Set(this, &OpParamDef::formats, column);
}
OpParamDef& OpParamDef::FormatList(std::initializer_list<ge::Format> all) {
  return Set(this, &OpParamDef::format_list, all);
}
OpParamDef& OpParamDef::FormatList(const std::vector<ge::Format>& all) {
  return Set(this, &OpParamDef::format_list, all);
}
OpParamDef& OpParamDef::ValueDepend(Option option) { return Set(this, &OpParamDef::value_depend, option); }
OpParamDef& OpParamDef::Scalar() { return Set(this, &OpParamDef::scalar, true); }
OpParamDef& OpParamDef::ScalarList() { return Set(this, &OpParamDef::scalar_list, true); }
OpParamDef& OpParamDef::Follow(const char* parameter) { return Set(this, &OpParamDef::follow, parameter); }
OpParamDef& OpParamDef::Follow(const char* parameter, FollowType type) {
  return type == FollowType::SHAPE || type == FollowType::FORMAT ? *this : Follow(parameter);
}
OpParamDef& OpParamDef::OutputShapeDependOnCompute() { return Set(this, &OpParamDef::shape_from_kernel, true); }
OpParamDef& OpParamDef::InitValue(uint64_t value) {
  init_values.assign(1, static_cast<double>(value));
  return *this;
}
OpParamDef& OpParamDef::InitValue(const ScalarVar& value) {
  init_values.assign(1, value.value);
  return *this;
}
OpParamDef& OpParamDef::InitValue(const std::vector<ScalarVar>& values) {
  init_values.clear();
  for (const ScalarVar& value : values) init_values.push_back(value.value);
  return *this;
}

OpAttrDef::OpAttrDef(const char* attr_name) : name(attr_name) {}
OpAttrDef::OpAttrDef(const OpAttrDef& other) = default;
OpAttrDef::~OpAttrDef() = default;
OpAttrDef& OpAttrDef::Set(const char* type_name) {
  type = type_name;
  return *this;
}

OpParams::OpParams() = default;
OpParams::OpParams(const OpParams& other) = default;
OpParams& OpParams::operator=(const OpParams& other) = default;
OpParams::~OpParams() = default;
OpParamDef& OpParams::Get(const char* name) {
  for (auto& param : params_) {
    if (param.name == name) return param;
  }
  params_.emplace_back(name);
  return params_.back();
}

OpAICoreConfig::OpAICoreConfig() = default;
OpAICoreConfig::OpAICoreConfig(const char*) {}
OpAICoreConfig::OpAICoreConfig(const OpAICoreConfig& other) = default;
OpAICoreConfig& OpAICoreConfig::operator=(const OpAICoreConfig& other) = default;
OpAICoreConfig::~OpAICoreConfig() = default;

OpAICoreDef::OpAICoreDef() = default;
OpAICoreDef::~OpAICoreDef() = default;
OpAICoreDef& OpAICoreDef::AddConfig(const char* soc) { return AddConfig(soc, OpAICoreConfig()); }
OpAICoreDef& OpAICoreDef::AddConfig(const char* soc, const OpAICoreConfig& config) {
  configs[soc] = config;
  return *this;
}

OpDef::OpDef(const char* op_type) : type_(op_type) {}
OpDef::~OpDef() = default;
OpAttrDef& OpDef::Attr(const char* name) {
  for (auto& attr : attrs) {
    if (attr.name == name) return attr;
  }
  attrs.emplace_back(name);
  return attrs.back();
}
ge::AscendString OpDef::GetOpType() const { return ge::AscendString(type_.c_str()); }

}  // namespace ops

namespace ge {
namespace {

template <typename Map, typename T>
T Found(const Map& map, const char* name, T otherwise) {
  const auto at = map.find(name);
  return at == map.end() ? otherwise : at->second;
}

}  // namespace

Operator::Operator() = default;
Operator::Operator(const char* name, const char* type) : name_(name), type_(type) {}
Operator::Operator(const Operator& other) = default;
Operator& Operator::operator=(const Operator& other) = default;
Operator::~Operator() = default;

graphStatus Operator::GetName(AscendString& name) const {
  name = name_;
  return GRAPH_SUCCESS;
}
graphStatus Operator::GetOpType(AscendString& type) const {
  type = type_;
  return GRAPH_SUCCESS;
}
TensorDesc Operator::GetInputDescByName(const char* name) const { return Found(inputs_, name, TensorDesc()); }
TensorDesc Operator::GetOutputDescByName(const char* name) const { return Found(outputs_, name, TensorDesc()); }
TensorDesc Operator::GetInputDesc(const std::string& name) const { return Found(inputs_, name.c_str(), TensorDesc()); }
TensorDesc Operator::GetInputDesc(uint32_t index) const {
  return index < input_names_.size() ? GetInputDesc(input_names_[index]) : TensorDesc();
}
TensorDesc Operator::GetOutputDesc(const std::string& name) const {
  return Found(outputs_, name.c_str(), TensorDesc());
}
TensorDesc Operator::GetOutputDesc(uint32_t index) const {
  return index < output_names_.size() ? GetOutputDesc(output_names_[index]) : TensorDesc();
}
graphStatus Operator::UpdateInputDesc(const char* name, const TensorDesc& desc) {
  if (inputs_.count(name) == 0) input_names_.emplace_back(name);
  inputs_[name] = desc;
  return GRAPH_SUCCESS;
}
graphStatus Operator::UpdateOutputDesc(const char* name, const TensorDesc& desc) {
  if (outputs_.count(name) == 0) output_names_.emplace_back(name);
  outputs_[name] = desc;
  return GRAPH_SUCCESS;
}
graphStatus Operator::GetInputConstData(const char* name, Tensor& data) const {
  const auto at = constants_.find(name);
  if (at == constants_.end()) return GRAPH_FAILED;
  data = at->second;
  return GRAPH_SUCCESS;
}
graphStatus Operator::SetInputConstData(const char* name, const Tensor& data) {
  constants_[name] = data;
  return GRAPH_SUCCESS;
}

}  // namespace ge
