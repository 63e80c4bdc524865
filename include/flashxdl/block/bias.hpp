#pragma once
/// \file
/// The additive bias of one query (a lane pair's row), read from global memory in the register
/// order of the scores. Keys past the row may read anything: their scores are masked afterwards.

#include <cstdint>
#include <type_traits>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl {

/// How a kernel reads the bias; compiled in.
enum class BiasKind : std::uint8_t {
  none,     ///< there is none
  vectors,  ///< of the input type, 4 keys with one load: 8-byte aligned rows, Sk a multiple of 4
  any,      ///< of any type, key by key; may be absent
};

namespace block {

/// One query's row of the bias. T is the input type; `type` the bias type where Kind is any.
template <BiasKind Kind, class T>
class BiasRow {
public:
  FLASHXDL_DEVICE BiasRow(const GlobalMatrix& matrix, DataType type, int query)
      : buffer_(matrix.buffer), type_(Kind == BiasKind::vectors ? Number<T>::type : type) {
    const int row =
        query < matrix.rows ? query : matrix.rows - 1;  // rows past the end are not stored
    row_ = static_cast<std::uint32_t>(row) * matrix.row_bytes +
           arch::lane_id() / 32 * 4 * static_cast<std::uint32_t>(size_of(type_));
  }

  /// scores = scores * scale + bias, for the tile whose first key is `key`.
  template <int Blocks>
  FLASHXDL_DEVICE void apply(Accumulator (&scores)[Blocks], float scale, int key) const {
    const DataType type = Kind == BiasKind::any ? recomputed_type() : Number<T>::type;
    const auto bytes = static_cast<std::uint32_t>(size_of(type));
    const std::uint32_t at = row_ + static_cast<std::uint32_t>(key) * bytes;
    static_for<Blocks>([&](auto b) {
      float bias[16];
      if constexpr (Kind == BiasKind::vectors) {
        load_vectors(bias, at + 64 * b);
      } else {
        load_numbers(bias, at + 32 * b * bytes, type);
      }
      static_for<16>([&](auto i) { scores[b].set(i, arch::fma(scores[b][i], scale, bias[i])); });
    });
  }

private:
  /// The bias type, but what follows from it is not kept in registers.
  FLASHXDL_DEVICE DataType recomputed_type() const {
    return static_cast<DataType>(arch::recomputed_uniform(static_cast<std::uint32_t>(type_)));
  }

  FLASHXDL_DEVICE void load_vectors(float (&bias)[16], std::uint32_t at) const {
    Registers<std::uint32_t, 2> raw[4];
    static_for<4>([&](auto g) { raw[g] = buffer_.template load<2>(at + 16 * g); });
    static_for<8>([&](auto i) {
      bias[2 * i] = arch::low_half<T>(raw[i / 2][i % 2]);
      bias[2 * i + 1] = arch::high_half<T>(raw[i / 2][i % 2]);
    });
  }

  /// bf16 is the upper half of an fp32: both are read as halves, without a branch on the type.
  FLASHXDL_DEVICE void load_numbers(float (&bias)[16], std::uint32_t at, DataType type) const {
    const auto bytes = static_cast<std::uint32_t>(size_of(type));
    const std::uint32_t low_half_missing = type == DataType::fp32 ? 0u : out_of_range;
    std::uint32_t bits[16];
    static_for<16>([&](auto i) {
      const std::uint32_t number = at + static_cast<std::uint32_t>(8 * (i / 4) + i % 4) * bytes;
      const std::uint32_t high = buffer_.load_u16(number + bytes - 2);
      const std::uint32_t low = buffer_.load_u16(number | low_half_missing);
      bits[i] = (high << 16) | low;
    });
    static_for<16>([&](auto i) {
      bias[i] = type == DataType::fp16 ? arch::high_half<fp16>(bits[i])
                                       : __builtin_bit_cast(float, bits[i]);
    });
  }

  arch::Buffer buffer_;
  DataType type_;
  std::uint32_t row_;
};

}  // namespace block
}  // namespace flashxdl
