#include "cases/field_case.hpp"

#include <fstream>
#include <set>
#include <sstream>

namespace flashxdl::test {
namespace {

const std::set<std::string> known_tensors{
    "O", "LSE", "dQ", "dK", "dV", "dBias", "keep", "keepbytes", "p_in_force", "advance", "*"};
const std::set<std::string> known_checks{"ref",
                                         "zero",
                                         "neg_inf",
                                         "pos_inf",
                                         "nan",
                                         "finite",
                                         "value",
                                         "values",
                                         "mean_v",
                                         "one_of",
                                         "cosine",
                                         "same_bits_as",
                                         "same_as_mask",
                                         "keep_ref",
                                         "bytes",
                                         "rate",
                                         "pair_agreement",
                                         "mean_all",
                                         "zero_where_all_dropped",
                                         "no_shared_blocks",
                                         "untouched_outside"};
const std::set<std::string> tensor_names{"q", "k", "v", "o", "do", "dq", "dk", "dv", "lse", "bias"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

void require_known(const std::set<std::string>& known, const std::string& name,
                   const std::string& what, const std::string& where) {
  if (!known.contains(name))
    throw std::runtime_error(where + ": unknown " + what + " '" + name + "'");
}

std::int64_t integer(const std::string& text, const std::string& where) {
  std::size_t used = 0;
  std::int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) {
    throw std::runtime_error(where + ": '" + text + "' is no integer");
  }
  return value;
}

DataType parse_type(const std::string& name, const std::string& where) {
  for (const auto type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    if (name == name_of(type)) return type;
  }
  throw std::runtime_error(where + ": unknown dtype '" + name + "'");
}

Range parse_range(const std::string& text, const std::string& where) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    const std::int64_t n = integer(text, where);
    return {n, n + 1};
  }
  Range range;
  if (colon > 0) range.first = integer(text.substr(0, colon), where);
  if (colon + 1 < text.size()) range.end = integer(text.substr(colon + 1), where);
  if (range.first < 0 || range.end < range.first) {
    throw std::runtime_error(where + ": '" + text + "' is no range of positions");
  }
  return range;
}

/// "...,0:64" or "0,1,:,3" -> four ranges.
std::vector<Range> parse_index(const std::string& text, const std::string& where) {
  std::vector<std::string> parts = split(text, ',');
  const auto dots = std::find(parts.begin(), parts.end(), "...");
  if (dots != parts.end() && parts.size() <= 5) {
    const std::size_t missing = 5 - parts.size();
    const auto at = parts.erase(dots);
    parts.insert(at, missing, ":");
  }
  if (parts.size() != 4) throw std::runtime_error(where + ": '" + text + "' is no index [b,h,s,d]");
  std::vector<Range> ranges;
  for (const auto& part : parts) ranges.push_back(parse_range(part, where));
  return ranges;
}

/// A number, an infinity, or [name, numbers...].
Init parse_init(const Json& value, const std::string& where) {
  static const std::map<std::string, std::size_t> arguments{
      {"normal", 2}, {"const", 1}, {"head_index", 1}, {"student_t", 2},
      {"band", 1},   {"pick", 2},  {"neg_rows", 3},   {"normal_plus_2u", 0}};
  if (!value.is_array()) return {"const", {extended_number(value, where)}};
  if (value.empty() || !value[0].is_string()) {
    throw std::runtime_error(where + ": " + value.dump() + " is no init");
  }
  Init init{value[0].get<std::string>(), {}};
  for (std::size_t n = 1; n < value.size(); ++n) {
    init.numbers.push_back(extended_number(value[n], where));
  }
  const auto known = arguments.find(init.name);
  if (known == arguments.end()) {
    throw std::runtime_error(where + ": unknown init '" + init.name + "'");
  }
  if (init.name == "head_index" && init.numbers.empty()) init.numbers.push_back(0);
  if (init.numbers.size() != known->second) {
    throw std::runtime_error(where + ": init '" + init.name + "' takes " +
                             std::to_string(known->second) + " numbers");
  }
  return init;
}

