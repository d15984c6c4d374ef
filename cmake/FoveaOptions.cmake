# Compile options shared by every component.
add_library(fovea_options INTERFACE)
target_compile_options(fovea_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
include(CheckLinkerFlag)
check_linker_flag(CXX "-fuse-ld=lld" FOVEA_HAVE_LLD)
if(FOVEA_HAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# What finds faults of the project itself; scripts/test.sh has a switch for each.
option(FOVEA_ASSERTIONS "libstdc++'s checks, and assert() in what includes no header of LLVM" OFF)
set(FOVEA_SANITIZE "" CACHE STRING "of address, undefined, thread, with commas between them: instrument all targets")
if(FOVEA_ASSERTIONS)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  foreach(language C CXX)
    string(REGEX REPLACE "(^| )-DNDEBUG( |$)" " " CMAKE_${language}_FLAGS_${type}
      "${CMAKE_${language}_FLAGS_${type}}")
  endforeach()
endif()
if(FOVEA_SANITIZE)
  if(NOT FOVEA_SANITIZE MATCHES "^(address|undefined|thread)(,(address|undefined|thread))*$"
      OR (FOVEA_SANITIZE MATCHES "address" AND FOVEA_SANITIZE MATCHES "thread"))
    message(FATAL_ERROR "FOVEA_SANITIZE is '${FOVEA_SANITIZE}', and not of address, "
      "undefined, thread, with commas between them; of address and thread one.")
  endif()
  # -O1: instrumented code compiles several times as long at -O3.
  add_compile_options(-O1 -g1 -fno-omit-frame-pointer "-fsanitize=${FOVEA_SANITIZE}"
    -fno-sanitize-recover=all)
  # HIP's functions are found by name and called with structures of our own in the
  # place of its many versions' (runtime/src/HipApi.cpp), which is no fault here.
  add_compile_options("$<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>")
  add_link_options("-fsanitize=${FOVEA_SANITIZE}")
endif()

# For wheels and archives (docs/Packages.md): files that need nothing but the C library,
# libgcc and, where exceptions pass (fovea_exceptions), libstdc++.so.6 for these, and that
# show nothing of what they have. How old a C library is manylinux.sh's matter.
option(FOVEA_LINK_STATIC
  "link SQLite, zstd, LLVM, MLIR, lld and libstdc++ from archives, and hide them" OFF)
if(FOVEA_LINK_STATIC)
  # Hidden by the version scripts that all shared libraries have.
  add_link_options("LINKER:--gc-sections" "LINKER:-z,defs" -static-libstdc++)
endif()

# fovea_find_library(VARIABLE NAME): a library, or its archive with FOVEA_LINK_STATIC.
function(fovea_find_library variable name)
  set(names ${name})
  if(FOVEA_LINK_STATIC)
    set(names "${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX}")
  endif()
  find_library(${variable} NAMES ${names} REQUIRED)
endfunction()

# Options of the targets that include LLVM headers.
#
# A distribution's LLVM is built without assertions; sizeof(llvm::Statistic) and
# other layouts depend on NDEBUG, so a target that disagrees with the library
# reads garbage. NDEBUG therefore follows LLVM, not our build type. What must
# hold in every build is checked by FOVEA_CHECK or a diagnostic, not by assert.
function(fovea_llvm_options target)
  # Ahead of MLIR's: a header of the same name (FoveaLLVM.cmake).
  target_include_directories(${target} SYSTEM PRIVATE ${FOVEA_TRAIT_NAMES}
    ${LLVM_INCLUDE_DIRS})
  if(MLIR_INCLUDE_DIRS)
    target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS})
  endif()
  if(NOT LLVM_ENABLE_ASSERTIONS)
    target_compile_definitions(${target} PRIVATE NDEBUG)
  endif()
  if(NOT LLVM_ENABLE_RTTI)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  endif()
  target_link_libraries(${target} PRIVATE fovea_options)
endfunction()

# fovea_command_line(PROGRAM...): what they have of their own reads a command line once, by
# templates: for size, which takes two thirds of the time to compile.
function(fovea_command_line)
  foreach(program IN LISTS ARGN)
    # GCC has -Oz from 12 on.
    target_compile_options(${program} PRIVATE
      $<$<NOT:$<CONFIG:Debug>>:$<IF:$<CXX_COMPILER_ID:Clang>,-Oz,-Os>>)
  endforeach()
endfunction()
