# fovea_pages(OUTPUT SCOPE HEADER NAME...): sources that hold NAME.html of this
# folder as strings SCOPE::kNAMEPage, which HEADER declares; each with the style
# and the functions that all pages share (tools/aot-time/Page.css, Page.js).
set(FOVEA_PAGE_PARTS "${PROJECT_SOURCE_DIR}/tools/aot-time")

function(fovea_pages output FOVEA_PAGE_SCOPE FOVEA_PAGE_HEADER)
  foreach(part css js)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
      "${FOVEA_PAGE_PARTS}/Page.${part}")
    file(READ "${FOVEA_PAGE_PARTS}/Page.${part}" shared_${part})
  endforeach()
  set(pages)
  foreach(FOVEA_PAGE ${ARGN})
    set(page "${CMAKE_CURRENT_SOURCE_DIR}/${FOVEA_PAGE}.html")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
    file(READ "${page}" FOVEA_PAGE_TEXT)
    string(REPLACE "@STYLE@" "${shared_css}" FOVEA_PAGE_TEXT "${FOVEA_PAGE_TEXT}")
    string(REPLACE "@SCRIPT@" "${shared_js}" FOVEA_PAGE_TEXT "${FOVEA_PAGE_TEXT}")
    configure_file("${FOVEA_PAGE_PARTS}/Page.cpp.in" ${FOVEA_PAGE}Page.cpp @ONLY)
    list(APPEND pages "${CMAKE_CURRENT_BINARY_DIR}/${FOVEA_PAGE}Page.cpp")
  endforeach()
  set(${output} "${pages}" PARENT_SCOPE)
endfunction()
