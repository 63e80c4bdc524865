#include "common/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace flashxdl::example {
namespace {

/// none, top-left, bottom-right, or window:ALIGNMENT:LEFT:RIGHT.
Mask parse_mask(const std::string& text) {
  if (text == "none") return Mask::none();
  if (text == "top-left") return Mask::causal_top_left();
  if (text == "bottom-right") return Mask::causal_bottom_right();
  const auto parts = CLI::detail::split(text, ':');
  std::int64_t left = 0;
  std::int64_t right = 0;
  if (parts.size() != 4 || parts[0] != "window" ||
      (parts[1] != "top-left" && parts[1] != "bottom-right") ||
      !CLI::detail::lexical_cast(parts[2], left) || !CLI::detail::lexical_cast(parts[3], right)) {
    throw CLI::ValidationError(
        "--mask", "is '" + text +
                      "'; it can be none, top-left, bottom-right or window:ALIGNMENT:LEFT:RIGHT "
                      "with two numbers (negative: unlimited)");
  }
  return Mask::window(
      parts[1] == "top-left" ? Mask::Alignment::top_left : Mask::Alignment::bottom_right, left,
      right);
}

/// BATCH,HEADS,SEQLEN_Q,SEQLEN_K or BATCH,HEADS,HEADS_KV,SEQLEN_Q,SEQLEN_K.
GroupShape parse_group(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const auto& part : CLI::detail::split(text, ',')) {
    std::int64_t number = -1;
    if (!CLI::detail::lexical_cast(part, number)) number = -1;
    numbers.push_back(number);
  }
  if (numbers.size() == 4) numbers.insert(numbers.begin() + 2, numbers[1]);
  bool valid = numbers.size() == 5;
  for (const std::int64_t number : numbers) valid = valid && number >= 0;
  if (!valid) {
    throw CLI::ValidationError("--group", "is '" + text +
                                              "'; it has to be BATCH,HEADS,SEQLEN_Q,SEQLEN_K or "
                                              "BATCH,HEADS,HEADS_KV,SEQLEN_Q,SEQLEN_K");
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

/// `count` groups with 0 to 1023 queries and keys, 1 to 3 batches and 1 to 5 heads.
std::vector<GroupShape> random_groups(int count) {
  std::mt19937 generator(1);
  const auto draw = [&](std::int64_t end) { return static_cast<std::int64_t>(generator()) % end; };
  std::vector<GroupShape> groups;
  for (int g = 0; g < count; ++g) {
    const std::int64_t heads = draw(5) + 1;
    groups.push_back({draw(3) + 1, heads, heads, draw(1024), draw(1024)});
  }
  return groups;
}

/// The options, bound to a config; texts that are not plain numbers wait here for finish().
class ForwardOptions {
public:
  explicit ForwardOptions(ForwardConfig& config) : config_(config), app_(config.summary) {
    add_actions();
    if (config.grouped) {
      add_groups();
    } else {
      add_one_shape();
    }
    add_problem();
    if (config.training) add_dropout();
    if (config.bias) add_bias();
  }

  CLI::App& app() { return app_; }

  void finish() {
    if (app_.count("--mask") > 0) config_.mask = parse_mask(mask_);
    if (app_.count("--scale") > 0) config_.scale = scale_;
    if (!config_.grouped) {
      GroupShape& shape = config_.groups.at(0);
      shape.heads_kv = app_.count("--heads-kv") > 0 ? heads_kv_ : shape.heads_q;
    } else if (random_groups_ > 0) {
      config_.groups = random_groups(random_groups_);
    } else if (!groups_.empty()) {
      config_.groups.clear();
      for (const auto& text : groups_) config_.groups.push_back(parse_group(text));
    }
  }

protected:
  template <class Value>
  CLI::Option* add(const char* name, Value& value, const char* what) {
    return app_.add_option(name, value, what)->capture_default_str();
  }
  template <class Value>
  void add_choice(const char* name, Value& value, const std::map<std::string, Value>& choices,
                  const char* what) {
    std::vector<std::string> names;
    std::string chosen;
    for (const auto& [text, choice] : choices) {
      names.push_back(text);
      if (choice == value) chosen = text;
    }
    app_.add_option_function<std::string>(
            name, [&value, choices](const std::string& text) { value = choices.at(text); }, what)
        ->check(CLI::IsMember(names))
        ->default_str(chosen);
  }

private:
  void add_actions() {
    add("--verify,verify", config_.verify, "compare with the double reference: 0, 1");
    add("--init,init", config_.init, "inputs: 0 zeros, 1 integers -2 to 1, 2 uniform, 3 normal")
        ->check(CLI::Range(0, 3));
    add("--time,time", config_.time, "measure the time on a GPU: 0, 1");
    add("--repeat", config_.repeat, "launches that are timed, after one that is not")
        ->check(CLI::PositiveNumber);
  }

  void add_groups() {
    app_.add_option("--group", groups_,
                    "a group: BATCH,HEADS,[HEADS_KV,]SEQLEN_Q,SEQLEN_K; several times");
    app_.add_option("--random-groups", random_groups_, "that many groups of random sizes")
        ->check(CLI::Range(1, 100000));
  }

  void add_one_shape() {
    GroupShape& shape = config_.groups.at(0);
    add("--batch", shape.batch, "batches")->check(CLI::NonNegativeNumber);
    add("--heads", shape.heads_q, "query heads")->check(CLI::NonNegativeNumber);
    app_.add_option("--heads-kv", heads_kv_, "heads of K and V (default: --heads)")
        ->check(CLI::NonNegativeNumber);
    add("--seqlen-q", shape.seqlen_q, "queries")->check(CLI::NonNegativeNumber);
    add("--seqlen-k", shape.seqlen_k, "keys")->check(CLI::NonNegativeNumber);
  }

  void add_problem() {
    add("--head-dim", config_.head_dim, "head dimension of Q and K")->check(CLI::PositiveNumber);
    add("--head-dim-v", config_.head_dim_v, "head dimension of V and O")
        ->check(CLI::PositiveNumber);
    add_choice("--dtype", config_.dtype, {{"fp16", DataType::fp16}, {"bf16", DataType::bf16}},
               "of Q, K, V, O");
    const std::map<std::string, Layout> layouts{{"bhsd", Layout::bhsd}, {"bshd", Layout::bshd}};
    add_choice("--layout-in", config_.input_layout, layouts, "order of Q, K, V");
    add_choice("--layout-out", config_.output_layout, layouts, "order of O");
    app_.add_option("--scale", scale_, "factor of the scores (default: 1/sqrt(head dimension))");
    app_.add_option("--mask", mask_, "none, top-left, bottom-right, window:ALIGNMENT:LEFT:RIGHT");
  }

  void add_dropout() {
    Dropout& dropout = config_.dropout;
    add("--dropout", dropout.probability, "probability of dropping");
    add("--dropout-bits", dropout.bits, "random bits for a score: 8 or 16");
    add("--seed", dropout.seed, "of dropout");
    add("--offset", dropout.offset, "of dropout");
  }

  void add_bias() {
    add_choice("--bias-dtype", config_.bias_dtype,
               {{"fp16", DataType::fp16}, {"bf16", DataType::bf16}, {"fp32", DataType::fp32}},
               "of bias");
    app_.add_option("--bias-broadcast", config_.bias_broadcast,
                    "dimensions of the bias that are broadcast: letters of b, h, q")
        ->check([](const std::string& letters) {
          return letters.find_first_not_of("bhq") == std::string::npos
                     ? std::string()
                     : "'" + letters + "' has a letter other than b, h, q";
        });
  }

  ForwardConfig& config_;
  CLI::App app_;
  std::string mask_;
  std::int64_t heads_kv_ = 0;
  float scale_ = 0;
  std::vector<std::string> groups_;
  int random_groups_ = 0;
};

/// Those, and what only a backward has.
class BackwardOptions : public ForwardOptions {
public:
  explicit BackwardOptions(BackwardConfig& config) : ForwardOptions(config.forward) {
    add_choice("--algorithm", config.algorithm,
               {{"by-head-dim", Algorithm::by_head_dim},
                {"resident", Algorithm::resident},
                {"streamed", Algorithm::streamed}},
               "rows whole on chip or in slices; by head dimension: whole up to 128");
    const std::map<std::string, DataType> types{
        {"fp16", DataType::fp16}, {"bf16", DataType::bf16}, {"fp32", DataType::fp32}};
    const std::map<std::string, std::optional<DataType>> gradient_types{{"input", std::nullopt},
                                                                        {"fp16", DataType::fp16},
                                                                        {"bf16", DataType::bf16},
                                                                        {"fp32", DataType::fp32}};
    add_choice("--grad-dtype", config.gradient_dtype, gradient_types,
               "of dQ, dK, dV: the input type or fp32");
    if (config.forward.bias) {
      add_choice("--dbias-dtype", config.dbias_dtype, types,
                 "of dBias: the type of the bias or fp32");
    }
    app().add_flag("--deterministic", config.deterministic, "the same bits on every run");
  }
};

std::optional<int> parse(ForwardOptions& options, int argc, const char* const* argv) {
  try {
    options.app().parse(argc, argv);
    options.finish();
  } catch (const CLI::ParseError& error) {
    return options.app().exit(error);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> parse_command_line(ForwardConfig& config, int argc, const char* const* argv) {
  ForwardOptions options(config);
  return parse(options, argc, argv);
}

std::optional<int> parse_command_line(BackwardConfig& config, int argc, const char* const* argv) {
  BackwardOptions options(config);
  return parse(options, argc, argv);
}

}  // namespace flashxdl::example
