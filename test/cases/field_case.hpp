#pragma once
/// \file
/// One case of the file, parsed; the format is described in README.md beside this file.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cases/strict_json.hpp"
#include "flashxdl/core/problem.hpp"

namespace flashxdl::test {

/// A range of positions, as Python writes it: "3", "0:64", "1:", ":".
struct Range {
  static constexpr std::int64_t open = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = 0;
  std::int64_t end = open;
};

/// A way to fill a tensor: ["normal", 0, 1], ["band", 10], ...
struct Init {
  std::string name;
  std::vector<double> numbers;
};

/// Elements [b, h, s, d] that get another value.
struct SetElements {
  std::string tensor;
  std::vector<Range> at;  ///< of b, h, s, d
  Init value;
};

struct BiasField {
  DataType dtype{};
  std::vector<Json> shape;  ///< four entries: 1 (stride 0) or B, Hq, Sq, Sk
  Init init;
  std::vector<std::int64_t> neg_inf_rows, neg_inf_columns, lowest_rows, lowest_columns;
  double neg_inf_fraction = 0, lowest_fraction = 0;
  std::optional<std::int64_t> row_stride;
  std::int64_t pointer_offset = 0;  ///< elements
};

struct GroupSize {
  std::int64_t batch = 0, seqlen_q = 0, seqlen_k = 0;
};

struct StridesField {
  std::optional<std::int64_t> b, h, s, d;
};

struct CallField {
  bool forward = true;
  std::uint64_t seed = 0, offset = 0;
};

struct Check {
  std::vector<std::string> tensors;
  std::string is;
  Json v;  ///< value, list of values, or null
  double atol = 0;
  double sigmas = 0;
  Range rows, columns;
  std::optional<std::size_t> group;
  std::string run;   ///< of same_bits_as
  std::string mask;  ///< of same_as_mask
  std::uint64_t sequence = 0;
  std::int64_t i = 0, j = 0;  ///< of keepbytes
};

enum class Expected { ok, refused, ok_or_refused };

struct FieldCase {
  std::string id;
  DataType dtype{};
  std::vector<GroupSize> groups;  ///< one for a batched case
  bool grouped = false;
  std::int64_t heads_q = 0, heads_kv = 0, head_dim = 0, head_dim_v = 0;
  Mask mask{};
  std::optional<BiasField> bias;
  Dropout dropout{};
  std::optional<float> scale;
  std::map<std::string, std::string> layouts;  ///< by tensor: q, k, v, o, do, ...; "" for all

  std::map<std::string, Init> init;
  std::vector<SetElements> set;
  std::vector<std::vector<double>> v_columns;
  std::uint64_t u_seed = 0;
  std::int64_t row_pad = 0, capacity_rows = 0;
  std::optional<double> beyond;
  std::map<std::string, StridesField> strides;
  bool packed_rows = false, guard_pages = false, busy_stream = false;
  std::vector<CallField> calls;
  int repeat = 1;
  std::vector<std::uint64_t> shuffle_seeds;
  std::vector<std::int64_t> check_sample;  ///< batches; empty: all
  std::string cost;

  Expected expected = Expected::ok;
  std::vector<std::string> message_must_name;
  std::vector<Check> checks;

  bool is_huge() const { return cost == "huge_mem"; }
  bool is_slow() const { return cost == "medium" || cost == "large"; }
};

inline bool is_gradient(const std::string& tensor) {
  return tensor == "dQ" || tensor == "dK" || tensor == "dV" || tensor == "dBias";
}

/// "none", "top_left", "bottom_right", "window:<alignment>:left:right".
Mask parse_mask(const std::string& text);

/// The whole file; throws at the first thing that it does not know.
std::vector<FieldCase> read_cases(const std::string& path);

}  // namespace flashxdl::test
