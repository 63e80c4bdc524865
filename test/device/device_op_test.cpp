// The device ops' protocol: what is refused and in which words, workspace, type strings, timing,
// and that a refusal launches and writes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "flashxdl/flashxdl.hpp"

namespace flashxdl::test {
namespace {

/// A small valid problem in host memory (the CPU target takes any address).
struct SmallProblem {
  std::vector<std::uint16_t> q = std::vector<std::uint16_t>(2 * 4 * 8 * 32);
  std::vector<std::uint16_t> k = std::vector<std::uint16_t>(2 * 2 * 8 * 32);
  std::vector<std::uint16_t> v = k;
  std::vector<std::uint16_t> o = std::vector<std::uint16_t>(q.size(), 0x7e00);
  std::vector<float> lse = std::vector<float>(2 * 4 * 8, std::nanf(""));
  std::vector<float> bias = std::vector<float>(8 * 8);

  MhaForwardArgs args() {
    return {.dtype = DataType::fp16,
            .batch = 2,
            .heads_q = 4,
            .heads_kv = 2,
            .seqlen_q = 8,
            .seqlen_k = 8,
            .head_dim = 32,
            .head_dim_v = 32,
            .q = bhsd<const void*>(q.data(), 4, 8, 32),
            .k = bhsd<const void*>(k.data(), 2, 8, 32),
            .v = bhsd<const void*>(v.data(), 2, 8, 32),
            .o = bhsd<void*>(o.data(), 4, 8, 32),
            .lse = dense_lse(lse.data(), 4, 8)};
  }
};

struct Refusal {
  const char* what;
  std::function<void(MhaForwardArgs&)> spoil;
  std::vector<const char*> words;  ///< that the sentence must hold
};

const std::vector<Refusal>& refusals() {
  static constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  static float misaligned[2];
  static const std::vector<Refusal> table = {
      {"dtype", [](auto& a) { a.dtype = DataType::fp32; }, {"dtype", "fp32"}},
      {"negative batch", [](auto& a) { a.batch = -1; }, {"batch", "-1"}},
      {"negative Hq", [](auto& a) { a.heads_q = -4; }, {"Hq", "-4"}},
      {"negative Sq", [](auto& a) { a.seqlen_q = -2; }, {"Sq", "-2"}},
      {"negative Sk", [](auto& a) { a.seqlen_k = -3; }, {"Sk", "-3"}},
      {"too many keys", [](auto& a) { a.seqlen_k = (1ll << 30) + 1; }, {"Sk", "2^30"}},
      {"head ratio", [](auto& a) { a.heads_kv = 3; }, {"Hq", "4", "Hkv", "3"}},
      {"no KV head", [](auto& a) { a.heads_kv = 0; }, {"Hkv", "0"}},
      {"D = 0", [](auto& a) { a.head_dim = 0; }, {"head_dim (D)", "0", "256"}},
      {"Dv = 257", [](auto& a) { a.head_dim_v = 257; }, {"head_dim_v (Dv)", "257", "256"}},
      {"scale NaN", [](auto& a) { a.scale = nan; }, {"scale", "nan"}},
      {"scale inf", [](auto& a) { a.scale = std::numeric_limits<float>::infinity(); }, {"scale"}},
      {"p < 0", [](auto& a) { a.dropout.probability = -0.5; }, {"dropout", "-0.5"}},
      {"p > 1", [](auto& a) { a.dropout.probability = 1.5; }, {"dropout", "1.5"}},
      {"p NaN", [](auto& a) { a.dropout.probability = std::nan(""); }, {"dropout", "nan"}},
      {"bits", [](auto& a) { a.dropout.bits = 12; }, {"dropout bits", "12"}},
      {"Q null", [](auto& a) { a.q.data = nullptr; }, {"Q", "null"}},
      {"K null", [](auto& a) { a.k.data = nullptr; }, {"K", "null"}},
      {"V null", [](auto& a) { a.v.data = nullptr; }, {"V", "null"}},
      {"O null", [](auto& a) { a.o.data = nullptr; }, {"O", "null"}},
      {"K strided columns",
       [](auto& a) { a.k.column_stride = 8; },
       {"K", "stride 8", "contiguous"}},
      {"V column stride 0", [](auto& a) { a.v.column_stride = 0; }, {"V", "stride 0"}},
      {"negative row stride", [](auto& a) { a.q.row_stride = -32; }, {"Q", "-32", "negative"}},
      {"Q slice of 4 GiB", [](auto& a) { a.q.row_stride = 1ll << 30; }, {"Q", "4 GiB"}},
      {"O rows overlap", [](auto& a) { a.o.row_stride = 31; }, {"O", "31", "overlap"}},
      {"O heads overlap", [](auto& a) { a.o.head_stride = 0; }, {"O", "overlap"}},
      {"O batches overlap", [](auto& a) { a.o.batch_stride = 0; }, {"O", "overlap"}},
      {"LSE heads overlap", [](auto& a) { a.lse.head_stride = 0; }, {"LSE", "overlap"}},
      {"odd LSE address",
       [](auto& a) {
         a.lse.data = reinterpret_cast<float*>(reinterpret_cast<char*>(misaligned) + 1);
       },
       {"LSE", "multiple"}},
      {"bias slice of 4 GiB",
       [](auto& a) {
         a.bias.tensor.data = misaligned;
         a.bias.tensor.row_stride = 1ll << 31;
       },
       {"bias", "4 GiB"}},
      {"keep mask rows overlap",
       [](auto& a) { a.keep_mask.data = reinterpret_cast<std::uint8_t*>(misaligned); },
       {"keep_mask", "overlap"}},
  };
  return table;
}

TEST(Refusals, NameTheArgumentAndItsValue) {
  for (const auto& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    SmallProblem problem;
    auto args = problem.args();
    refusal.spoil(args);
    const Status status = CheckForward(args);
    EXPECT_FALSE(status.ok());
    for (const char* word : refusal.words) {
      EXPECT_NE(status.message().find(word), std::string::npos)
          << "'" << word << "' is not in: " << status.message();
    }
    EXPECT_EQ(MhaForward(args).message(), status.message());

    MhaForwardGroupedArgs grouped{{problem.args(), args}};
    const Status in_group = CheckForward(grouped);
    EXPECT_NE(in_group.message().find("group 1"), std::string::npos) << in_group.message();

    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
    for (const auto x : problem.o) ASSERT_EQ(x, 0x7e00) << "a refusal wrote to O";
    for (const auto x : problem.lse) ASSERT_TRUE(std::isnan(x)) << "a refusal wrote to LSE";
  }
}

TEST(Refusals, NotOfWhatIsValid) {
  SmallProblem problem;
  EXPECT_TRUE(CheckForward(problem.args()).ok()) << CheckForward(problem.args()).message();
  auto args = problem.args();
  args.q.row_stride = 0;  // inputs may broadcast
  args.lse = {};
  EXPECT_TRUE(CheckForward(args).ok()) << CheckForward(args).message();
  args.batch = 0;
  args.q.data = args.k.data = args.v.data = nullptr;
  args.o.data = nullptr;
  EXPECT_TRUE(MhaForward(args).ok());
}

constexpr MhaFwdProblem wide_fp16{.dtype = DataType::fp16};
using Op = device::DeviceBatchedMhaFwdXdlCshuffleV2<wide_fp16, forward_tile(wide_fp16, 32)>;
using GroupedOp = device::DeviceGroupedMhaFwdXdlCshuffleV2<wide_fp16, forward_tile(wide_fp16, 32)>;

TEST(DeviceOp, SaysWhatTheInstanceCannotDo) {
  const auto message = [](auto&& spoil) {
    SmallProblem problem;
    auto args = problem.args();
    spoil(args);
    const auto argument = Op::MakeArgument(args);
    EXPECT_FALSE(Op::IsSupportedArgument(argument));
    EXPECT_THROW(Op::MakeInvoker().Run(argument), std::runtime_error);
    return Op::CheckArgument(argument).message();
  };
  const auto says = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  EXPECT_TRUE(says(message([](auto& a) { a.dtype = DataType::bf16; }), "bf16"));
  EXPECT_TRUE(says(message([](auto& a) { a.head_dim = 64; }), "head_dim (D) = 64"));
  EXPECT_TRUE(says(message([](auto& a) {
                     a.head_dim_v = 33;
                     a.o.row_stride = 40;
                   }),
                   "head_dim_v (Dv) = 33"));
  EXPECT_TRUE(says(message([](auto& a) { a.dropout.probability = 0.5; }), "0.5"));
  EXPECT_TRUE(says(message([](auto& a) { a.q.head_stride = 257; }), "multiples of 8"));
  static float bias[64];
  EXPECT_TRUE(says(message([](auto& a) { a.bias.tensor.data = bias; }), "bias"));
}

TEST(DeviceOp, RunsAndTimes) {
  SmallProblem problem;
  const auto argument = Op::MakeArgument(problem.args());
  EXPECT_EQ(Op::GetWorkSpaceSize(argument), 0u);
  EXPECT_EQ(Op::MakeInvoker().Run(argument), 0.0f);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  // Zero Q and K: every score is 0.
  for (const float x : problem.lse) EXPECT_NEAR(x, std::log(8.0f), 1e-6f);
  EXPECT_GT(Op::MakeInvoker().Run(argument, {.time_kernel = true, .repeat = 2}), 0.0f);
}

TEST(GroupedDeviceOp, NeedsItsWorkspace) {
  SmallProblem problem;
  auto argument = GroupedOp::MakeArgument({{problem.args()}});
  const std::size_t bytes = GroupedOp::GetWorkSpaceSize(argument);
  EXPECT_EQ(bytes, MhaForwardWorkspaceSize({{problem.args()}}));
  try {
    GroupedOp::MakeInvoker().Run(argument);
    FAIL() << "ran without workspace";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
  }
  EXPECT_NE(MhaForward(MhaForwardGroupedArgs{{problem.args()}}, nullptr, bytes - 1)
                .message()
                .find("workspace"),
            std::string::npos);
  void* workspace = nullptr;
  ASSERT_EQ(hipMalloc(&workspace, bytes), hipSuccess);
  GroupedOp::SetWorkSpacePointer(argument, workspace);
  EXPECT_EQ(GroupedOp::MakeInvoker().Run(argument), 0.0f);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (const float x : problem.lse) EXPECT_NEAR(x, std::log(8.0f), 1e-6f);
  ASSERT_EQ(hipFree(workspace), hipSuccess);
}

TEST(TypeStrings, SayWhatTheKernelIs) {
  SmallProblem problem;
  auto args = problem.args();
  const std::string plain = MhaForwardTypeString(args);
  for (const char* word :
       {"MhaFwdXdlCshuffleV2", "fp16", "D32", "Dv32", "mask", "dropout none", "deterministic"}) {
    EXPECT_NE(plain.find(word), std::string::npos) << word << " is not in " << plain;
  }
  args.dropout.probability = 0.25;
  EXPECT_NE(MhaForwardTypeString(args).find("8bit philox10"), std::string::npos);
  args.head_dim = 100;
  EXPECT_NE(MhaForwardTypeString(args).find("D128"), std::string::npos);
  args.head_dim = 1000;
  EXPECT_EQ(MhaForwardTypeString(args), "");
}

/// A program's own small set of kernels.
struct OnlyBf16 {
  static constexpr DataType dtypes[] = {DataType::bf16};
  static constexpr int head_dims[] = {32};
};

TEST(Instances, OfAProgramsOwnSet) {
  SmallProblem problem;
  const Status status = CheckForward<OnlyBf16>(problem.args());
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_NE(status.message().find("fp16"), std::string::npos) << status.message();
  auto args = problem.args();
  args.dtype = DataType::bf16;
  EXPECT_TRUE(CheckForward<OnlyBf16>(args).ok());
}

}  // namespace
}  // namespace flashxdl::test
