#pragma once
/// \file
/// The dropout decisions of a lane for its 16 scores of a 32x32 block, in the register order of a
/// matrix result: the lane holds one query and the keys 8 g + 4 (lane / 32) + r in register 4 g + r
/// (forward), or one key and so many queries (backward).
///
/// The mask is defined on 4x4 blocks of scores, one Philox draw each: a word for each query, a byte
/// of it for each key. The 4 lanes of a quad hold 4 consecutive queries (or keys) and the same 16
/// keys (queries), so 4 blocks: each lane draws one of them, and a transpose inside the quad hands
/// every lane the words of its own query; where lanes hold keys, the bytes are transposed before.
/// No draw is wasted.

#include <cstdint>
#include <type_traits>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"
#include "flashxdl/thread/philox.hpp"
#include "flashxdl/thread/quad_transpose.hpp"

namespace flashxdl::thread {

/// The stream of one (batch, query head): what is common to all its scores.
struct DropoutStream {
  std::uint64_t seed;
  std::uint64_t offset;    ///< in 32-bit draws, as rocRAND counts
  std::uint64_t sequence;  ///< running index of (batch, query head)
  std::uint32_t threshold;
  std::uint32_t key_blocks;  ///< ceil(Sk / 4)
};

/// `value`, or what `device` points to if it is not null. A load in either case (out of range for a
/// null pointer): choosing between addresses would put the value in scratch memory.
FLASHXDL_DEVICE std::uint64_t value_or_load(std::uint64_t value, const std::uint64_t* device) {
  const arch::Buffer buffer(device, device != nullptr ? 8u : 0u);
  const auto words = buffer.load<2>(0);
  const std::uint64_t loaded =
      arch::uniform(words[0]) | (std::uint64_t{arch::uniform(words[1])} << 32);
  return device != nullptr ? loaded : value;
}

/// What a lane holds one of, for 16 of the other.
enum class LaneHolds { query, key };

template <LaneHolds Holds, int Bits, int Rounds>
class LaneDropout {
  static_assert(Bits == 8 || Bits == 16, "dropout draws 8 or 16 bits for each score");
  static constexpr std::uint32_t draws = Bits / 8;

public:
  /// `own`: the query or the key that this lane holds.
  FLASHXDL_DEVICE LaneDropout(const DropoutStream& stream, std::uint32_t own) : stream_(stream) {
    const std::uint32_t lane = arch::lane_id();
    const std::uint32_t block = 2 * (lane % 4) + lane / 32;  // of 4, along the registers
    const std::uint64_t position = Holds == LaneHolds::query
                                       ? std::uint64_t{own / 4} * stream.key_blocks + block
                                       : std::uint64_t{block} * stream.key_blocks + own / 4;
    first_ = stream.offset / 4 + draws * position;
  }

  /// Calls decide(register, keep) for the 16 scores of the block of 32 keys (queries, where lanes
  /// hold keys) from `other`, a multiple of 32.
  template <class Decide>
  FLASHXDL_DEVICE void for_block(std::uint32_t other, Decide&& decide) const {
    const std::uint64_t blocks =
        Holds == LaneHolds::query ? other / 4 : std::uint64_t{other / 4} * stream_.key_blocks;
    const std::uint64_t position = first_ + draws * blocks;
    const auto high = draw(position);
    if constexpr (Bits == 8) {
      each_byte([&](auto i, auto group, auto shift) {
        decide(i, ((high[group] >> shift) & 0xffu) >= stream_.threshold);
      });
    } else {
      const auto low = draw(position + 1);
      each_byte([&](auto i, auto group, auto shift) {
        const std::uint32_t value =
            (((high[group] >> shift) & 0xffu) << 8) | ((low[group] >> shift) & 0xffu);
        decide(i, value >= stream_.threshold);
      });
    }
  }

private:
  FLASHXDL_DEVICE Registers<std::uint32_t, 4> draw(std::uint64_t position) const {
    auto words = philox4x32<Rounds>(position, stream_.sequence, stream_.seed);
    if constexpr (Holds == LaneHolds::key) words = byte_transpose(words);
    return quad_transpose(words);
  }

  template <class Body>
  static FLASHXDL_DEVICE void each_byte(Body&& body) {
    static_for<16>([&](auto i) {
      body(i, std::integral_constant<int, i / 4>{},
           std::integral_constant<std::uint32_t, 8 * (i % 4)>{});
    });
  }

  DropoutStream stream_;
  std::uint64_t first_;  ///< position of this lane's draw for the block at 0
};

template <int Bits, int Rounds>
using QueryDropout = LaneDropout<LaneHolds::query, Bits, Rounds>;
template <int Bits, int Rounds>
using KeyDropout = LaneDropout<LaneHolds::key, Bits, Rounds>;

}  // namespace flashxdl::thread
