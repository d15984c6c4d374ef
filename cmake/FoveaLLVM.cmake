# Finds LLVM, MLIR and lld 22. CMAKE_PREFIX_PATH (or LLVM_DIR and MLIR_DIR) wins;
# otherwise the place where Debian's packages put them is tried.
set(FOVEA_LLVM_MAJOR 22)
if(EXISTS "/usr/lib/llvm-${FOVEA_LLVM_MAJOR}")
  list(APPEND CMAKE_PREFIX_PATH "/usr/lib/llvm-${FOVEA_LLVM_MAJOR}")
endif()
# LLVM's version file accepts a request of the same major.minor only, so any is
# found first and its major number compared here.
find_package(LLVM CONFIG QUIET)
if(NOT LLVM_FOUND OR NOT LLVM_VERSION_MAJOR EQUAL FOVEA_LLVM_MAJOR)
  message(FATAL_ERROR "Fovea needs LLVM ${FOVEA_LLVM_MAJOR}; found: "
    "'${LLVM_PACKAGE_VERSION}' (${LLVM_DIR}). Install it with "
    "scripts/install-deps.sh, or point CMAKE_PREFIX_PATH at its prefix.")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
if(NOT "AMDGPU" IN_LIST LLVM_TARGETS_TO_BUILD)
  message(FATAL_ERROR "The LLVM in ${LLVM_DIR} was built without the AMDGPU target.")
endif()
if(FOVEA_BUILD_COMPILER)
  find_package(MLIR CONFIG REQUIRED HINTS "${LLVM_DIR}/../mlir")
  find_package(LLD CONFIG REQUIRED HINTS "${LLVM_DIR}/../lld")
  message(STATUS "MLIR in ${MLIR_DIR}")
  # Traits have the names that MLIR's own compiler gave them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    get_target_property(library MLIR LOCATION)
    execute_process(COMMAND grep -qaF "OpTrait::Elementwise<Empty>" "${library}"
      RESULT_VARIABLE found)
    if(found EQUAL 0)
      set(FOVEA_TRAIT_NAMES "${PROJECT_SOURCE_DIR}/lib/GCC")
      message(STATUS "MLIR was built by Clang: traits by its names")
    endif()
  endif()
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  set(LLVM_RUNTIME_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/bin")
  set(LLVM_LIBRARY_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/lib")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
endif()

# What the project's targets link of LLVM, MLIR and lld: the shared libraries, or all
# archives, of which the linker takes what is used. An archive's own list of
# libraries names the shared ones, so archives go by their paths.
set(FOVEA_LLVM_ARCHIVES "")
add_library(fovea_llvm INTERFACE)
add_library(fovea_mlir INTERFACE)
add_library(fovea_lld INTERFACE)
if(FOVEA_LINK_STATIC)
  if(NOT FOVEA_HAVE_LLD) # the archives need each other in any order
    message(FATAL_ERROR "FOVEA_LINK_STATIC=ON links LLVM's archives with lld, which "
      "${CMAKE_CXX_COMPILER} does not find.")
  endif()
  # fovea_archives(TARGET LIBRARIES...): TARGET links the archives of these.
  function(fovea_archives target)
    set(files)
    foreach(library IN LISTS ARGN)
      # LLVM's lists have some that distributions do not install.
      if(TARGET ${library})
        get_target_property(type ${library} TYPE)
        get_target_property(file ${library} LOCATION)
        if(type STREQUAL "STATIC_LIBRARY" AND EXISTS "${file}")
          list(APPEND files "${file}")
        endif()
      endif()
    endforeach()
    if(NOT files)
      message(FATAL_ERROR "FOVEA_LINK_STATIC=ON, but the LLVM in ${LLVM_DIR} has no "
        "archives for ${target}.")
    endif()
    target_link_libraries(${target} INTERFACE ${files})
    set(FOVEA_LLVM_ARCHIVES ${FOVEA_LLVM_ARCHIVES} ${files} PARENT_SCOPE)
  endfunction()
  set(FOVEA_OTHER_TARGETS)
  foreach(name IN LISTS LLVM_TARGETS_TO_BUILD)
    if(NOT name STREQUAL "AMDGPU")
      string(APPEND FOVEA_OTHER_TARGETS "FOVEA_NO_TARGET(${name})\n")
    endif()
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/LLVMStatic.c.in"
    "${PROJECT_BINARY_DIR}/LLVMStatic.c" @ONLY)
  add_library(fovea_llvm_static STATIC "${PROJECT_BINARY_DIR}/LLVMStatic.c")
  # Ahead of LLVM's: of two archives with a symbol the first is taken.
  target_link_libraries(fovea_llvm INTERFACE "$<TARGET_FILE:fovea_llvm_static>")
  add_dependencies(fovea_llvm fovea_llvm_static)
  fovea_archives(fovea_llvm ${LLVM_AVAILABLE_LIBS})
  if(FOVEA_BUILD_COMPILER)
    get_property(mlir_libraries GLOBAL PROPERTY MLIR_ALL_LIBS)
    fovea_archives(fovea_mlir ${mlir_libraries})
    fovea_archives(fovea_lld lldELF lldCommon)
  endif()
  fovea_find_library(FOVEA_ZLIB_LIBRARY z)
  fovea_find_library(FOVEA_ZSTD_LIBRARY zstd)
  # libgcc's conversions of fp16 are in its shared library from GCC 12 on only.
  target_link_libraries(fovea_llvm INTERFACE
    ${FOVEA_ZLIB_LIBRARY} ${FOVEA_ZSTD_LIBRARY} ${CMAKE_DL_LIBS} gcc)
else()
  target_link_libraries(fovea_llvm INTERFACE LLVM)
  if(FOVEA_BUILD_COMPILER)
    target_link_libraries(fovea_mlir INTERFACE MLIR)
    target_link_libraries(fovea_lld INTERFACE lldELF lldCommon)
  endif()
endif()
