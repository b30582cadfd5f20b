// What a host program registered, as JSON.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "host.h"

namespace {

std::string Quote(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

// The shortest text that gives the float back.
std::string Number(float value) {
  char buffer[40];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(buffer, sizeof(buffer), "%.*g", digits, static_cast<double>(value));
    if (std::strtof(buffer, nullptr) == value) break;
  }
  return buffer;
}

const char* Boolean(bool value) { return value ? "true" : "false"; }

template <typename Container, typename Function>
std::string List(const Container& items, Function text) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += text(item);
  }
  return out + ']';
}

std::string ParamJson(const ops::OpParamDef& p) {
  const char* kinds[] = {"required", "optional", "required", "dynamic", "required"};
  auto number = [](int value) { return std::to_string(value); };
  return "{\"name\":" + Quote(p.name) + ",\"kind\":\"" + kinds[p.param_type] +
         "\",\"dtypes\":" + List(p.types, number) + ",\"dtype_list\":" + List(p.type_list, number) +
         ",\"formats\":" + List(p.formats, number) + ",\"format_list\":" + List(p.format_list, number) +
         ",\"init_values\":" + List(p.init_values, [](double value) { return Number(static_cast<float>(value)); }) +
         ",\"follow\":" + Quote(p.follow) + ",\"value_depend\":" + Boolean(p.value_depend != ops::IGNORE) +
         ",\"shape_from_kernel\":" + Boolean(p.shape_from_kernel) + "}";
}

std::string AttrJson(const ops::OpAttrDef& a) {
  return "{\"name\":" + Quote(a.name) + ",\"type\":" + Quote(a.type) + ",\"required\":" + Boolean(a.required) +
         ",\"default\":" + (a.default_json.empty() ? "null" : a.default_json) + "}";
}

// One struct, and the structs nested in it before it.
void AddStructs(const std::string& registered, const optiling::TilingDef& def, std::set<std::string>* done,
                std::string* out) {
  for (const auto& field : def.Fields()) {
    if (field.nested != nullptr) AddStructs("", *field.nested, done, out);
  }
  const std::string name = def.GetTilingClassName();
  if (!done->insert(registered + "|" + name).second) return;
  if (!out->empty()) *out += ',';
  *out += "{\"registered\":" + Quote(registered) + ",\"name\":" + Quote(name) +
          ",\"size\":" + std::to_string(def.GetDataSize()) + ",\"fields\":" +
          List(def.Fields(),
               [](const auto& f) {
                 return "{\"name\":" + Quote(f.name) + ",\"type\":" + Quote(f.type) +
                        ",\"count\":" + std::to_string(f.count) +
                        ",\"struct\":" + Quote(f.nested == nullptr ? "" : f.nested->GetTilingClassName()) +
                        ",\"offset\":" + std::to_string(f.offset) + "}";
               }) +
          "}";
}

}  // namespace

namespace ops {

OpAttrDef& OpAttrDef::Bool(bool value) {
  default_json = Boolean(value);
  return Set("bool");
}
OpAttrDef& OpAttrDef::Float(float value) {
  default_json = Number(value);
  return Set("float");
}
OpAttrDef& OpAttrDef::Int(int64_t value) {
  default_json = std::to_string(value);
  return Set("int");
}
OpAttrDef& OpAttrDef::String(const char* value) {
  default_json = Quote(value);
  return Set("str");
}
OpAttrDef& OpAttrDef::ListBool(const std::vector<bool>& value) {
  default_json = List(value, Boolean);
  return Set("list_bool");
}
OpAttrDef& OpAttrDef::ListFloat(const std::vector<float>& value) {
  default_json = List(value, Number);
  return Set("list_float");
}
OpAttrDef& OpAttrDef::ListInt(const std::vector<int64_t>& value) {
  default_json = List(value, [](int64_t v) { return std::to_string(v); });
  return Set("list_int");
}

}  // namespace ops

namespace vnpu_host {

std::string Describe(const Registry& registry, const std::string& soc) {
  std::string out = "{\"ops\":[";
  bool first = true;
  for (const auto& [op_type, make] : registry.op_defs) {
    const auto def = make(op_type.c_str());
    const OpFunctions functions = ResolveFunctions(registry, op_type);
    const auto config = def->ai_core.configs.find(soc);
    const bool own = config != def->ai_core.configs.end();
    const auto& inputs = own && !config->second.inputs.All().empty() ? config->second.inputs : def->inputs;
    const auto& outputs = own && !config->second.outputs.All().empty() ? config->second.outputs : def->outputs;
    if (!first) out += ',';
    first = false;
    out += "{\"op_type\":" + Quote(op_type) + ",\"inputs\":" + List(inputs.All(), ParamJson) +
           ",\"outputs\":" + List(outputs.All(), ParamJson) + ",\"attrs\":" + List(def->attrs, AttrJson) +
           ",\"socs\":" + List(def->ai_core.configs, [](const auto& c) { return Quote(c.first); }) +
           ",\"has_tiling\":" + Boolean(functions.tiling != nullptr) +
           ",\"has_infer_shape\":" + Boolean(functions.infer_shape != nullptr) +
           ",\"tiling_value_inputs\":" + std::to_string(functions.tiling_value_inputs) + "}";
  }
  std::string structs;
  std::set<std::string> done;
  for (const auto& [registered, make] : registry.tiling_classes) AddStructs(registered, *make(), &done, &structs);
  return out + "],\"tiling_structs\":[" + structs + "]}";
}

}  // namespace vnpu_host
