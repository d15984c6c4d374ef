# Unit tests (GoogleTest) and the `check-fovea` target.
find_package(GTest REQUIRED)
include(GoogleTest)

# All tests, through ctest.
add_custom_target(check-fovea
  COMMAND ${CMAKE_CTEST_COMMAND} --output-on-failure
  USES_TERMINAL COMMENT "Running all tests")

# fovea_add_unittest(NAME SOURCES... [LIBS lib...] [LLVM | MLIR] [COMPUTES] [SEPARATE]
#                    [LABEL label])
# One GoogleTest binary, one ctest entry. LLVM, MLIR: the sources include its headers.
# COMPUTES: they compute for longer than they take to be optimised. SEPARATE: they have
# local names of each other, and are no unity build.
function(fovea_add_unittest name)
  cmake_parse_arguments(ARG "LLVM;MLIR;COMPUTES;SEPARATE" "LABEL" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_LLVM OR ARG_MLIR)
    fovea_llvm_options(${name})
    # GoogleTest's own headers want RTTI only where LLVM has it.
  endif()
  target_link_libraries(${name} PRIVATE fovea_options ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  # A third of a file's compilation is GoogleTest and the containers; with MLIR's
  # headers they are most of it.
  list(LENGTH ARG_UNPARSED_ARGUMENTS count)
  if(NOT ARG_COMPUTES)
    # What most tests compute is in libraries, and to optimise their own code takes half of
    # their compilation and more.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(ARG_MLIR)
    set(headers FoveaTestPrecompiled)
    if(ARG_COMPUTES)
      set(headers FoveaPrecompiled)
    endif()
    target_precompile_headers(${name} REUSE_FROM ${headers})
    # As the libraries, for which the headers were compiled.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIC})
  endif()
  if(ARG_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  get_target_property(unity ${name} UNITY_BUILD)
  if(NOT ARG_MLIR AND count GREATER 3 AND NOT unity)
    target_precompile_headers(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h$<ANGLE-R>>")
  endif()
  # GCC warns of what GoogleTest's macros are made of.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-else>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/bin")
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_LABEL)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}")
  endif()
  add_dependencies(check-fovea ${name})
endfunction()

# fovea_leave_out(TEST CASES): does not run CASES of a GoogleTest binary, which cannot pass
# in a build with a sanitizer, as where memory is limited, of which it takes a share.
function(fovea_leave_out test cases)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=-${cases}")
endfunction()
