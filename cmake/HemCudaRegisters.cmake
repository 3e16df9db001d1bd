# Compiles each source with the assembler's report on and keeps what it says of each kernel:
#
#   cmake -DNVCC=... -DARCHITECTURE=90 -DSOURCES=... -DSOURCE_DIR=... -DREPORT=... -P this
set(report "registers and spills of the library's kernels, sm_${ARCHITECTURE}\n")
foreach(source IN LISTS SOURCES)
    execute_process(
        COMMAND ${NVCC} -arch=sm_${ARCHITECTURE} -std=c++17 -O3 --expt-relaxed-constexpr
            -I${SOURCE_DIR}/src -I${SOURCE_DIR}/include -Xptxas -v
            -cubin -o ${REPORT}.cubin ${source}
        OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
    file(REMOVE ${REPORT}.cubin)
    if(failed)
        message(FATAL_ERROR "${source}:\n${said}")
    endif()
    string(REPLACE "\n" ";" lines "${said}")
    set(name "")
    foreach(line IN LISTS lines)
        if(line MATCHES "Compiling entry function '([^']+)'")
            set(name ${CMAKE_MATCH_1})
        elseif(line MATCHES "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+)")
            set(spills "stack ${CMAKE_MATCH_1} spilled ${CMAKE_MATCH_2} reloaded ${CMAKE_MATCH_3}")
        elseif(name AND line MATCHES "Used ([0-9]+) registers")
            string(APPEND report "${name}: registers ${CMAKE_MATCH_1} ${spills}\n")
            set(name "")
        endif()
    endforeach()
endforeach()
file(WRITE ${REPORT} "${report}")