BiasField parse_bias(const Json& json, const std::string& where) {
  StrictObject o(json, where);
  BiasField bias;
  using Rows = std::vector<std::int64_t>;
  bias.dtype = parse_type(o.take_as<std::string>("dtype"), where);
  bias.shape = o.take_as<std::vector<Json>>("shape");
  bias.init = parse_init(o.take("init"), where);
  bias.neg_inf_rows = o.take_or<Rows>("neg_inf_rows", {});
  bias.neg_inf_columns = o.take_or<Rows>("neg_inf_cols", {});
  bias.neg_inf_fraction = o.take_or<double>("neg_inf_fraction", 0);
  bias.lowest_rows = o.take_or<Rows>("finfo_min_rows", {});
  bias.lowest_columns = o.take_or<Rows>("finfo_min_cols", {});
  bias.lowest_fraction = o.take_or<double>("finfo_min_fraction", 0);
  bias.pointer_offset = o.take_or<std::int64_t>("pointer_offset_elements", 0);
  if (o.has("row_stride")) bias.row_stride = o.take_as<std::int64_t>("row_stride");
  (void)o.take_or<bool>("grad", false);  // of the backward
  if (o.has("grad_dtype")) (void)parse_type(o.take_as<std::string>("grad_dtype"), where);
  o.finish();
  if (bias.shape.size() != 4) o.fail("the shape of a bias has 4 entries");
  return bias;
}

std::vector<GroupSize> parse_group_list(const Json& json) {
  std::vector<GroupSize> groups;
  for (const auto& sizes : json.get<std::vector<std::vector<std::int64_t>>>()) {
    groups.push_back({sizes.at(0), sizes.at(1), sizes.at(2)});
  }
  return groups;
}

void parse_sizes(FieldCase& c, StrictObject& o, StrictObject& extra) {
  c.heads_q = o.take_as<std::int64_t>("Hq");
  c.heads_kv = o.take_as<std::int64_t>("Hkv");
  c.head_dim = o.take_as<std::int64_t>("Dqk");
  c.head_dim_v = o.take_as<std::int64_t>("Dv");
  c.grouped = extra.has("groups") || extra.has("groups_repeat");
  if (!c.grouped) {
    c.groups = {{o.take_as<std::int64_t>("B"), o.take_as<std::int64_t>("Sq"),
                 o.take_as<std::int64_t>("Sk")}};
    return;
  }
  for (const char* name : {"B", "Sq", "Sk"}) {
    if (!o.take(name).is_null()) o.fail(std::string(name) + " must be null where groups are given");
  }
  if (extra.has("groups")) c.groups = parse_group_list(extra.take("groups"));
  if (extra.has("groups_repeat")) {
    const Json& repeat = extra.take("groups_repeat");
    const auto list = parse_group_list(repeat.at(1));
    for (int n = 0; n < repeat.at(0).get<int>(); ++n) {
      c.groups.insert(c.groups.end(), list.begin(), list.end());
    }
  }
}

void parse_layouts(FieldCase& c, const Json& layout, const std::string& where) {
  if (layout.is_string()) {
    c.layouts[""] = layout.get<std::string>();
    return;
  }
  c.layouts = layout.get<std::map<std::string, std::string>>();
  for (const auto& [tensor, name] : c.layouts) require_known(tensor_names, tensor, "tensor", where);
}

void parse_strides(FieldCase& c, const Json& json, const std::string& where) {
  StrictObject tensors(json, where);
  for (const auto& item : json.items()) {
    require_known(tensor_names, item.key(), "tensor", where);
    StrictObject o(tensors.take(item.key()), where);
    StridesField strides;
    for (auto [name, member] : {std::pair{"b", &StridesField::b},
                                {"h", &StridesField::h},
                                {"s", &StridesField::s},
                                {"d", &StridesField::d}}) {
      if (o.has(name)) strides.*member = o.take_as<std::int64_t>(name);
    }
    o.finish();
    c.strides[item.key()] = strides;
  }
}

void parse_data(FieldCase& c, StrictObject& extra) {
  const std::string& where = extra.where();
  if (extra.has("init")) {
    for (const auto& item : extra.take("init").items()) {
      require_known(tensor_names, item.key(), "tensor", where);
      c.init[item.key()] = parse_init(item.value(), where);
    }
  }
  if (extra.has("set")) {
    for (const auto& json : extra.take("set")) {
      StrictObject o(json, where + ", set");
      SetElements set{o.take_as<std::string>("t"),
                      parse_index(o.take_as<std::string>("at"), o.where()),
                      parse_init(o.take("v"), o.where())};
      require_known(tensor_names, set.tensor, "tensor", o.where());
      o.finish();
      c.set.push_back(set);
    }
  }
  c.v_columns = extra.take_or<std::vector<std::vector<double>>>("v_columns", {});
  if (extra.has("u_seed")) c.u_seed = big_integer(extra.take("u_seed"), where);
}

