# What a program needs that uses the library, in any of its forms: archives, shared libraries, headers, manual pages, and how
# pkg-config and CMake find them. All of it can be moved as a whole: every path in it is relative to itself.
#
#   cmake --install BUILD --component library [--prefix DIR]
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)

set(installed slabyard slabyard_shared)
set_target_properties(slabyard PROPERTIES EXPORT_NAME static)
set_target_properties(slabyard_shared PROPERTIES EXPORT_NAME shared)
if(TARGET slabyard_malloc)
  list(APPEND installed slabyard_malloc slabyard_malloc_static)
  set_target_properties(slabyard_malloc PROPERTIES EXPORT_NAME malloc)
  set_target_properties(slabyard_malloc_static PROPERTIES EXPORT_NAME malloc_static)
endif()
install(TARGETS ${installed} EXPORT slabyard
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT slabyard NAMESPACE slabyard:: FILE slabyard-targets.cmake DESTINATION ${package_dir})

# Where gdb looks for the commands that go with a library (debugger/).
if(TARGET slabyard_malloc)
  install(FILES debugger/libslabyard-malloc.so-gdb.py DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

install(DIRECTORY include/slabyard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(cmake/slabyard-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config: the prefix as seen from the directory of the .pc files.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(library slabyard slabyard-malloc)
  configure_file(cmake/${library}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# Manual pages. One that describes several names (.Nm above .Nd, in mdoc) is found under each of them.
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.[1-9])
foreach(page IN LISTS pages)
  get_filename_component(file ${page} NAME)
  string(REGEX REPLACE ".*\\.([1-9])$" "\\1" section ${file})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  file(STRINGS ${page} names REGEX "^\\.Nm [a-z_]")
  foreach(name IN LISTS names)
    string(REGEX REPLACE "^\\.Nm ([^ ]+).*" "\\1" name ${name})
    set(link ${CMAKE_CURRENT_BINARY_DIR}/man/${name}.${section})
    if(NOT file STREQUAL "${name}.${section}")
      file(WRITE ${link} ".so man${section}/${file}\n")
      install(FILES ${link} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endif()
  endforeach()
endforeach()
