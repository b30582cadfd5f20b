// Names and sizes of ge::DataType and ge::Format; the text of a shape.
#include "exe_graph/runtime/shape.h"
#include "graph/utils/type_utils.h"

namespace ops {
// No public header of CANN declares them: operators that use them write these lines themselves.
std::string ToString(const gert::Shape& shape);
std::string ToString(const gert::Shape* shape);
}  // namespace ops

namespace ge {
namespace {

struct Type {
  DataType type;
  const char* name;
  int bits;  // 0: no fixed size
};

constexpr Type kTypes[] = {{DT_FLOAT, "DT_FLOAT", 32},
                           {DT_FLOAT16, "DT_FLOAT16", 16},
                           {DT_INT8, "DT_INT8", 8},
                           {DT_INT32, "DT_INT32", 32},
                           {DT_UINT8, "DT_UINT8", 8},
                           {DT_INT16, "DT_INT16", 16},
                           {DT_UINT16, "DT_UINT16", 16},
                           {DT_UINT32, "DT_UINT32", 32},
                           {DT_INT64, "DT_INT64", 64},
                           {DT_UINT64, "DT_UINT64", 64},
                           {DT_DOUBLE, "DT_DOUBLE", 64},
                           {DT_BOOL, "DT_BOOL", 8},
                           {DT_STRING, "DT_STRING", 128},
                           {DT_DUAL_SUB_INT8, "DT_DUAL_SUB_INT8", 8},
                           {DT_DUAL_SUB_UINT8, "DT_DUAL_SUB_UINT8", 8},
                           {DT_COMPLEX64, "DT_COMPLEX64", 64},
                           {DT_COMPLEX128, "DT_COMPLEX128", 128},
                           {DT_QINT8, "DT_QINT8", 8},
                           {DT_QINT16, "DT_QINT16", 16},
                           {DT_QINT32, "DT_QINT32", 32},
                           {DT_QUINT8, "DT_QUINT8", 8},
                           {DT_QUINT16, "DT_QUINT16", 16},
                           {DT_RESOURCE, "DT_RESOURCE", 64},
                           {DT_STRING_REF, "DT_STRING_REF", 128},
                           {DT_DUAL, "DT_DUAL", 40},
                           {DT_VARIANT, "DT_VARIANT", 0},
                           {DT_BF16, "DT_BF16", 16},
                           {DT_UNDEFINED, "DT_UNDEFINED", 0},
                           {DT_INT4, "DT_INT4", 4},
                           {DT_UINT1, "DT_UINT1", 1},
                           {DT_INT2, "DT_INT2", 2},
                           {DT_UINT2, "DT_UINT2", 2},
                           {DT_COMPLEX32, "DT_COMPLEX32", 32},
                           {DT_HIFLOAT8, "DT_HIFLOAT8", 8},
                           {DT_FLOAT8_E5M2, "DT_FLOAT8_E5M2", 8},
                           {DT_FLOAT8_E4M3FN, "DT_FLOAT8_E4M3FN", 8},
                           {DT_FLOAT8_E8M0, "DT_FLOAT8_E8M0", 8},
                           {DT_FLOAT6_E3M2, "DT_FLOAT6_E3M2", 6},
                           {DT_FLOAT6_E2M3, "DT_FLOAT6_E2M3", 6},
                           {DT_FLOAT4_E2M1, "DT_FLOAT4_E2M1", 4},
                           {DT_FLOAT4_E1M2, "DT_FLOAT4_E1M2", 4}};

struct NamedFormat {
  Format format;
  const char* name;
};

constexpr NamedFormat kFormats[] = {{FORMAT_NCHW, "NCHW"},
                                    {FORMAT_NHWC, "NHWC"},
                                    {FORMAT_ND, "ND"},
                                    {FORMAT_NC1HWC0, "NC1HWC0"},
                                    {FORMAT_FRACTAL_Z, "FRACTAL_Z"},
                                    {FORMAT_NC1C0HWPAD, "NC1C0HWPAD"},
                                    {FORMAT_NHWC1C0, "NHWC1C0"},
                                    {FORMAT_C1HWNC0, "C1HWNC0"},
                                    {FORMAT_CHWN, "CHWN"},
                                    {FORMAT_HWCN, "HWCN"},
                                    {FORMAT_NDHWC, "NDHWC"},
                                    {FORMAT_FRACTAL_ZZ, "FRACTAL_ZZ"},
                                    {FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
                                    {FORMAT_NCDHW, "NCDHW"},
                                    {FORMAT_DHWCN, "DHWCN"},
                                    {FORMAT_NDC1HWC0, "NDC1HWC0"},
                                    {FORMAT_FRACTAL_Z_3D, "FRACTAL_Z_3D"},
                                    {FORMAT_CN, "CN"},
                                    {FORMAT_NC, "NC"},
                                    {FORMAT_DHWNC, "DHWNC"},
                                    {FORMAT_RESERVED, "FORMAT_RESERVED"},
                                    {FORMAT_ALL, "ALL"},
                                    {FORMAT_NULL, "NULL"},
                                    {FORMAT_NCL, "NCL"}};

const Type* Find(DataType data_type) {
  for (const Type& t : kTypes) {
    if (t.type == data_type) return &t;
  }
  return nullptr;
}

}  // namespace

int GetSizeByDataType(DataType data_type) {
  const Type* t = Find(data_type);
  if (t == nullptr || t->bits == 0) return -1;
  return t->bits % 8 == 0 ? t->bits / 8 : kDataTypeSizeBitOffset + t->bits;
}

int64_t GetSizeInBytes(int64_t element_count, DataType data_type) {
  const Type* t = Find(data_type);
  if (t == nullptr || t->bits == 0 || element_count < 0) return -1;
  return (element_count * t->bits + 7) / 8;
}

std::string TypeUtils::DataTypeToSerialString(DataType data_type) {
  const Type* t = Find(data_type);
  return t == nullptr ? "UNDEFINED" : t->name;
}
AscendString TypeUtils::DataTypeToAscendString(const DataType& data_type) {
  return AscendString(DataTypeToSerialString(data_type).c_str());
}
DataType TypeUtils::SerialStringToDataType(const std::string& name) {
  for (const Type& t : kTypes) {
    if (name == t.name) return t.type;
  }
  return DT_UNDEFINED;
}
const char* GetFormatName(Format format) {
  for (const NamedFormat& f : kFormats) {
    if (f.format == format) return f.name;
  }
  return "RESERVED";
}
std::string TypeUtils::FormatToSerialString(Format format) { return GetFormatName(format); }
AscendString TypeUtils::FormatToAscendString(const Format& format) {
  return AscendString(FormatToSerialString(format).c_str());
}
Format TypeUtils::SerialStringToFormat(const std::string& name) {
  for (const NamedFormat& f : kFormats) {
    if (name == f.name) return f.format;
  }
  return FORMAT_RESERVED;
}
bool TypeUtils::IsDataTypeValid(DataType data_type) { return Find(data_type) != nullptr && data_type != DT_UNDEFINED; }
bool TypeUtils::IsFormatValid(Format format) { return format >= 0 && format < FORMAT_RESERVED; }
bool TypeUtils::GetDataTypeLength(DataType data_type, uint32_t& length) {
  const Type* t = Find(data_type);
  if (t == nullptr || t->bits == 0 || t->bits % 8 != 0) return false;
  length = static_cast<uint32_t>(t->bits / 8);
  return true;
}

}  // namespace ge

std::string ops::ToString(const gert::Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.GetDimNum(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape.GetDim(i));
  }
  return text + "]";
}

std::string ops::ToString(const gert::Shape* shape) { return shape == nullptr ? "nil" : ToString(*shape); }
