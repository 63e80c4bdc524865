// The built-in forward kernels of bf16 with head dimensions up to 64.
#include "flashxdl/device/mha_forward.hpp"

template struct flashxdl::device::MhaForwardFamily<flashxdl::DataType::bf16, 64>;
