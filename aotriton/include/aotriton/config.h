//===- config.h - version and names of the interface ------------*- C++ -*-===//
//
// Which version of AOTriton's interface the headers of this folder declare. The
// parameter structures and LazyTensor differ between 0.10, 0.11, 0.12 and 0.14,
// so a program defines AOTRITON_VERSION_MINOR as 10u to 14u, or takes the
// default, and links the library of that version (docs/AOTriton.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_CONFIG_H
#define FOVEA_AOTRITON_CONFIG_H

#define AOTRITON_VERSION_MAJOR 0u
#ifndef AOTRITON_VERSION_MINOR
#define AOTRITON_VERSION_MINOR 13u
#endif
#define AOTRITON_VERSION_PATCH 0u

#if AOTRITON_VERSION_MINOR < 10 || AOTRITON_VERSION_MINOR > 14
#error "AOTRITON_VERSION_MINOR: Fovea offers the interfaces 0.10 to 0.14"
#endif

/// Names whose library this is, where a client asks for AOTriton's commit.
#define AOTRITON_GIT_SHA1 "fovea"

// Builds of AOTriton may carry a suffix in namespace and file name. This one
// stands in for those without.
#define AOTRITON_ENABLE_SUFFIX 0
#define AOTRITON_NAME_SUFFIX
#define AOTRITON_NS aotriton

#define AOTRITON_API __attribute__((visibility("default")))

#endif // FOVEA_AOTRITON_CONFIG_H
