#pragma once
/// \file
/// Formulas of the case file, such as "-20+log(Sk)" or "h//3+1": numbers, names, + - * / //,
/// parentheses, log. Everything else is an error.

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

namespace flashxdl::test {

using Variables = std::map<std::string, double>;

class Expression {
public:
  Expression(const std::string& text, const Variables& variables)
      : text_(text), variables_(variables) {}

  double value() {
    const double result = sum();
    if (at_ != text_.size()) fail("nothing more");
    return result;
  }

private:
  double sum() {
    double left = product();
    while (peek() == '+' || peek() == '-') {
      left = text_[at_++] == '+' ? left + product() : left - product();
    }
    return left;
  }

  double product() {
    double left = factor();
    while (peek() == '*' || peek() == '/') {
      if (take("//")) {
        left = std::floor(left / factor());
      } else if (take("/")) {
        left /= factor();
      } else {
        ++at_;
        left *= factor();
      }
    }
    return left;
  }

  double factor() {
    if (take("-")) return -factor();
    if (take("(")) return closed(sum());
    if (std::isdigit(static_cast<unsigned char>(peek()))) return number();
    const std::string name = word();
    if (name == "log" && take("(")) return std::log(closed(sum()));
    const auto found = variables_.find(name);
    if (found == variables_.end()) fail("a number, a known name or '('");
    return found->second;
  }

  double closed(double value) {
    if (!take(")")) fail("')'");
    return value;
  }
  double number() {
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    at_ = static_cast<std::size_t>(end - text_.c_str());
    return value;
  }
  std::string word() {
    const std::size_t first = at_;
    while (std::isalpha(static_cast<unsigned char>(peek()))) ++at_;
    return text_.substr(first, at_ - first);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  [[noreturn]] void fail(const std::string& wanted) const {
    throw std::runtime_error("formula '" + text_ + "', character " + std::to_string(at_ + 1) +
                             ": wanted " + wanted);
  }

  std::string text_;
  const Variables& variables_;
  std::size_t at_ = 0;
};

inline double evaluate(const std::string& text, const Variables& variables) {
  return Expression(text, variables).value();
}

}  // namespace flashxdl::test
