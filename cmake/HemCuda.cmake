# The CUDA module and whatever else nvcc compiles. All of it is optional: without nvcc the rest is
# built as before, with one line that says so.
#
#   HEM_CUDA                AUTO: if there is an nvcc; ON: it must be there; OFF
#   HEM_CUDA_ARCHITECTURES  of everything, such as 90, to build for one GPU only
#   HEM_GPU_LOCK            OFF: as many tests run on the GPU at a time as ctest -j says
#
# nvcc is $CUDACXX, or in the PATH, or in /usr/local/cuda/bin.

set(HEM_CUDA AUTO CACHE STRING "Build the CUDA module: AUTO, ON or OFF")
set_property(CACHE HEM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HEM_CUDA_ARCHITECTURES "" CACHE STRING
    "Compute capabilities to build for, such as 90; empty: all that Hem supports")
option(HEM_GPU_LOCK "Tests on a GPU run one at a time" ON)
set(HEM_CUDA_FOUND OFF)

# What CUDA 12.4 cannot do without, and what the module is built for as far as nvcc knows it.
set(cuda_oldest 12.4)
set(cuda_wanted 75 80 86 89 90 100 120)

# Say why there will be no module; with HEM_CUDA=ON that is an error.
macro(hem_no_cuda reason)
    if(HEM_CUDA STREQUAL ON)
        message(FATAL_ERROR "HEM_CUDA=ON: ${reason}")
    endif()
    message(NOTICE "The CUDA module is left out: ${reason}")
endmacro()

# Sets HEM_NVCC, and nvcc_version in the caller; both empty if there is none that is good.
function(hem_find_nvcc)
    find_program(HEM_NVCC NAMES $ENV{CUDACXX} nvcc PATHS /usr/local/cuda/bin
        DOC "The CUDA compiler")
    set(nvcc_version "")
    if(HEM_NVCC)
        execute_process(COMMAND ${HEM_NVCC} --version
            OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
        if(NOT failed AND said MATCHES "release ([0-9]+\\.[0-9]+)")
            set(nvcc_version ${CMAKE_MATCH_1})
        endif()
    endif()
    return(PROPAGATE nvcc_version)
endfunction()

# All of `cuda_wanted` that this nvcc compiles for as machine code, and PTX: of the newest, for GPUs that are newer
# still, and of the oldest, for those in between that none of the machine code is for (of 11.0, say).
function(hem_cuda_architectures)
    execute_process(COMMAND ${HEM_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+" known "${known}")
    set(architectures "")
    foreach(architecture IN LISTS cuda_wanted)
        if(architecture IN_LIST known)
            list(APPEND architectures ${architecture}-real)
            set(newest ${architecture})
        endif()
    endforeach()
    list(GET architectures 0 oldest)
    string(REPLACE real virtual oldest ${oldest})
    list(APPEND architectures ${oldest} ${newest}-virtual)
    list(REMOVE_DUPLICATES architectures)
    return(PROPAGATE architectures)
endfunction()

# Programs are for this machine's GPUs; where there is none they need only compile.
function(hem_cuda_program_architectures)
    set(architectures "")
    find_program(HEM_NVIDIA_SMI nvidia-smi)
    if(HEM_NVIDIA_SMI)
        execute_process(COMMAND ${HEM_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
            OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed TIMEOUT 20)
        if(NOT failed)
            string(REGEX MATCHALL "[0-9]+\\.[0-9]+" architectures "${said}")
            string(REPLACE "." "" architectures "${architectures}")
            list(REMOVE_DUPLICATES architectures)
        endif()
    endif()
    if(NOT architectures)
        set(architectures 90)
    endif()
    return(PROPAGATE architectures)
endfunction()

if(HEM_CUDA STREQUAL OFF)
elseif(HEM_SANITIZE OR HEM_FUZZ)
    # Sanitizers know nothing of what nvcc compiles; the stand-in is tested under them instead.
    if(HEM_CUDA STREQUAL ON)
        hem_no_cuda("it is not built with sanitizers")
    endif()
else()
    hem_find_nvcc()
    if(NOT HEM_NVCC)
        hem_no_cuda("there is no nvcc in CUDACXX, the PATH or /usr/local/cuda/bin")
    elseif(NOT nvcc_version)
        hem_no_cuda("${HEM_NVCC} --version says nothing")
    elseif(nvcc_version VERSION_LESS cuda_oldest)
        hem_no_cuda("${HEM_NVCC} is of CUDA ${nvcc_version}, older than ${cuda_oldest}")
    else()
        if(HEM_CUDA_ARCHITECTURES)
            set(architectures ${HEM_CUDA_ARCHITECTURES})
            set(program_architectures ${HEM_CUDA_ARCHITECTURES})
        else()
            hem_cuda_program_architectures()
            set(program_architectures ${architectures})
            hem_cuda_architectures()
        endif()
        # A compiler that does not work, for want of a host compiler say, is as good as none.
        set(CMAKE_CUDA_ARCHITECTURES ${program_architectures})
        set(ENV{CUDACXX} ${HEM_NVCC})
        if(NOT CMAKE_CUDA_COMPILER)
            unset(CMAKE_CUDA_COMPILER CACHE)
        endif()
        include(CheckLanguage)
        check_language(CUDA)
        if(CMAKE_CUDA_COMPILER)
            set(HEM_CUDA_FOUND ON)
        else()
            hem_no_cuda("${HEM_NVCC} does not work here")
        endif()
    endif()
endif()

if(NOT HEM_CUDA_FOUND)
    function(hem_add_cuda)
    endfunction()
    return()
endif()

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS ON)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -lineinfo")
set(CMAKE_CUDA_FLAGS_DEBUG "-O0 -g -lineinfo")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(HEM_CUDA_MODULE_ARCHITECTURES ${architectures})
list(JOIN architectures " " shown)
message(STATUS "The CUDA module is built by CUDA ${nvcc_version} for ${shown}")

# Flags of everything that nvcc compiles here. Host code inside of it is C that also is C++.
add_library(hem_cuda_flags INTERFACE)
target_compile_options(hem_cuda_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:
    -Xcompiler=-Wall,-Wextra,-Wno-unused-function
    -Wno-deprecated-gpu-targets --expt-relaxed-constexpr
    $<$<BOOL:${HEM_WERROR}>:-Werror=all-warnings>>)
target_include_directories(hem_cuda_flags SYSTEM INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}>)

include(HemCudaTargets)
