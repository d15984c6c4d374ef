//===- Groups.cpp - the table of feature groups as IR ---------------------===//

#include "Groups.h"
#include "fovea/Dialect/Attn/IR/Attn.h"

using namespace fovea;
using namespace fovea::tools;

static constexpr GroupPart kParts[] = {
    {"window",
     [](mlir::MLIRContext &context) -> mlir::Attribute {
       return attn::WindowAttr::get(&context);
     }},
};

spec::Rows<GroupPart> fovea::tools::groupParts() { return kParts; }
