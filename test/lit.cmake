# The lit suite as two entries of ctest: as written, and once more with every
# aot-opt verifying that IR survives being printed and parsed.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(FOVEA_LIT NAMES lit lit.py HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED)
configure_file(lit.site.cfg.py.in "${CMAKE_CURRENT_BINARY_DIR}/lit.site.cfg.py" @ONLY)

set(lit ${FOVEA_LIT} -sv)
add_test(NAME lit COMMAND ${lit} "${CMAKE_CURRENT_BINARY_DIR}")
# Longest of all (seconds): a run that began it late would wait for it alone.
set_tests_properties(lit PROPERTIES LABELS lit COST 400)
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/Dialect")
  add_test(NAME lit-roundtrip COMMAND ${lit} -D roundtrip=1
    "${CMAKE_CURRENT_BINARY_DIR}/Dialect")
  # Both write below the same folder.
  set_tests_properties(lit-roundtrip PROPERTIES LABELS lit DEPENDS lit)
endif()
add_dependencies(check-fovea aot-opt aot-compile)
foreach(tool aot-time aot-tune aot-package aot-run aot-launch fovea-cts fovea_hipsim)
  if(TARGET ${tool})
    add_dependencies(check-fovea ${tool})
  endif()
endforeach()
