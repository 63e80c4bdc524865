#include "cases/field_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/random.hpp"

namespace flashxdl::test {
namespace {

std::uint64_t seed_of(const std::string& text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::int64_t number_after(const std::string& name, const std::string& prefix) {
  const std::string digits = name.substr(prefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
    throw std::runtime_error("layout '" + name + "' needs a number after '" + prefix + "'");
  }
  return std::stoll(digits);
}

/// One pass over the elements in memory: a broadcast dimension has one entry.
Layout stored(Layout layout) {
  if (layout.b == 0) layout.shape.b = std::min<std::int64_t>(layout.shape.b, 1);
  if (layout.h == 0) layout.shape.h = std::min<std::int64_t>(layout.shape.h, 1);
  if (layout.s == 0) layout.shape.s = std::min<std::int64_t>(layout.shape.s, 1);
  if (layout.d == 0) layout.shape.d = std::min<std::int64_t>(layout.shape.d, 1);
  return layout;
}

std::string layout_name(const FieldCase& c, const std::string& tensor) {
  for (const std::string& key : {tensor, std::string()}) {
    const auto found = c.layouts.find(key);
    if (found != c.layouts.end()) return found->second;
  }
  return "bhsd";
}

bool is_packed_qkv(const FieldCase& c) {
  return layout_name(c, "q") == "bs3hd";
}

/// `pitch` elements from row to row, room for `capacity` rows.
Layout named_layout(const std::string& name, Shape shape, std::int64_t pitch,
                    std::int64_t capacity) {
  if (name == "bhsd") return bhsd_layout(shape, pitch, capacity);
  if (name == "bshd" || name == "bs3hd") return bshd_layout(shape, pitch, capacity);
  if (name.starts_with("bhsd:pitch")) {
    pitch = number_after(name, "bhsd:pitch");
    if (pitch < shape.d) throw std::runtime_error("layout '" + name + "': rows overlap");
    return bhsd_layout(shape, pitch, capacity);
  }
  if (name == "bhds") {
    return {shape, shape.h * shape.d * capacity, shape.d * capacity, 1, capacity, 0};
  }
  if (name.starts_with("row_step_")) {
    return bhsd_layout(shape, pitch * number_after(name, "row_step_"), capacity);
  }
  if (name == "head_stride_0") return {shape, capacity * pitch, 0, pitch, 1, 0};
  if (name == "stride_0_bhs") return {shape, 0, 0, 0, 1, 0};
  if (name == "stride_0_all") return {shape, 0, 0, 0, 0, 0};
  throw std::runtime_error("unknown layout '" + name + "'");
}

/// Values of one init, asked for element by element in logical order.
class Values {
public:
  Values(const Init& init, Shape shape, std::uint64_t seed, std::uint64_t u_seed)
      : init_(init), shape_(shape), random_(seed) {
    if (init.name == "neg_rows" || init.name == "normal_plus_2u") make_u(u_seed);
  }

  double at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    const auto& n = init_.numbers;
    if (init_.name == "const") return n[0];
    if (init_.name == "normal") return n[0] + n[1] * random_.normal();
    if (init_.name == "head_index") return static_cast<double>(h) + n[0];
    if (init_.name == "student_t") return n[1] * random_.student_t(static_cast<int>(n[0]));
    if (init_.name == "normal_plus_2u")
      return random_.normal() + 2 * u_[static_cast<std::size_t>(d)];
    if (init_.name == "neg_rows") return neg_row(s, d);
    if (init_.name == "band") {
      const bool inside = static_cast<double>(s) - n[0] < static_cast<double>(d) && d <= s;
      return inside ? 0 : -std::numeric_limits<double>::infinity();
    }
    if (init_.name == "pick") {
      const auto step = static_cast<std::int64_t>(n[1]);
      return d == (step * (b * shape_.h + h) + s) % shape_.d ? n[0] : 0;
    }
    throw std::logic_error("init '" + init_.name + "' has no values");
  }

private:
  void make_u(std::uint64_t seed) {
    Random random(seed);
    double squares = 0;
    for (std::int64_t d = 0; d < shape_.d; ++d) {
      u_.push_back(random.normal());
      squares += u_.back() * u_.back();
    }
    for (double& x : u_) x /= std::sqrt(squares);
  }

  double neg_row(std::int64_t s, std::int64_t d) {
    const auto& n = init_.numbers;
    if (static_cast<double>(s) >= n[0] * static_cast<double>(shape_.s)) return random_.normal();
    if (d == 0) length_ = random_.uniform(n[1], n[2]);
    return -length_ * u_[static_cast<std::size_t>(d)];
  }

  Init init_;
  Shape shape_;
  Random random_;
  std::vector<double> u_;
  double length_ = 0;
};

class ProblemMaker {
public:
  ProblemMaker(const FieldCase& c, bool keep) : c_(c), keep_(keep) {
    for (const auto& [tensor, name] : c.layouts) named_layout(name, {1, 1, 1, 1}, 1, 1);
  }

