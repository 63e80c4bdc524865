#include "cases/field_check.hpp"

#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "cases/expression.hpp"

namespace flashxdl::test {
namespace {

class Checker {
public:
  Checker(const Check& check, const std::string& tensor, const CheckedProblem& on)
      : check_(check),
        name_(tensor),
        on_(on),
        slice_{check.rows.first, check.rows.end, check.columns.first, check.columns.end} {}

  std::string run() {
    using Method = std::string (Checker::*)();
    static const std::map<std::string, Method> methods{
        {"ref", &Checker::ref},
        {"mean_v", &Checker::mean_v},
        {"zero", &Checker::zero},
        {"neg_inf", &Checker::neg_inf},
        {"pos_inf", &Checker::pos_inf},
        {"nan", &Checker::nan},
        {"finite", &Checker::finite},
        {"value", &Checker::value},
        {"values", &Checker::values},
        {"one_of", &Checker::one_of},
        {"cosine", &Checker::cosine},
        {"mean_all", &Checker::mean_all},
        {"zero_where_all_dropped", &Checker::zero_where_all_dropped},
        {"keep_ref", &Checker::keep_ref},
        {"bytes", &Checker::bytes},
        {"rate", &Checker::rate},
        {"pair_agreement", &Checker::pair_agreement}};
    return (this->*methods.at(check_.is))();
  }

private:
  // ---- against the reference

  std::string ref() {
    return over_references([&](const ForwardReference& reference) {
      if (name_ == "O") return reference.check_o(slice_);
      if (name_ == "LSE") return reference.check_lse(slice_);
      throw std::runtime_error("check ref is for O and LSE, not " + name_);
    });
  }

  std::string mean_v() {
    require("O");
    return over_references(
        [&](const ForwardReference& reference) { return reference.check_mean_v(slice_); });
  }

  std::string keep_ref() {
    require("keep");
    return over_references(
        [](const ForwardReference& reference) { return reference.check_keep(); });
  }

  std::string cosine() {
    require("O");
    double dot = 0, got_squares = 0, wanted_squares = 0;
    for_reference_elements([&](double got, double wanted) {
      dot += got * wanted;
      got_squares += got * got;
      wanted_squares += wanted * wanted;
    });
    const double got = dot / std::sqrt(got_squares * wanted_squares);
    return got >= number()
               ? ""
               : "cosine to the reference is " + text(got) + ", wanted at least " + text(number());
  }

  std::string zero_where_all_dropped() {
    require("O");
    std::int64_t rows = 0;
    std::string failure;
    for (const auto& reference : on_.references) {
      for_each_in(tensor().layout.shape, slice_, reference.first_batch(), reference.batches(),
                  [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
                    const std::size_t n = reference.row(b, h, s);
                    const auto& exact = reference.exact();
                    if (exact.visible[n] == 0 || exact.kept[n] != 0) return;
                    ++rows;
                    if (tensor().output(b, h, s, d) != 0 && failure.empty()) {
                      failure = at(b, h, s, d) + ", wanted 0: every visible key is dropped";
                    }
                  });
    }
    return rows == 0 ? "no row has all its visible keys dropped: the case shows nothing" : failure;
  }

  // ---- element by element

  std::string zero() {
    return each("0", [](double got) { return got == 0; });
  }
  std::string neg_inf() {
    return each("-inf", [](double got) { return std::isinf(got) && got < 0; });
  }
  std::string pos_inf() {
    return each("inf", [](double got) { return std::isinf(got) && got > 0; });
  }
  std::string nan() {
    return each("nan", [](double got) { return std::isnan(got); });
  }
  std::string finite() {
    return each("a finite number", [](double got) { return std::isfinite(got); });
  }

  std::string value() {
    if (name_ == "p_in_force") return scalar(on_.problem.shape.dropout.probability_in_force());
    if (name_ == "advance") {
      const auto& a = on_.problem.shape;
      return scalar(
          static_cast<double>(Dropout::offset_advance(a.seqlen_q, a.seqlen_k, a.dropout.bits)));
    }
    Worst worst;
    bool good = true;
    for_elements([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      const double wanted = formula(b, h, s), got = tensor().output(b, h, s, d);
      worst.add(got, wanted, b, h, s, d);
      good = good && reference::error_of(got, wanted) <= check_.atol;
    });
    return good ? "" : worst.sentence(name_, check_.atol);
  }

  std::string values() {
    const auto wanted = check_.v.get<std::vector<double>>();
    Worst worst;
    bool good = true;
    for_elements([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      const double value = wanted.at(static_cast<std::size_t>(d));
      const double got = tensor().output(b, h, s, d);
      worst.add(got, value, b, h, s, d);
      good = good && reference::error_of(got, value) <= check_.atol;
    });
    return good ? "" : worst.sentence(name_, check_.atol);
  }

  std::string one_of() {
    const auto wanted = check_.v.get<std::vector<double>>();
    return each("one of " + check_.v.dump(), [&](double got) {
      return std::any_of(wanted.begin(), wanted.end(),
                         [&](double v) { return reference::error_of(got, v) <= check_.atol; });
    });
  }

  // ---- statistics

  std::string mean_all() {
    double sum = 0, count = 0;
    for_elements([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      sum += tensor().output(b, h, s, d);
      ++count;
    });
    return near("mean", sum / count, number(), check_.atol);
  }

