# Registers tests. A test says in a comment how it wants to be run, with any of these keys:
#
#   hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60 labels=kill delayed=2
#
# `delayed`: tests of tests/device only; with so many ranks, as threads, once more on a device whose warps
# are stopped at random.
#
# The comment is read at configure time, so that the test's own file stays the one place to look.

# Sets test_ranks, test_modes, test_timeout, test_labels and test_delayed in the caller, from the
# defaults given and the comment of `source`. An unknown key is an error: a typing mistake must not lose a test.
function(hem_read_test_comment source default_timeout)
    set(test_ranks 2)
    set(test_modes processes threads)
    set(test_timeout ${default_timeout})
    set(test_labels "")
    set(test_delayed "")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})

    file(STRINGS ${source} line REGEX "hem-test:" LIMIT_COUNT 1)
    if(line)
        string(REGEX REPLACE ".*hem-test:" "" line "${line}")
        string(REPLACE "*/" "" line "${line}")
        separate_arguments(settings UNIX_COMMAND "${line}")
        foreach(setting IN LISTS settings)
            if(NOT setting MATCHES "^(ranks|modes|timeout|labels|delayed)=(.+)$")
                message(FATAL_ERROR "${source}: \"${setting}\" is no setting of hem-test")
            endif()
            string(REPLACE "," ";" test_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
        endforeach()
    endif()

    math(EXPR test_timeout "${test_timeout} * ${HEM_TEST_TIMEOUT_FACTOR}")
    return(PROPAGATE test_ranks test_modes test_timeout test_labels test_delayed)
endfunction()

# Adds one CTest test: hem_add_test(NAME timeout "labels" COMMAND ...). Those of deaths count milliseconds, and have
# the machine for themselves also where others run several at a time.
function(hem_add_test name timeout labels)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES
        TIMEOUT ${timeout}
        LABELS "${labels}"
        SKIP_RETURN_CODE 77
        ENVIRONMENT "${HEM_TEST_ENVIRONMENT}")
    if(name MATCHES "death|kill")
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

set(HEM_TEST_ENVIRONMENT
    HEM=$<TARGET_FILE:hem_command>
    HEM_BUILD=${PROJECT_BINARY_DIR}
    HEM_SOURCE=${PROJECT_SOURCE_DIR}
    HEM_TEST_CC=${CMAKE_C_COMPILER}
    HEM_TEST_SANITIZE=${HEM_SANITIZE}
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    "TSAN_OPTIONS=halt_on_error=1 second_deadlock_stack=1")
