# What nvcc compiles: the module, the tests, the examples and the benchmarks on GPUs.

# A device module: hem_add_cuda_module(target "architectures" folder). Only one name leaves it: the
# runtime inside is its own.
function(hem_add_cuda_module target architectures output)
    set(folder ${PROJECT_SOURCE_DIR}/src/device/cuda)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.cu)
    add_library(${target} MODULE ${sources} ${PROJECT_SOURCE_DIR}/src/base/platform.c)
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} PRIVATE hem_product_flags hem_cuda_flags Threads::Threads)
    set_target_properties(${target} PROPERTIES
        CUDA_ARCHITECTURES "${architectures}"
        C_VISIBILITY_PRESET hidden
        CUDA_VISIBILITY_PRESET hidden
        POSITION_INDEPENDENT_CODE ON
        LIBRARY_OUTPUT_DIRECTORY ${output}
        LINK_DEPENDS ${folder}/cuda.map)
    # What it has started of the driver does not end before the process.
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${folder}/cuda.map -Wl,--exclude-libs,ALL -Wl,-z,nodelete -Wl,-z,defs
        -Wl,--as-needed -static-libgcc -static-libstdc++)
endfunction()

# libhem_cuda.so, beside libhem.so.
function(hem_add_cuda_product)
    hem_add_cuda_module(hem_cuda "${HEM_CUDA_MODULE_ARCHITECTURES}" ${PROJECT_BINARY_DIR})
    install(TARGETS hem_cuda DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# The same with warps that stop at random beside barriers, for the tests gpu/delayed_*.
function(hem_add_cuda_delayed)
    hem_add_cuda_module(hem_cuda_delayed "${CMAKE_CUDA_ARCHITECTURES}" ${PROJECT_BINARY_DIR}/tests)
    target_compile_definitions(hem_cuda_delayed PRIVATE HEM_DEV_TEST_DELAY=1)
    # Lint reads each source once.
    set_target_properties(hem_cuda_delayed PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
endfunction()

# Registers and spills of each kernel of the library, in build/cuda-registers.txt.
function(hem_add_cuda_registers)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/cuda/*.cu)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS
        ${PROJECT_SOURCE_DIR}/include/hem/device/*.h ${PROJECT_SOURCE_DIR}/src/device/*.h)
    # The programs' architectures: one is enough to see what a change costs.
    list(GET CMAKE_CUDA_ARCHITECTURES 0 architecture)
    string(REGEX MATCH "^[0-9]+[a-z]?" architecture ${architecture})
    set(report ${PROJECT_BINARY_DIR}/cuda-registers.txt)
    add_custom_command(OUTPUT ${report}
        COMMAND ${CMAKE_COMMAND} -DNVCC=${HEM_NVCC} -DARCHITECTURE=${architecture}
            "-DSOURCES=${sources}" -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DREPORT=${report}
            -P ${PROJECT_SOURCE_DIR}/cmake/HemCudaRegisters.cmake
        DEPENDS ${sources} ${headers} ${PROJECT_SOURCE_DIR}/cmake/HemCudaRegisters.cmake
        COMMENT "Registers and spills of the library's kernels"
        VERBATIM)
    add_custom_target(hem_cuda_registers
        COMMAND ${CMAKE_COMMAND} -E cat ${report} DEPENDS ${report} VERBATIM)
endfunction()

# A program that nvcc compiles: hem_add_cuda_program(target folder "sources" libs...)
function(hem_add_cuda_program target folder sources)
    add_executable(${target} ${sources})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} PRIVATE ${ARGN} hem_cuda_flags Threads::Threads)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    add_dependencies(${target} hem_cuda)
endfunction()

# One CTest test on a GPU: hem_add_gpu_test(NAME timeout "labels" COMMAND ...), with the module that
# `gpu_module` names, or the library's own.
function(hem_add_gpu_test name timeout labels)
    if(NOT gpu_module)
        set(gpu_module hem_cuda)
    endif()
    hem_add_test(${name} ${timeout} "gpu;${labels}" ${ARGN})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
        HEM_DEVICE_MODULE=$<TARGET_FILE:${gpu_module}>)
    if(HEM_GPU_LOCK)
        set_property(TEST ${name} PROPERTY RESOURCE_LOCK gpu)
    endif()
endfunction()

# The twin of a test of tests/device on a GPU: the same source, by nvcc. tests/CMakeLists.txt calls
# this for each of them. Those labelled "legacy" run as two processes once more, as gpu/legacy_*, with memory
# that the library shows by legacy IPC.
function(hem_add_gpu_tests name source ranks modes timeout labels)
    set(tests ${PROJECT_SOURCE_DIR}/tests)
    if(NOT TARGET hem_gpu_harness)
        add_library(hem_gpu_harness OBJECT ${tests}/device/cuda.cu ${tests}/device/coll_form.c)
        target_link_libraries(hem_gpu_harness PUBLIC hem_harness hem_cuda_flags)
        target_compile_definitions(hem_gpu_harness PUBLIC HEM_DEV_CHECK=1)
    endif()
    # A file has one language in a folder, and this one is C already.
    set(twin ${CMAKE_CURRENT_BINARY_DIR}/gpu/${name}_test.cu)
    file(CONFIGURE OUTPUT ${twin} CONTENT "#include \"${source}\"\n" @ONLY)
    hem_add_cuda_program(gpu_${name} gpu ${twin} hem_gpu_harness)
    math(EXPR launcher_timeout "${timeout} - 5")
    foreach(count IN LISTS ranks)
        if("threads" IN_LIST modes)
            hem_add_gpu_test(gpu/${name}/threads-${count} ${timeout} "threads;${labels}"
                gpu_${name} --threads ${count})
        endif()
        if("processes" IN_LIST modes)
            hem_add_gpu_test(gpu/${name}/processes-${count} ${timeout} "processes;${labels}"
                hem_command run -n ${count} --timeout ${launcher_timeout}
                $<TARGET_FILE:gpu_${name}>)
        endif()
    endforeach()
    if("legacy" IN_LIST labels)
        set(test gpu/legacy_${name}/processes-2)
        hem_add_gpu_test(${test} ${timeout} "processes;${labels}"
            hem_command run -n 2 --timeout ${launcher_timeout} $<TARGET_FILE:gpu_${name}>)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT HEM_CUDA_VMM=0)
    endif()
    if("alone" IN_LIST modes)
        hem_add_gpu_test(gpu/${name}/alone ${timeout} "${labels}" gpu_${name})
    endif()
endfunction()

# The test of a twin once more, with so many ranks as threads: the program and the module are built with
# delays beside every barrier.
function(hem_add_gpu_delayed_tests name ranks timeout labels)
    if(NOT ranks)
        return()
    endif()
    set(twin ${CMAKE_CURRENT_BINARY_DIR}/gpu/${name}_test.cu)
    hem_add_cuda_program(gpu_delayed_${name} gpu ${twin} hem_gpu_harness)
    target_compile_definitions(gpu_delayed_${name} PRIVATE HEM_DEV_TEST_DELAY=1)
    add_dependencies(gpu_delayed_${name} hem_cuda_delayed)
    set(gpu_module hem_cuda_delayed)
    foreach(count IN LISTS ranks)
        hem_add_gpu_test(gpu/delayed_${name}/threads-${count} ${timeout}
            "threads;delayed;${labels}" gpu_delayed_${name} --threads ${count})
    endforeach()
endfunction()

# tests/gpu/*_test.cu: what has no twin on the host.
function(hem_add_gpu_own_tests)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/gpu/*_test.cu)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM program)
        string(REGEX REPLACE "_test$" "" name ${program})
        hem_read_test_comment(${source} 120)
        hem_add_cuda_program(gpu_${name} gpu ${source} hem_static hem_private)
        hem_add_gpu_test(gpu/${name} ${test_timeout} "${test_labels}" gpu_${name})
    endforeach()
endfunction()

# examples/cuda/NAME.cu, together with what is in the folder examples/cuda/NAME.
function(hem_add_cuda_examples)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/cuda/*.cu)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM name)
        file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/cuda/${name}/*.cu)
        hem_add_cuda_program(example_cuda_${name} examples/cuda "${source};${parts}" hem)
        set_target_properties(example_cuda_${name} PROPERTIES OUTPUT_NAME ${name})
        if(HEM_TESTS)
            hem_add_cuda_example_tests(${name})
        endif()
    endforeach()
endfunction()

# Every example as it is, at several numbers of ranks; it looks at its results itself. (Tests called
# example_NAME are of its kernel alone.)
function(hem_add_cuda_example_tests name)
    set(timeout 120)
    math(EXPR launcher_timeout "${timeout} - 5")
    foreach(count IN ITEMS 2 4 8)
        hem_add_gpu_test(gpu/examples/${name}/threads-${count} ${timeout} "threads;example"
            example_cuda_${name} ${count})
        hem_add_gpu_test(gpu/examples/${name}/processes-${count} ${timeout} "processes;example"
            hem_command run -n ${count} --timeout ${launcher_timeout}
            $<TARGET_FILE:example_cuda_${name}>)
    endforeach()
endfunction()

# tools/bench/gpu*.cu is one runner, beside the others.
function(hem_add_cuda_bench)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/gpu*.cu)
    if(NOT sources OR NOT TARGET hem_bench_common)
        return()
    endif()
    hem_add_cuda_program(hem_bench_gpu bench "${sources}" hem hem_bench_common ${CMAKE_DL_LIBS})
    target_include_directories(hem_bench_gpu PRIVATE ${PROJECT_SOURCE_DIR}/tools/bench)
    set_target_properties(hem_bench_gpu PROPERTIES
        OUTPUT_NAME hem-bench-gpu
        INSTALL_RPATH $ORIGIN/${lib_from_runner})
    install(TARGETS hem_bench_gpu DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hem)
endfunction()

# tools/bench/nvshmem.cu, where NVSHMEM is. Its device code has to be linked, and by nvcc.
function(hem_add_nvshmem_bench)
    set(NVSHMEM_ROOT "" CACHE PATH "Where NVSHMEM is, for hem bench gpu-signal and gpu-put")
    find_path(HEM_NVSHMEM_INCLUDE nvshmem.h HINTS ${NVSHMEM_ROOT}/include)
    find_library(HEM_NVSHMEM_DEVICE nvshmem_device HINTS ${NVSHMEM_ROOT}/lib)
    find_library(HEM_NVSHMEM_HOST NAMES nvshmem_host libnvshmem_host.so.3
        HINTS ${NVSHMEM_ROOT}/lib)
    mark_as_advanced(HEM_NVSHMEM_INCLUDE HEM_NVSHMEM_DEVICE HEM_NVSHMEM_HOST)
    if(NOT TARGET hem_bench_gpu OR NOT HEM_NVSHMEM_INCLUDE OR NOT HEM_NVSHMEM_DEVICE OR
       NOT HEM_NVSHMEM_HOST)
        return()
    endif()
    set(folder ${PROJECT_SOURCE_DIR}/tools/bench)
    hem_add_cuda_program(hem_bench_nvshmem bench
        "${folder}/nvshmem.cu;${folder}/gpu.cu;${folder}/gpu_data.cu;${folder}/gpu_measure.cu"
        hem hem_bench_common ${HEM_NVSHMEM_HOST} ${HEM_NVSHMEM_DEVICE} ${CMAKE_DL_LIBS})
    target_include_directories(hem_bench_nvshmem PRIVATE ${folder})
    target_include_directories(hem_bench_nvshmem SYSTEM PRIVATE ${HEM_NVSHMEM_INCLUDE})
    set_target_properties(hem_bench_nvshmem PROPERTIES
        OUTPUT_NAME hem-bench-nvshmem
        CUDA_SEPARABLE_COMPILATION ON
        INSTALL_RPATH $ORIGIN/${lib_from_runner})
    install(TARGETS hem_bench_nvshmem DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hem)
endfunction()

# At the end of the top folder, where everything else is known.
function(hem_add_cuda)
    hem_add_cuda_product()
    hem_add_cuda_registers()
    hem_add_cuda_examples()
    hem_add_cuda_bench()
    hem_add_nvshmem_bench()
    if(HEM_TESTS)
        hem_add_cuda_delayed()
        hem_add_gpu_own_tests()
    endif()
endfunction()
