# The built-in kernels, compiled once for all tests and examples: every source in instances/.

file(GLOB instance_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/instances/*.cpp")
if(instance_sources)
  add_library(flashxdl_instances STATIC ${instance_sources})
  target_link_libraries(flashxdl_instances PUBLIC flashxdl PRIVATE flashxdl_own_code)
  # Whoever links them does not compile them again.
  target_compile_definitions(flashxdl_instances INTERFACE FLASHXDL_PREBUILT_INSTANCES)
  target_compile_definitions(flashxdl_instances PUBLIC FLASHXDL_PREBUILT_INSTANCES)
else()
  add_library(flashxdl_instances INTERFACE)
  target_link_libraries(flashxdl_instances INTERFACE flashxdl)
endif()
