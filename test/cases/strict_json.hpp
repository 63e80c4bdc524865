#pragma once
/// \file
/// Reading JSON where nothing may be ignored: a field that nobody asked for is an error.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace flashxdl::test {

using Json = nlohmann::json;

/// A JSON object whose fields are taken one by one; finish() throws if one was left.
class StrictObject {
public:
  StrictObject(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("an object is needed here");
    for (const auto& item : object.items()) left_.insert(item.key());
  }

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const { return object_.contains(key); }

  const Json& take(const std::string& key) {
    if (!has(key)) fail("field '" + key + "' is missing");
    left_.erase(key);
    return object_.at(key);
  }
  template <class T>
  T take_as(const std::string& key) {
    try {
      return take(key).get<T>();
    } catch (const Json::exception& error) {
      fail("field '" + key + "': " + error.what());
    }
  }
  template <class T>
  T take_or(const std::string& key, T otherwise) {
    return has(key) ? take_as<T>(key) : otherwise;
  }

  void finish() const {
    if (!left_.empty()) fail("unknown field '" + *left_.begin() + "'");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(where_ + ": " + what);
  }

private:
  const Json& object_;
  std::string where_;
  std::set<std::string> left_;
};

/// A number, or "nan", "inf", "-inf".
inline double extended_number(const Json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::runtime_error(where + ": " + value.dump() + " is no number, \"nan\" or \"inf\"");
}

/// An unsigned 64-bit integer; above 2^53 files hold it as a string.
inline std::uint64_t big_integer(const Json& value, const std::string& where) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    std::size_t used = 0;
    const std::uint64_t number = std::stoull(text, &used, 0);
    if (used == text.size()) return number;
  }
  throw std::runtime_error(where + ": " + value.dump() + " is no unsigned integer");
}

}  // namespace flashxdl::test
