// ge::Operator: a node of a graph as an operator's support check sees it (graph engine reference, Operator). Checks are
// the graph engine's to call; tiling and kernel don't need them.
#pragma once
#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/error_codes.h"
#include "graph/tensor.h"

namespace ge {

class Operator {
 public:
  Operator();
  Operator(const char* name, const char* type);
  Operator(const Operator& other);
  Operator& operator=(const Operator& other);
  ~Operator();

  graphStatus GetName(AscendString& name) const;
  graphStatus GetOpType(AscendString& type) const;

  // An empty description for a name that the operator doesn't have.
  TensorDesc GetInputDescByName(const char* name) const;
  TensorDesc GetOutputDescByName(const char* name) const;
  // Older forms: by name, or by place among the descriptions in the order in which they were given.
  TensorDesc GetInputDesc(const std::string& name) const;
  TensorDesc GetInputDesc(uint32_t index) const;
  TensorDesc GetOutputDesc(const std::string& name) const;
  TensorDesc GetOutputDesc(uint32_t index) const;
  graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc);
  graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc);
  // The values of an input that is a constant of the graph; GRAPH_FAILED for every other one.
  graphStatus GetInputConstData(const char* name, Tensor& data) const;
  graphStatus SetInputConstData(const char* name, const Tensor& data);

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
  AscendString name_, type_;
  std::map<std::string, TensorDesc> inputs_, outputs_;
  std::vector<std::string> input_names_, output_names_;
  std::map<std::string, Tensor> constants_;
  std::map<std::string, std::any> attributes_;
};

}  // namespace ge
