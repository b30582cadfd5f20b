// Layout and coordinates: where in memory an element of a shape lies (AscendC reference, Layout and Coordinate).
#pragma once
#include "std_names.h"
#include "types.h"

namespace AscendC {

namespace Std {
template <size_t value>
using Int = integral_constant<size_t, value>;
}

template <typename... T>
using Shape = Std::tuple<T...>;
template <typename... T>
using Stride = Std::tuple<T...>;
template <typename... T>
using Coord = Std::tuple<T...>;

template <typename... T>
ASCENDC_INLINE constexpr Shape<T...> MakeShape(const T&... t) {
  return Shape<T...>(t...);
}
template <typename... T>
ASCENDC_INLINE constexpr Stride<T...> MakeStride(const T&... t) {
  return Stride<T...>(t...);
}
template <typename... T>
ASCENDC_INLINE constexpr Coord<T...> MakeCoord(const T&... t) {
  return Coord<T...>(t...);
}

template <typename ShapeType, typename StrideType>
struct Layout;
template <typename T>
struct is_layout : Std::false_type {};
template <typename T, typename U>
struct is_layout<Layout<T, U>> : Std::true_type {};

namespace detail {

template <typename T>
constexpr bool is_tuple = false;
template <typename... T>
constexpr bool is_tuple<Std::tuple<T...>> = true;

template <typename C, typename S, typename D>
constexpr auto index_of(const C& coord, const S& shape, const D& stride);

template <size_t I, typename C, typename S, typename D>
constexpr auto index_of_rest(const C& coord, const S& shape, const D& stride) {
  constexpr bool last = I + 1 == std::tuple_size_v<S>;
  if constexpr (is_tuple<C>) {
    const auto here = index_of(Std::get<I>(coord), Std::get<I>(shape), Std::get<I>(stride));
    if constexpr (last)
      return here;
    else
      return here + index_of_rest<I + 1>(coord, shape, stride);
  } else if constexpr (last) {  // a number counts through the axes, the first one first; the last one takes the rest
    return index_of(coord, Std::get<I>(shape), Std::get<I>(stride));
  } else {
    const auto size = Std::get<I>(shape);
    static_assert(!is_tuple<std::remove_cv_t<decltype(size)>>,
                  "AscendC::Crd2Idx: a number as coordinate of a shape of shapes is not covered by the virtual NPU");
    return index_of(coord % size, size, Std::get<I>(stride)) + index_of_rest<I + 1>(coord / size, shape, stride);
  }
}

template <typename C, typename S, typename D>
constexpr auto index_of(const C& coord, const S& shape, const D& stride) {
  if constexpr (is_tuple<S>) {
    static_assert(std::tuple_size_v<S> == std::tuple_size_v<D>, "AscendC::Crd2Idx: shape and stride differ in axes");
    if constexpr (is_tuple<C>)
      static_assert(std::tuple_size_v<C> == std::tuple_size_v<S>, "AscendC::Crd2Idx: shape and coordinate differ");
    return index_of_rest<0>(coord, shape, stride);
  } else {
    return coord * stride;
  }
}

}  // namespace detail

// Limit of Crd2Idx: a number, where the device's is a type whose value is known; a number as coordinate of a tuple of
// tuples is refused.
template <typename CoordType, typename ShapeType, typename StrideType>
ASCENDC_INLINE constexpr auto Crd2Idx(const CoordType& coord, const ShapeType& shape, const StrideType& stride) {
  return detail::index_of(coord, shape, stride);
}
template <typename CoordType, typename ShapeType, typename StrideType>
ASCENDC_INLINE constexpr auto Crd2Idx(const CoordType& coord, const Layout<ShapeType, StrideType>& layout) {
  return Crd2Idx(coord, layout.GetShape(), layout.GetStride());
}

template <typename ShapeType, typename StrideType>
struct Layout : Std::tuple<ShapeType, StrideType> {
  static_assert(detail::is_tuple<ShapeType> && detail::is_tuple<StrideType>, "AscendC::Layout: of two Std::tuple");
  ASCENDC_INLINE constexpr Layout(const ShapeType& shape = {}, const StrideType& stride = {})
      : Std::tuple<ShapeType, StrideType>(shape, stride) {}
  ASCENDC_INLINE constexpr decltype(auto) layout() { return *this; }
  ASCENDC_INLINE constexpr decltype(auto) layout() const { return *this; }
  ASCENDC_INLINE constexpr decltype(auto) GetShape() { return Std::get<0>(*this); }
  ASCENDC_INLINE constexpr decltype(auto) GetShape() const { return Std::get<0>(*this); }
  ASCENDC_INLINE constexpr decltype(auto) GetStride() { return Std::get<1>(*this); }
  ASCENDC_INLINE constexpr decltype(auto) GetStride() const { return Std::get<1>(*this); }
  template <typename CoordType>
  ASCENDC_INLINE constexpr auto operator()(const CoordType& coord) const {
    return Crd2Idx(coord, GetShape(), GetStride());
  }
};

template <typename ShapeType, typename StrideType>
ASCENDC_INLINE constexpr auto MakeLayout(const ShapeType& shape, const StrideType& stride) {
  return Layout<ShapeType, StrideType>(shape, stride);
}

}  // namespace AscendC
