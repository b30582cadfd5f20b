// AscendC::Std: names of the standard library that kernels may use under AscendC's (AscendC reference, container
// functions and type traits).
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

namespace AscendC::Std {
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::forward;
using std::get;
using std::integral_constant;
using std::is_same;
using std::is_same_v;
using std::make_tuple;
using std::tie;
using std::true_type;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
using std::tuple_size_v;
}  // namespace AscendC::Std
