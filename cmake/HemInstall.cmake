# make install: headers, libraries, the command, man pages, and files for pkg-config and CMake.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hem)

# The shared library stands alone; the static one brings its libraries along, hence its own file.
install(TARGETS hem EXPORT hemTargets)
install(TARGETS hem_static EXPORT hemStaticTargets)
install(TARGETS hem_command)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")

foreach(section 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

install(EXPORT hemTargets NAMESPACE hem:: DESTINATION ${package_dir})
install(EXPORT hemStaticTargets NAMESPACE hem:: DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hemConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/hemConfig.cmake
    ${PROJECT_BINARY_DIR}/hemConfigVersion.cmake DESTINATION ${package_dir})

# hem.pc finds the prefix from its own place, so that an installed copy may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
    OUTPUT_VARIABLE libdir_in_prefix)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE prefix_from_pc)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
    OUTPUT_VARIABLE includedir_in_prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hem.pc.in ${PROJECT_BINARY_DIR}/hem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
