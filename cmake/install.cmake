# What a program needs that uses the library: archive, shared library, headers, and how pkg-config and CMake find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(slabyard PROPERTIES EXPORT_NAME static)
set_target_properties(slabyard_shared PROPERTIES EXPORT_NAME shared)
install(TARGETS slabyard slabyard_shared EXPORT slabyard
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT slabyard NAMESPACE slabyard:: FILE slabyard-targets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)

install(DIRECTORY include/slabyard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES core/types.h core/platform.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slabyard/core)
install(FILES core/platform/user.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slabyard/core/platform)

configure_package_config_file(cmake/slabyard-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)

configure_file(cmake/slabyard.pc.in ${CMAKE_CURRENT_BINARY_DIR}/slabyard.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/slabyard.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
