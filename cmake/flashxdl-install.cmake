# Headers, CMake package and licence. Everything is relative to the prefix, which may be moved.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/flashxdl")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/flashxdl" TYPE INCLUDE
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS flashxdl_headers EXPORT flashxdl-targets)
install(EXPORT flashxdl-targets NAMESPACE flashxdl:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/flashxdl-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/flashxdl-config.cmake" INSTALL_DESTINATION "${package_dir}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/flashxdl-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/flashxdl-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/flashxdl-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/flashxdl-machine.cmake"
  DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/flashxdl")
