// ge::Operator: a node of a graph as an operator's support check sees it (graph engine reference, Operator). Checks are
// the graph engine's to call; tiling and kernel don't need them.
#pragma once
#include <any>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "graph/ascend_string.h"
#include "graph/error_codes.h"
#include "graph/tensor.h"

namespace ge {

class Operator {
 public:
  Operator() = default;
  Operator(const char* name, const char* type) : name_(name), type_(type) {}

  graphStatus GetName(AscendString& name) const {
    name = name_;
    return GRAPH_SUCCESS;
  }
  graphStatus GetOpType(AscendString& type) const {
    type = type_;
    return GRAPH_SUCCESS;
  }

  // An empty description for a name that the operator doesn't have.
  TensorDesc GetInputDescByName(const char* name) const { return found(inputs_, name, TensorDesc()); }
  TensorDesc GetOutputDescByName(const char* name) const { return found(outputs_, name, TensorDesc()); }
  graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc) { return set(inputs_, name, desc); }
  graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc) { return set(outputs_, name, desc); }
  // The values of an input that is a constant of the graph; GRAPH_FAILED for every other one.
  graphStatus GetInputConstData(const char* name, Tensor& data) const {
    const auto at = constants_.find(name);
    if (at == constants_.end()) return GRAPH_FAILED;
    data = at->second;
    return GRAPH_SUCCESS;
  }
  graphStatus SetInputConstData(const char* name, const Tensor& data) { return set(constants_, name, data); }

  template <typename T>
  Operator& SetAttr(const char* name, T value) {
    attributes_[name] = std::move(value);
    return *this;
  }
  // GRAPH_FAILED when there is no attribute of that name and type; `value` then keeps what it was.
  template <typename T>
  graphStatus GetAttr(const char* name, T& value) const {
    const auto at = attributes_.find(name);
    const T* held = at == attributes_.end() ? nullptr : std::any_cast<T>(&at->second);
    if (held == nullptr) return GRAPH_FAILED;
    value = *held;
    return GRAPH_SUCCESS;
  }

 private:
  template <typename Map, typename T>
  static T found(const Map& map, const char* name, T otherwise) {
    const auto at = map.find(name);
    return at == map.end() ? otherwise : at->second;
  }
  template <typename Map, typename T>
  static graphStatus set(Map& map, const char* name, const T& value) {
    map[name] = value;
    return GRAPH_SUCCESS;
  }

  AscendString name_, type_;
  std::map<std::string, TensorDesc> inputs_, outputs_;
  std::map<std::string, Tensor> constants_;
  std::map<std::string, std::any> attributes_;
};

}  // namespace ge
