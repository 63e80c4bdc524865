#pragma once
/// \file
/// The outcome of a call: ok, or a sentence that names the argument, its value and what would do.

#include <string>
#include <utility>

namespace flashxdl {

enum class StatusCode {
  ok,
  invalid_argument,  ///< the arguments contradict each other or the contract
  unsupported,       ///< valid, but no kernel here does it
  runtime_error,     ///< a HIP call failed; the message carries HIP's own name for the error
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status invalid(std::string message) {
    return {StatusCode::invalid_argument, std::move(message)};
  }
  static Status unsupported(std::string message) {
    return {StatusCode::unsupported, std::move(message)};
  }

  bool ok() const { return code_ == StatusCode::ok; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return code_; }
  /// Empty when ok.
  const std::string& message() const { return message_; }

private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

}  // namespace flashxdl
