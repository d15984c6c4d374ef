//===- LdsModels.h - the LDS of the chips -----------------------*- C++ -*-===//

#ifndef FOVEA_TARGET_LDSMODELS_H
#define FOVEA_TARGET_LDSMODELS_H

#include "fovea/Layout/LdsModel.h"

namespace fovea::target {

extern const layout::LdsModel kLdsCdna;    ///< CDNA 1 to 3
extern const layout::LdsModel kLdsCdna4;   ///< reads twice as wide
extern const layout::LdsModel kLdsRdna3;   ///< RDNA 3 and 3.5
extern const layout::LdsModel kLdsRdna4;   ///< lanes in order
extern const layout::LdsModel kLdsGfx1250; ///< not measured: as RDNA 4, wider

} // namespace fovea::target

#endif // FOVEA_TARGET_LDSMODELS_H
