# How everything in this tree is compiled. Nothing here reaches a project that uses Hem.

if(PROJECT_IS_TOP_LEVEL)
    if(NOT CMAKE_BUILD_TYPE)
        set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
    endif()
    # CMake's own defaults add -DNDEBUG; here HEM_ASSERT decides that.
    set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
    if(HEM_SANITIZE)
        # Reports name functions and lines; more would make hundreds of programs slow to link.
        set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
    endif()
    set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Flags of every target of Hem.
add_library(hem_flags INTERFACE)
target_compile_definitions(hem_flags INTERFACE _GNU_SOURCE)
# nvcc has its own: hem_cuda_flags.
target_compile_options(hem_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes>)
# With a sanitizer gcc folds fewer constants and then warns of conversions that do not happen.
if(HEM_WERROR AND NOT HEM_SANITIZE)
    target_compile_options(hem_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()

# Library and command only: an assertion in a test is never compiled out.
add_library(hem_product_flags INTERFACE)
target_link_libraries(hem_product_flags INTERFACE hem_flags)
target_compile_definitions(hem_product_flags INTERFACE $<$<NOT:$<BOOL:${HEM_ASSERT}>>:NDEBUG>)

if(HEM_SANITIZE)
    set(sanitizer_flags -fsanitize=${HEM_SANITIZE} -fno-sanitize-recover=all)
    add_compile_options(${sanitizer_flags} -fno-omit-frame-pointer)
    add_link_options(${sanitizer_flags})
endif()

if(HEM_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "HEM_FUZZ needs clang; configure with `cmake --preset fuzz`")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