void parse_environment(FieldCase& c, StrictObject& extra) {
  if (!extra.has("env")) return;
  const Json& env = extra.take("env");
  for (const auto& name : env.is_array() ? env : Json::array({env})) {
    // Outputs, workspace and LDS are poisoned in every case.
    if (name == "guard_pages") {
      c.guard_pages = true;
    } else if (name != "poison_lds" && name != "poison_outputs") {
      extra.fail("unknown env " + name.dump());
    }
  }
}

void parse_calls(FieldCase& c, StrictObject& extra) {
  c.busy_stream = extra.take_or<bool>("busy_stream", false);
  if (!extra.has("calls")) return;
  for (const auto& json : extra.take("calls")) {
    StrictObject o(json, extra.where() + ", calls");
    const auto op = o.take_as<std::string>("op");
    if (op != "fwd" && op != "bwd") o.fail("unknown op '" + op + "'");
    CallField call{.forward = op == "fwd"};
    if (o.has("seed")) call.seed = big_integer(o.take("seed"), o.where());
    if (o.has("offset")) call.offset = big_integer(o.take("offset"), o.where());
    o.finish();
    c.calls.push_back(call);
  }
}

/// "shuffle:1..8" or "shuffle:3".
std::vector<std::uint64_t> parse_schedules(const std::string& text, const std::string& where) {
  const std::string prefix = "shuffle:";
  if (!text.starts_with(prefix)) throw std::runtime_error(where + ": unknown schedules " + text);
  const std::string seeds = text.substr(prefix.size());
  const std::size_t dots = seeds.find("..");
  const std::int64_t first = integer(seeds.substr(0, dots), where);
  const std::int64_t last =
      dots == std::string::npos ? first : integer(seeds.substr(dots + 2), where);
  std::vector<std::uint64_t> list;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    list.push_back(static_cast<std::uint64_t>(seed));
  }
  return list;
}

void parse_running(FieldCase& c, StrictObject& extra) {
  parse_environment(c, extra);
  parse_calls(c, extra);
  c.repeat = extra.take_or<int>("repeat", 1);
  if (extra.has("schedules")) {
    c.shuffle_seeds = parse_schedules(extra.take_as<std::string>("schedules"), extra.where());
  }
  c.check_sample = extra.take_or<std::vector<std::int64_t>>("check_sample", {});
  c.cost = extra.take_or<std::string>("cost", "");
  require_known({"", "medium", "large", "huge_mem"}, c.cost, "cost", extra.where());
  const auto level = extra.take_or<std::string>("level", "kernel");
  require_known({"kernel", "call"}, level, "level", extra.where());
  if (level == "call" && c.calls.empty()) extra.fail("level \"call\" needs calls");
}

/// What only the backward reads; checked for sense all the same.
void parse_backward(StrictObject& extra) {
  for (const auto& name : extra.take_or<std::vector<std::string>>("null_grads", {})) {
    if (!is_gradient(name)) extra.fail("null_grads: '" + name + "' is no gradient");
  }
  if (extra.has("grad_dtype")) {
    (void)parse_type(extra.take_as<std::string>("grad_dtype"), extra.where());
  }
  (void)extra.take_or<bool>("all_backward_kernels", false);
  (void)extra.take_or<bool>("deterministic", false);
}

void parse_dropout(FieldCase& c, StrictObject& o, StrictObject& extra) {
  c.dropout.probability = extended_number(o.take("dropout_p"), o.where());
  c.dropout.bits = extra.take_or<int>("rng_bits", 8);
  if (extra.has("seed")) c.dropout.seed = big_integer(extra.take("seed"), extra.where());
  if (extra.has("offset")) c.dropout.offset = big_integer(extra.take("offset"), extra.where());
}

