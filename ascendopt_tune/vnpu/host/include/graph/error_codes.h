// Status codes of graph and tiling functions. Source of the numbers: CANN graph API reference (graphStatus).
#pragma once
#include <cstdint>

namespace ge {

using graphStatus = uint32_t;

inline constexpr uint32_t SUCCESS = 0;
inline constexpr uint32_t FAILED = 0xFFFFFFFF;
inline constexpr graphStatus GRAPH_SUCCESS = 0;
inline constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;
inline constexpr graphStatus GRAPH_NOT_CHANGED = 1343242304;
inline constexpr graphStatus GRAPH_NODE_WITHOUT_CONST_INPUT = 50331648;
inline constexpr graphStatus GRAPH_PARAM_INVALID = 50331649;

}  // namespace ge
