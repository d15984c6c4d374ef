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
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  set(LLVM_RUNTIME_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/bin")
  set(LLVM_LIBRARY_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/lib")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
endif()
