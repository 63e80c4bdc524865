/// Uses the package without a kernel: HIP's runtime and the arguments are there.

#include <cstdio>
#include <flashxdl/core/problem.hpp>
#include <flashxdl/hip.hpp>

int main() {
  const flashxdl::MhaForwardArgs args{.head_dim = 64};
  int devices = 0;
  const hipError_t error = hipGetDeviceCount(&devices);
  std::printf("scale %g, %d devices (%s)\n", static_cast<double>(args.scale_or_default()), devices,
              hipGetErrorName(error));
  return args.scale_or_default() == 0.125f ? 0 : 1;
}
