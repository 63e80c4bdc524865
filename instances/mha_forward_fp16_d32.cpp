// The built-in forward kernels of fp16 with head dimensions up to 32.
#include "flashxdl/device/mha_forward.hpp"

template struct flashxdl::device::MhaForwardFamily<flashxdl::DataType::fp16, 32>;
