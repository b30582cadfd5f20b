// Tiling data: a class whose fields are laid out exactly as the kernel's struct, and its registration.
//
// Layout (checked against tiling bytes of real operators): fields in order of declaration; a scalar or array is aligned
// to its element size, a nested struct to 8, the end to a multiple of 8; padding becomes a uint8_t array "<name>PH".
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/error_codes.h"

namespace optiling {

class TilingDef {
 public:
  struct Field {
    std::string name;
    std::string type;     // C type as written; a nested struct's class name
    size_t count;         // 0: scalar
    size_t offset;        // bytes from the start of the struct
    size_t element_size;  // bytes
    TilingDef* nested;    // nullptr: not a struct
  };

  explicit TilingDef(const char* class_name) : class_name_(class_name) {}
  virtual ~TilingDef();
  TilingDef(const TilingDef&) = delete;  // classes of BEGIN_TILING_DATA_DEF make their own fields, then take the values
  TilingDef& operator=(const TilingDef& other);

  // Copies GetDataSize() bytes to `destination` when `capacity` allows it; else writes nothing.
  void SaveToBuffer(void* destination, size_t capacity) const;
  size_t GetDataSize() const { return size_; }
  const char* GetTilingClassName() const { return class_name_; }
  // Makes the object a view of `data` (GetDataSize() bytes owned by the caller).
  void SetDataPtr(void* data);
  const std::vector<Field>& Fields() const { return fields_; }

 protected:
  size_t AddField(const char* type, const char* name, size_t element_size, size_t count);
  size_t AddStruct(const char* type, const char* name, TilingDef& nested);
  void FinishLayout();
  template <typename T>
  void Store(size_t offset, T value) {
    std::memcpy(data_ + offset, &value, sizeof(T));
  }
  template <typename T>
  T Load(size_t offset) const {
    T value;
    std::memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }
  uint8_t* data_ = nullptr;

 private:
  void Pad(const char* name, size_t alignment);

  const char* class_name_;
  std::vector<Field> fields_;
  std::unique_ptr<uint64_t[]> own_;  // empty while the object is a view
  size_t size_ = 0;
};

using TilingClassMaker = std::unique_ptr<TilingDef> (*)();
// `name`: the operator type, "<operator type>_<tiling key>", or any name for a struct that is only nested.
bool RegisterTilingClass(const char* name, TilingClassMaker make);

}  // namespace optiling

// Operators may have a plain struct of a class's name in another file, with functions of the same names: each file has
// to take its own, which the device's build has by optimization.
#define VNPU_OWN __attribute__((always_inline))
#define VNPU_HOST_JOIN2(a, b) a##b
#define VNPU_HOST_JOIN(a, b) VNPU_HOST_JOIN2(a, b)

#define BEGIN_TILING_DATA_DEF(class_name)                                 \
  class class_name : public ::optiling::TilingDef {                       \
   public:                                                                \
    class_name() : ::optiling::TilingDef(#class_name) { FinishLayout(); } \
    class_name(const class_name& other) : class_name() { *this = other; } \
    class_name& operator=(const class_name&) = default;

#define TILING_DATA_FIELD_DEF(data_type, field_name)                                                 \
 private:                                                                                            \
  size_t field_name##_offset_ = AddField(#data_type, #field_name, sizeof(data_type), 0);             \
                                                                                                     \
 public:                                                                                             \
  VNPU_OWN void set_##field_name(data_type value) { Store<data_type>(field_name##_offset_, value); } \
  VNPU_OWN data_type get_##field_name() const { return Load<data_type>(field_name##_offset_); }

#define TILING_DATA_FIELD_DEF_ARR(arr_type, arr_size, field_name)                               \
 private:                                                                                       \
  size_t field_name##_offset_ = AddField(#arr_type, #field_name, sizeof(arr_type), (arr_size)); \
                                                                                                \
 public:                                                                                        \
  VNPU_OWN void set_##field_name(const arr_type* values) {                                      \
    std::memcpy(data_ + field_name##_offset_, values, sizeof(arr_type) * (arr_size));           \
  }                                                                                             \
  VNPU_OWN arr_type* get_##field_name() { return reinterpret_cast<arr_type*>(data_ + field_name##_offset_); }

#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name)                     \
 public:                                                                          \
  struct_type field_name;                                                         \
                                                                                  \
 private:                                                                         \
  size_t field_name##_offset_ = AddStruct(#struct_type, #field_name, field_name); \
                                                                                  \
 public:

#define END_TILING_DATA_DEF \
  }                         \
  ;

// A kernel's file may hold the host's part, too, behind what it includes of the kernel's; it has no registry.
#ifdef __aicore__
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)
#else
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)                                              \
  [[maybe_unused]] static const bool VNPU_HOST_JOIN(g_vnpu_tiling_class_##op_type##_, __COUNTER__) = \
      ::optiling::RegisterTilingClass(#op_type, []() -> std::unique_ptr<::optiling::TilingDef> {     \
        return std::unique_ptr<::optiling::TilingDef>(new class_name());                             \
      });
#endif
