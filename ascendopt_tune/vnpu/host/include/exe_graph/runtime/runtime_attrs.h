// gert::RuntimeAttrs: the attribute values by position in the operator definition.
#pragma once
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/continuous_vector.h"
#include "exe_graph/runtime/tensor.h"

namespace vnpu_host {
struct Node;
}

namespace gert {

class RuntimeAttrs {
 public:
  explicit RuntimeAttrs(const vnpu_host::Node* node) : node_(node) {}

  // nullptr past the end. Storage: int64_t, float, bool, zero-terminated chars, (Typed)ContinuousVector.
  template <typename T>
  const T* GetAttrPointer(size_t i) const {
    return static_cast<const T*>(Get(i));
  }
  const int64_t* GetInt(size_t i) const { return GetAttrPointer<int64_t>(i); }
  const float* GetFloat(size_t i) const { return GetAttrPointer<float>(i); }
  const bool* GetBool(size_t i) const { return GetAttrPointer<bool>(i); }
  const char* GetStr(size_t i) const { return GetAttrPointer<char>(i); }
  const TypedContinuousVector<int64_t>* GetListInt(size_t i) const {
    return GetAttrPointer<TypedContinuousVector<int64_t>>(i);
  }
  const TypedContinuousVector<float>* GetListFloat(size_t i) const {
    return GetAttrPointer<TypedContinuousVector<float>>(i);
  }
  const TypedContinuousVector<bool>* GetListBool(size_t i) const {
    return GetAttrPointer<TypedContinuousVector<bool>>(i);
  }
  size_t GetAttrNum() const;

 private:
  const void* Get(size_t i) const;
  const vnpu_host::Node* node_;
};

}  // namespace gert
