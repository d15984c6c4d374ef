//===- Page.h - pages that need no other file -------------------*- C++ -*-===//
//
// Each is an .html file of this folder, which CMakeLists.txt makes a string of;
// Page.css and Page.js are what they share.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_PAGE_H
#define FOVEA_TOOLS_AOTTIME_PAGE_H

#include <nlohmann/json.hpp>
#include <string>

namespace fovea::timing {

extern const char kComparisonPage[], kTimelinePage[];

/// The page with `data` in it, whatever its strings hold.
std::string pageWith(const char *page, const nlohmann::json &data);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_PAGE_H
