# Gives hem::hem, the shared library, and hem::hem_static where hwloc is there to link it with.
include(${CMAKE_CURRENT_LIST_DIR}/hemTargets.cmake)

find_package(PkgConfig QUIET)
find_package(Threads QUIET)
if(PkgConfig_FOUND AND Threads_FOUND)
    pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc)
    if(HWLOC_FOUND)
        include(${CMAKE_CURRENT_LIST_DIR}/hemStaticTargets.cmake)
    endif()
endif()
