#pragma once
/// \file
/// Atomic operations on memory that several lanes, on several OS threads, update. Relaxed, as the
/// GPU's; each returns the value found before.

#include <atomic>
#include <concepts>
#include <type_traits>

namespace flashxdl::host {

template <class T>
concept Arithmetic = std::integral<T> || std::floating_point<T>;

template <Arithmetic T>
inline T atomic_add(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}

template <Arithmetic T>
inline T atomic_exchange(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}

/// Stores `desired` where `*address` is `expected`.
template <std::integral T>
inline T atomic_compare_exchange(T* address, std::type_identity_t<T> expected,
                                 std::type_identity_t<T> desired) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, desired,
                                                       std::memory_order_relaxed);
  return expected;
}

/// Stores `update(old)`.
template <Arithmetic T, class Update>
inline T atomic_update(T* address, Update update) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (
      !target.compare_exchange_weak(old, static_cast<T>(update(old)), std::memory_order_relaxed)) {
  }
  return old;
}

template <Arithmetic T>
inline T atomic_max(T* address, std::type_identity_t<T> value) {
  return atomic_update(address, [value](T old) { return old < value ? value : old; });
}

template <Arithmetic T>
inline T atomic_min(T* address, std::type_identity_t<T> value) {
  return atomic_update(address, [value](T old) { return value < old ? value : old; });
}

}  // namespace flashxdl::host