  std::vector<ForwardProblem> make() {
    std::vector<ForwardProblem> problems;
    for (std::size_t g = 0; g < c_.groups.size(); ++g) {
      group_ = g;
      ForwardProblem p;
      p.shape = shape(c_.groups[g]);
      make_tensors(p);
      fill_inputs(p);
      problems.push_back(std::move(p));
    }
    return problems;
  }

private:
  MhaForwardArgs shape(const GroupSize& size) const {
    MhaForwardArgs a{};
    a.dtype = c_.dtype;
    a.batch = size.batch;
    a.heads_q = c_.heads_q;
    a.heads_kv = c_.heads_kv;
    a.seqlen_q = size.seqlen_q;
    a.seqlen_k = size.seqlen_k;
    a.head_dim = c_.head_dim;
    a.head_dim_v = c_.head_dim_v;
    a.scale = c_.scale;
    a.mask = c_.mask;
    a.dropout = c_.dropout;
    return a;
  }

  Placement placement(std::size_t bytes) const {
    if (c_.guard_pages) return Placement::guard_page;
    return c_.is_huge() && bytes >= (64u << 20) ? Placement::sparse : Placement::device;
  }

  TestTensor make_with_room(std::optional<DataType> dtype, const Layout& layout,
                            std::int64_t elements) const {
    TestTensor tensor{nullptr, layout, dtype};
    const std::size_t bytes = static_cast<std::size_t>(elements) * tensor.element_size();
    tensor.buffer = std::make_shared<Buffer>(bytes, placement(bytes));
    return tensor;
  }
  TestTensor make_dense(std::optional<DataType> dtype, const Layout& layout) const {
    return make_with_room(dtype, layout, layout.extent());
  }

  /// Q, K, V or O in the layout that the case names.
  TestTensor make_named(const std::string& name, Shape shape) {
    if (c_.packed_rows) return make_packed_rows(name, c_.dtype, shape);
    const std::int64_t capacity = std::max(shape.s, c_.capacity_rows);
    Layout layout = named_layout(layout_name(c_, name), shape, shape.d + c_.row_pad, capacity);
    if (const auto found = c_.strides.find(name); found != c_.strides.end()) {
      layout.b = found->second.b.value_or(layout.b);
      layout.h = found->second.h.value_or(layout.h);
      layout.s = found->second.s.value_or(layout.s);
      layout.d = found->second.d.value_or(layout.d);
    }
    Layout room = layout;
    room.shape.s = capacity;
    TestTensor tensor = make_with_room(c_.dtype, layout, room.extent());
    if (c_.beyond && name != "o") fill_beyond(tensor, room);
    return tensor;
  }

  void fill_beyond(TestTensor& tensor, const Layout& room) const {
    room.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      if (s >= tensor.layout.shape.s) tensor.set(b, h, s, d, *c_.beyond);
    });
  }

  /// Rows of all groups one after another: [rows, heads, columns]; the LSE [heads, rows].
  TestTensor make_packed_rows(const std::string& name, DataType dtype, Shape shape) {
    const bool of_queries = name != "k" && name != "v";
    std::int64_t before = 0, rows = 0;
    for (std::size_t g = 0; g < c_.groups.size(); ++g) {
      const GroupSize& size = c_.groups[g];
      if (g == group_) before = rows;
      rows += size.batch * (of_queries ? size.seqlen_q : size.seqlen_k);
    }
    const std::int64_t row = name == "lse" ? 1 : shape.h * shape.d;
    const std::int64_t head = name == "lse" ? rows : shape.d;
    auto& shared = packed_[name];
    if (!shared) shared = make_with_room(dtype, {}, rows * shape.h * shape.d).buffer;
    return {shared, {shape, shape.s * row, head, row, 1, before * row}, dtype};
  }

  void make_packed_qkv(ForwardProblem& p) const {
    const auto& a = p.shape;
    if (a.heads_q != a.heads_kv || a.seqlen_q != a.seqlen_k || a.head_dim != a.head_dim_v) {
      throw std::runtime_error("layout bs3hd needs Hq = Hkv, Sq = Sk and Dqk = Dv");
    }
    const Shape all{a.batch, 3 * a.heads_q, a.seqlen_q, a.head_dim};
    const TestTensor whole = make_dense(a.dtype, bshd_layout(all));
    std::int64_t first = 0;
    for (TestTensor* tensor : {&p.q, &p.k, &p.v}) {
      *tensor = whole;
      tensor->layout.shape.h = a.heads_q;
      tensor->layout.offset = first++ * a.heads_q * a.head_dim;
    }
  }

