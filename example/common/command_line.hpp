#pragma once
/// \file
/// The command line of the examples.

#include <optional>

#include "common/backward_config.hpp"
#include "common/forward_config.hpp"

namespace flashxdl::example {

/// Overrides `config` by the command line. If the program should end here (--help, or an error that
/// was printed), returns its exit status.
std::optional<int> parse_command_line(ForwardConfig& config, int argc, const char* const* argv);
std::optional<int> parse_command_line(BackwardConfig& config, int argc, const char* const* argv);

}  // namespace flashxdl::example