void parse_extra(FieldCase& c, StrictObject& extra) {
  parse_data(c, extra);
  parse_running(c, extra);
  parse_backward(extra);
  c.row_pad = extra.take_or<std::int64_t>("row_pad", 0);
  c.capacity_rows = extra.take_or<std::int64_t>("capacity_rows", 0);
  if (extra.has("beyond")) c.beyond = extended_number(extra.take("beyond"), extra.where());
  if (extra.has("strides")) parse_strides(c, extra.take("strides"), extra.where());
  c.packed_rows = extra.take_or<bool>("packed_rows", false);
  extra.finish();
}

Check parse_check(const Json& json, const std::string& where) {
  StrictObject o(json, where + ", check");
  Check check;
  check.tensors = split(o.take_as<std::string>("t"), ',');
  for (const auto& tensor : check.tensors) {
    require_known(known_tensors, tensor, "tensor", o.where());
  }
  check.is = o.take_as<std::string>("is");
  require_known(known_checks, check.is, "check", o.where());
  if (o.has("v")) check.v = o.take("v");
  check.atol = o.take_or<double>("atol", 0);
  check.sigmas = o.take_or<double>("sigmas", 0);
  if (o.has("rows")) check.rows = parse_range(o.take_as<std::string>("rows"), o.where());
  if (o.has("cols")) check.columns = parse_range(o.take_as<std::string>("cols"), o.where());
  if (o.has("group")) check.group = o.take_as<std::size_t>("group");
  check.run = o.take_or<std::string>("run", "");
  check.mask = o.take_or<std::string>("mask", "");
  if (o.has("seq")) check.sequence = big_integer(o.take("seq"), o.where());
  check.i = o.take_or<std::int64_t>("i", 0);
  check.j = o.take_or<std::int64_t>("j", 0);
  o.finish();
  return check;
}

void parse_expected(FieldCase& c, const Json& json, const std::string& where) {
  StrictObject o(json, where + ", expect");
  const auto status = o.take_as<std::string>("status");
  require_known({"ok", "refused", "ok_or_refused"}, status, "status", o.where());
  c.expected = status == "ok"        ? Expected::ok
               : status == "refused" ? Expected::refused
                                     : Expected::ok_or_refused;
  c.message_must_name = o.take_or<std::vector<std::string>>("message_must_name", {});
  if (o.has("checks")) {
    for (const auto& check : o.take("checks")) c.checks.push_back(parse_check(check, where));
  }
  o.finish();
}

FieldCase parse_case(const Json& json) {
  StrictObject o(json, "case " + json.value("id", std::string("without id")));
  FieldCase c;
  c.id = o.take_as<std::string>("id");
  (void)o.take_as<int>("case");
  (void)o.take_as<std::string>("theme");
  c.dtype = parse_type(o.take_as<std::string>("dtype"), o.where());
  StrictObject extra(o.take("extra"), o.where() + ", extra");
  parse_sizes(c, o, extra);
  c.mask = parse_mask(o.take_as<std::string>("mask"));
  const Json& bias = o.take("bias");
  if (!bias.is_null()) c.bias = parse_bias(bias, o.where() + ", bias");
  parse_dropout(c, o, extra);
  const Json& scale = o.take("scale");
  if (scale != "default") c.scale = static_cast<float>(extended_number(scale, o.where()));
  parse_layouts(c, o.take("layout"), o.where());
  parse_extra(c, extra);
  parse_expected(c, o.take("expect"), o.where());
  o.finish();
  return c;
}

}  // namespace

Mask parse_mask(const std::string& text) {
  const std::string where = "mask '" + text + "'";
  const std::vector<std::string> parts = split(text, ':');
  const auto alignment = [&](const std::string& name) {
    require_known({"top_left", "bottom_right"}, name, "alignment", where);
    return name == "top_left" ? Mask::Alignment::top_left : Mask::Alignment::bottom_right;
  };
  if (text == "none") return Mask::none();
  if (parts.size() == 1) return Mask::window(alignment(text), -1, 0);
  if (parts.size() != 4 || parts[0] != "window") throw std::runtime_error(where + " is unknown");
  return Mask::window(alignment(parts[1]), integer(parts[2], where), integer(parts[3], where));
}

std::vector<FieldCase> read_cases(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<FieldCase> cases;
  std::set<std::string> ids;
  for (const auto& json : Json::parse(file)) {
    cases.push_back(parse_case(json));
    if (!ids.insert(cases.back().id).second) {
      throw std::runtime_error("case " + cases.back().id + " is there twice");
    }
  }
  return cases;
}

}  // namespace flashxdl::test
