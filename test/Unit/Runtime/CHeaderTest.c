/*===- CHeaderTest.c - the header is C99 ----------------------------------===*/

#include "fovea/fovea.h"

/* Called by CInterfaceTest.cpp: uses a type and a function of each part. */
int foveaCHeaderTest(void);
int foveaCHeaderTest(void) {
  fovea_forward_params_t params = {0};
  fovea_backward_params_t backward = {0};
  fovea_context_t *context = NULL;
  fovea_status_t status;
  params.struct_size = sizeof(params);
  params.mask = FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
  status = fovea_forward(context, &params, NULL);
  backward.struct_size = sizeof(backward);
  return status == FOVEA_STATUS_INVALID_ARGUMENT &&
         fovea_backward(context, &backward, NULL) == status &&
         fovea_version() == FOVEA_VERSION && fovea_last_message()[0] != '\0';
}