  void make_tensors(ForwardProblem& p) {
    if (is_packed_qkv(c_)) {
      make_packed_qkv(p);
    } else {
      p.q = make_named("q", ForwardProblem::q_shape(p.shape));
      p.k = make_named("k", ForwardProblem::k_shape(p.shape));
      p.v = make_named("v", ForwardProblem::v_shape(p.shape));
    }
    p.o = make_named("o", ForwardProblem::o_shape(p.shape));
    const Shape rows = ForwardProblem::lse_shape(p.shape);
    p.lse = c_.packed_rows ? make_packed_rows("lse", DataType::fp32, rows)
                           : make_dense(DataType::fp32, bhsd_layout(rows));
    if (c_.bias) p.bias = make_dense(c_.bias->dtype, bias_layout(p.shape));
    if (keep_) {
      p.keep = make_dense(std::nullopt, bhsd_layout(ForwardProblem::score_shape(p.shape)));
    }
  }

  Layout bias_layout(const MhaForwardArgs& a) const {
    const Shape scores = ForwardProblem::score_shape(a);
    const auto stored = [&](std::size_t n, const char* name, std::int64_t size) -> std::int64_t {
      if (c_.bias->shape[n] == 1) return 1;
      if (c_.bias->shape[n] == name) return size;
      throw std::runtime_error("bias shape: wanted 1 or " + std::string(name) + ", got " +
                               c_.bias->shape[n].dump());
    };
    const Shape s{stored(0, "B", scores.b), stored(1, "Hq", scores.h), stored(2, "Sq", scores.s),
                  stored(3, "Sk", scores.d)};
    Layout layout = bhsd_layout(s, c_.bias->row_stride.value_or(s.d), s.s);
    layout.shape = scores;
    layout.offset = c_.bias->pointer_offset;
    if (s.b == 1) layout.b = 0;
    if (s.h == 1) layout.h = 0;
    if (s.s == 1) layout.s = 0;
    if (s.d != scores.d) throw std::runtime_error("a bias cannot broadcast over keys");
    return layout;
  }

  std::uint64_t seed(const std::string& name) const {
    return seed_of(c_.id + '/' + name + '/' + std::to_string(group_));
  }

  void fill_with(TestTensor& tensor, const std::string& name, const Init& init) const {
    Values values(init, tensor.layout.shape, seed(name), c_.u_seed);
    stored(tensor.layout)
        .for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
          tensor.set(b, h, s, d, values.at(b, h, s, d));
        });
  }

  void fill_inputs(ForwardProblem& p) const {
    for (auto [name, tensor] :
         {std::pair<const char*, TestTensor*>{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}) {
      const auto found = c_.init.find(name);
      fill_with(*tensor, name, found != c_.init.end() ? found->second : Init{"normal", {0, 1}});
    }
    if (p.bias) fill_bias(p.bias);
    for (const SetElements& set : c_.set) {
      if (set.tensor == "q") apply(set, p.q);
      if (set.tensor == "k") apply(set, p.k);
      if (set.tensor == "v") apply(set, p.v);
      if (set.tensor == "bias") apply(set, p.bias);
    }
    if (!c_.v_columns.empty()) {
      p.v.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
        p.v.set(b, h, s, d,
                c_.v_columns.at(static_cast<std::size_t>(d)).at(static_cast<std::size_t>(s)));
      });
    }
  }

  void apply(const SetElements& set, TestTensor& tensor) const {
    const auto in = [](const Range& range, std::int64_t n) {
      return n >= range.first && n < range.end;
    };
    Values values(set.value, tensor.layout.shape, seed("set " + set.tensor), c_.u_seed);
    stored(tensor.layout)
        .for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
          if (in(set.at[0], b) && in(set.at[1], h) && in(set.at[2], s) && in(set.at[3], d)) {
            tensor.set(b, h, s, d, values.at(b, h, s, d));
          }
        });
  }

  static double lowest(DataType type) {
    return type == DataType::fp16   ? -65504.0
           : type == DataType::bf16 ? -0x1.fep127
                                    : -static_cast<double>(std::numeric_limits<float>::max());
  }

  void fill_bias(TestTensor& bias) const {
    const BiasField& field = *c_.bias;
    fill_with(bias, "bias", field.init);
    const auto holds = [](const std::vector<std::int64_t>& list, std::int64_t n) {
      return std::find(list.begin(), list.end(), n) != list.end();
    };
    Random holes(seed("bias -inf")), lows(seed("bias lowest"));
    stored(bias.layout)
        .for_each([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
          const bool low = lows.uniform() < field.lowest_fraction;
          const bool hole = holes.uniform() < field.neg_inf_fraction;
          if (low || holds(field.lowest_rows, i) || holds(field.lowest_columns, j)) {
            bias.set(b, h, i, j, lowest(field.dtype));
          }
          if (hole || holds(field.neg_inf_rows, i) || holds(field.neg_inf_columns, j)) {
            bias.set(b, h, i, j, -std::numeric_limits<double>::infinity());
          }
        });
  }

  const FieldCase& c_;
  bool keep_;
  std::size_t group_ = 0;
  std::map<std::string, std::shared_ptr<Buffer>> packed_;
};

}  // namespace

std::vector<ForwardProblem> make_problems(const FieldCase& c, bool keep) {
  return ProblemMaker(c, keep).make();
}

}  // namespace flashxdl::test
