# Archives and Debian packages by CPack (docs/Packages.md): `cpack -G TGZ`,
# `cpack -G DEB`, each in the build folder.
#
# A package is a group of components, a row each: its components, what it is, whether
# it is the same on every machine, and whether it is linked with LLVM's library.
function(fovea_package name)
  cmake_parse_arguments(ARG "ANY_MACHINE;LLVM" "TEXT" "COMPONENTS" ${ARGN})
  foreach(component IN LISTS ARG_COMPONENTS)
    set_property(GLOBAL APPEND PROPERTY FOVEA_PACKAGED ${component})
    set_property(GLOBAL PROPERTY FOVEA_PACKAGE_OF_${component} ${name})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY FOVEA_PACKAGES ${name})
  foreach(field TEXT ANY_MACHINE LLVM)
    set_property(GLOBAL PROPERTY FOVEA_PACKAGE_${field}_${name} "${ARG_${field}}")
  endforeach()
endfunction()

if(FOVEA_BUILD_RUNTIME)
  fovea_package(runtime COMPONENTS fovea_runtime fovea_aotriton fovea_runtime_tools
    TEXT "attention kernels for AMD GPUs: library, headers and commands")
  fovea_package(aotriton COMPONENTS fovea_aotriton_names
    TEXT "libraries and headers under AOTriton's names")
endif()
if(FOVEA_BUILD_COMPILER)
  fovea_package(compiler LLVM COMPONENTS fovea_compiler fovea_compiler_tools
    TEXT "ahead-of-time compiler of attention kernels for AMD GPUs")
endif()
if(FOVEA_BUILD_SIMULATOR)
  fovea_package(simulator LLVM COMPONENTS fovea_simulator fovea_simulator_tools
    TEXT "simulated AMD GPUs: HIP library, checkers, timing model")
endif()
if(FOVEA_BUILD_COMPILER AND FOVEA_BUILD_RUNTIME)
  fovea_package(kernels COMPONENTS fovea_kernels ANY_MACHINE
    TEXT "default attention kernels, and specs of libraries")
  foreach(chip IN LISTS FOVEA_IMAGE_CHIPS)
    fovea_package(images-amd-${chip} COMPONENTS fovea_images_${chip} ANY_MACHINE
      TEXT "attention kernels for ${chip}")
  endforeach()
endif()

set(CPACK_PACKAGE_NAME fovea)
set(CPACK_PACKAGE_VENDOR Fovea)
set(CPACK_PACKAGE_CONTACT "The Fovea developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
get_property(CPACK_COMPONENTS_ALL GLOBAL PROPERTY FOVEA_PACKAGED)
get_property(packages GLOBAL PROPERTY FOVEA_PACKAGES)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib"
  "${PROJECT_BINARY_DIR}/lib/fovea/sim")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/FoveaPackagesOf.cmake")

# Names as AOTriton's releases have them: what a file runs on stands in it, the C
# library's version as in manylinux; images are for a chip and any machine. ROCm's
# version is in none: HIP is opened when a program runs, ROCm 5's to 7's alike.
set(FOVEA_PACKAGE_MACHINE "" CACHE STRING
  "what archives' names say of the machine; empty: the C library of this one")
set(machine "${FOVEA_PACKAGE_MACHINE}")
if(NOT machine)
  execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE libc ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^glibc ([0-9]+)\\.([0-9]+).*" "_\\1_\\2" libc "${libc}")
  set(machine "linux${libc}_${CMAKE_SYSTEM_PROCESSOR}")
endif()
foreach(name IN LISTS packages)
  foreach(field TEXT ANY_MACHINE LLVM)
    get_property(${field} GLOBAL PROPERTY FOVEA_PACKAGE_${field}_${name})
  endforeach()
  string(TOUPPER "${name}" upper)
  set(file "fovea-${PROJECT_VERSION}-${machine}-${name}")
  if(ANY_MACHINE)
    set(file "fovea-${PROJECT_VERSION}-${name}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE all)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF)
  endif()
  # Programs look for it in the folder of Debian's LLVM, where dpkg-shlibdeps finds a
  # link that it takes for no package's.
  if(LLVM AND NOT FOVEA_LINK_STATIC)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "libllvm${FOVEA_LLVM_MAJOR}")
  endif()
  set(CPACK_ARCHIVE_${upper}_FILE_NAME "${file}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "fovea-${name}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${TEXT}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${TEXT}")
endforeach()

include(CPack)
foreach(name IN LISTS packages)
  cpack_add_component_group(${name})
endforeach()
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  get_property(package GLOBAL PROPERTY FOVEA_PACKAGE_OF_${component})
  cpack_add_component(${component} GROUP ${package})
endforeach()
