# fovea_add_command(NAME COMPONENT): what every command that is installed has beside
# its program: a manual page and bash completion, both made from its --help, and a
# --version that is the project's. All are of the component (docs/Packages.md).
find_package(Python3 3.9 COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "Without manual pages and bash completion: they need Python 3.9")
endif()
set(FOVEA_PAGES "${PROJECT_BINARY_DIR}/share")

function(fovea_add_command name component)
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    COMPONENT ${component})
  if(Python3_Interpreter_FOUND)
    set(script "${PROJECT_SOURCE_DIR}/tools/pages/tool_pages.py")
    set(man "${FOVEA_PAGES}/man/man1/${name}.1")
    set(completion "${FOVEA_PAGES}/bash-completion/completions/${name}")
    add_custom_command(OUTPUT "${man}" "${completion}"
      COMMAND Python3::Interpreter -B "${script}" "$<TARGET_FILE:${name}>"
        --man "${man}" --completion "${completion}"
      DEPENDS ${name} "${script}" VERBATIM
      COMMENT "Manual page and completion of ${name}")
    add_custom_target(${name}-pages ALL DEPENDS "${man}" "${completion}")
    install(FILES "${man}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
      COMPONENT ${component})
    install(FILES "${completion}"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
      COMPONENT ${component})
  endif()
  if(FOVEA_BUILD_TESTS)
    add_dependencies(check-fovea ${name}-pages)
    fovea_test_version(${name})
    # In bash, and by groff, without which this fails.
    add_test(NAME Pages_${name} COMMAND Python3::Interpreter -B
      "${PROJECT_SOURCE_DIR}/tools/pages/test_tool_pages.py"
      "$<TARGET_FILE:${name}>" "${man}" "${completion}")
    set_tests_properties(Pages_${name} PROPERTIES LABELS tools)
  endif()
endfunction()

# fovea_test_version(NAME): the program's --version is the project's.
function(fovea_test_version name)
  string(REPLACE "." "\\." version "${PROJECT_VERSION}")
  add_test(NAME Version_${name} COMMAND ${name} --version)
  set_tests_properties(Version_${name} PROPERTIES LABELS tools
    PASS_REGULAR_EXPRESSION "^${name} ${version}[, \n]")
endfunction()
