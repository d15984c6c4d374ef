# The target `site`: manual, references of the interfaces, and what pages link to, as
# one folder of HTML, build/site/site. Needs MkDocs and Doxygen; Graphviz adds Doxygen's
# pictures of who includes whom.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
find_package(Doxygen QUIET)
find_program(FOVEA_MKDOCS mkdocs)
if(NOT FOVEA_MKDOCS OR NOT DOXYGEN_FOUND OR NOT Python3_FOUND)
  message(STATUS "No target `site`: it needs mkdocs and doxygen")
  return()
endif()
set(FOVEA_SITE_FOLDER "${PROJECT_BINARY_DIR}/site")
set(FOVEA_HAVE_DOT NO)
if(DOXYGEN_DOT_FOUND)
  set(FOVEA_HAVE_DOT YES)
endif()
configure_file(docs/site/Doxyfile.in "${FOVEA_SITE_FOLDER}/Doxyfile" @ONLY)
configure_file(docs/site/mkdocs.yml "${FOVEA_SITE_FOLDER}/mkdocs.yml" COPYONLY)

add_custom_target(site
  COMMAND Python3::Interpreter -B "${PROJECT_SOURCE_DIR}/docs/site/collect.py"
    "${PROJECT_SOURCE_DIR}" "${FOVEA_SITE_FOLDER}/pages" "${PROJECT_BINARY_DIR}/docs"
  COMMAND "${FOVEA_MKDOCS}" build --quiet --strict -f "${FOVEA_SITE_FOLDER}/mkdocs.yml"
  COMMAND Doxygen::doxygen "${FOVEA_SITE_FOLDER}/Doxyfile"
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  USES_TERMINAL VERBATIM
  COMMENT "Writing ${FOVEA_SITE_FOLDER}/site/index.html")
add_dependencies(site fovea-docs)
if(FOVEA_BUILD_TESTS)
  # Every link of every page leads somewhere, headings included. What TableGen knows
  # is of the build.
  add_dependencies(check-fovea fovea-docs)
  add_test(NAME Site COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target site)
  set_tests_properties(Site PROPERTIES LABELS tools)
endif()
