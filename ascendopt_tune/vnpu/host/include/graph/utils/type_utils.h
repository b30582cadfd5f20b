// ge::TypeUtils: names and sizes of data types and formats.
#pragma once
#include <cstdint>
#include <string>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class TypeUtils {
 public:
  static std::string DataTypeToSerialString(DataType data_type);  // "DT_FLOAT16"
  static AscendString DataTypeToAscendString(const DataType& data_type);
  static DataType SerialStringToDataType(const std::string& name);
  static std::string FormatToSerialString(Format format);  // "NCHW"
  static AscendString FormatToAscendString(const Format& format);
  static Format SerialStringToFormat(const std::string& name);
  static bool IsDataTypeValid(DataType data_type);
  static bool IsFormatValid(Format format);
  // Bytes of one element; false for a type that has no whole number of bytes.
  static bool GetDataTypeLength(DataType data_type, uint32_t& length);
};

}  // namespace ge
