//===- SpecFile.h - a list of kernels as a JSON file ------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_SPECFILE_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_SPECFILE_H

#include "Axes.h"

namespace fovea::tools {

/// Reads a spec file: an object of lists, or an array of such objects, whose
/// kernels are put together. docs/AotCompile.md describes the keys. Complaints
/// name file, line and place.
/// \param targets  those of objects that name none
/// \param repeated  takes how often kernels were asked for once more
/// \param notes  takes lines about how programs are composed
std::vector<Job> parseSpec(llvm::StringRef name, llvm::StringRef text,
                           const std::vector<Item> &targets,
                           Complaints &complaints, size_t &repeated,
                           std::string &notes);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_SPECFILE_H
