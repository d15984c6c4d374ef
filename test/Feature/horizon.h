/* horizon.h - what fovea.h would have of the made-up feature */

#ifndef FOVEA_TEST_FEATURE_HORIZON_H
#define FOVEA_TEST_FEATURE_HORIZON_H

#include "fovea/fovea.h"

/* place: the structure of the C interface */
enum { FOVEA_GROUP_HORIZON = 1000 };

/** Keys from number `keys` on are hidden from every query. */
typedef struct fovea_horizon {
  fovea_group_t header; /**< {sizeof(fovea_horizon_t), FOVEA_GROUP_HORIZON} */
  int64_t keys;         /**< 0 or more */
} fovea_horizon_t;
/* end */

#endif /* FOVEA_TEST_FEATURE_HORIZON_H */