  std::string rate() {
    require("keep");
    double kept = 0, count = 0;
    for_elements([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      kept += tensor().output(b, h, s, d);
      ++count;
    });
    return near("kept fraction", kept / count, number(), deviation(count));
  }

  /// Fraction of equal entries, for every pair of (batch, head).
  std::string pair_agreement() {
    require("keep");
    const Shape shape = tensor().layout.shape;
    const std::int64_t masks = shape.b * shape.h;
    const double count = static_cast<double>(shape.s * shape.d);
    for (std::int64_t x = 0; x < masks; ++x) {
      for (std::int64_t y = x + 1; y < masks; ++y) {
        double equal = 0;
        for (std::int64_t s = 0; s < shape.s; ++s) {
          for (std::int64_t d = 0; d < shape.d; ++d) {
            equal += tensor().output(x / shape.h, x % shape.h, s, d) ==
                     tensor().output(y / shape.h, y % shape.h, s, d);
          }
        }
        const std::string failure =
            near("agreement of masks " + std::to_string(x) + " and " + std::to_string(y),
                 equal / count, number(), deviation(count));
        if (!failure.empty()) return failure;
      }
    }
    return "";
  }

  /// The random numbers from score (i, j) on, by definition.
  std::string bytes() {
    require("keepbytes");
    const reference::DropoutMask mask(on_.problem.shape.dropout, check_.sequence,
                                      on_.problem.shape.seqlen_k);
    const auto wanted = check_.v.get<std::vector<std::uint32_t>>();
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      const std::int64_t j = check_.j + static_cast<std::int64_t>(n);
      const std::uint32_t got = mask.random_number(check_.i, j);
      if (got != wanted[n]) {
        return "number of score (" + std::to_string(check_.i) + ", " + std::to_string(j) + ") is " +
               std::to_string(got) + ", wanted " + std::to_string(wanted[n]);
      }
    }
    return "";
  }

  // ---- helpers

  const TestTensor& tensor() const {
    if (name_ == "O") return on_.problem.o;
    if (name_ == "LSE") return on_.problem.lse;
    if (name_ == "keep") return on_.problem.keep;
    throw std::runtime_error("check " + check_.is + " does not go with " + name_);
  }
  void require(const std::string& name) const {
    if (name_ != name) {
      throw std::runtime_error("check " + check_.is + " is for " + name + ", not " + name_);
    }
  }

  template <class Body>
  void for_elements(const Body& body) const {
    for_each_in(tensor().layout.shape, slice_, 0, tensor().layout.shape.b, body);
  }

  template <class Body>
  void for_reference_elements(const Body& body) const {
    for (const auto& reference : on_.references) {
      std::size_t n = 0;
      for_each_in(tensor().layout.shape, {}, reference.first_batch(), reference.batches(),
                  [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
                    body(tensor().output(b, h, s, d), reference.exact().o[n++]);
                  });
    }
  }

  template <class Body>
  std::string over_references(const Body& body) const {
    for (const auto& reference : on_.references) {
      const std::string failure = body(reference);
      if (!failure.empty()) return failure;
    }
    return "";
  }

  template <class Good>
  std::string each(const std::string& wanted, const Good& good) const {
    std::int64_t wrong = 0;
    std::string first;
    for_elements([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      if (good(tensor().output(b, h, s, d)) || wrong++ > 0) return;
      first = at(b, h, s, d) + ", wanted " + wanted;
    });
    return wrong == 0 ? "" : first + " (" + std::to_string(wrong) + " elements)";
  }

  std::string at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) const {
    std::ostringstream out;
    out << name_ << '[' << b << ',' << h << ',' << s << ',' << d << "] is "
        << tensor().output(b, h, s, d);
    return out.str();
  }

  double formula(std::int64_t b, std::int64_t h, std::int64_t i) const {
    if (check_.v.is_number()) return check_.v.get<double>();
    const auto& a = on_.problem.shape;
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    return evaluate(check_.v.get<std::string>(), {{"b", real(b)},
                                                  {"h", real(h)},
                                                  {"i", real(i)},
                                                  {"Sq", real(a.seqlen_q)},
                                                  {"Sk", real(a.seqlen_k)},
                                                  {"Hq", real(a.heads_q)},
                                                  {"Hkv", real(a.heads_kv)},
                                                  {"B", real(a.batch)}});
  }
  double number() const { return formula(0, 0, 0); }

  std::string scalar(double got) const { return near(name_, got, number(), check_.atol); }

  /// `sigmas` standard deviations of the mean of `count` yes-or-no trials.
  double deviation(double count) const {
    return check_.sigmas * std::sqrt(number() * (1 - number()) / count);
  }

  static std::string text(double value) {
    std::ostringstream out;
    out.precision(9);
    out << value;
    return out.str();
  }
  static std::string near(const std::string& what, double got, double wanted, double allowed) {
    if (reference::error_of(got, wanted) <= allowed) return "";
    return what + " is " + text(got) + ", wanted " + text(wanted) + " within " + text(allowed);
  }

  const Check& check_;
  std::string name_;
  const CheckedProblem& on_;
  Slice slice_;
};

}  // namespace

std::string run_check(const Check& check, const std::string& tensor, const CheckedProblem& on) {
  return Checker(check, tensor, on).run();
}

}  // namespace flashxdl::test
