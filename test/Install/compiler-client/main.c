/* A program over the installed compiler library: compiles a kernel. */
#include <fovea/compiler.h>
#include <stdio.h>

int main(void) {
  fovea_compile_request_t request = {0};
  fovea_compiled_info_t info = {0};
  fovea_compiled_t *compiled;
  request.struct_size = sizeof request;
  request.target = "gfx942";
  request.problem = "forward;dtype=fp16;head_dim=16";
  info.struct_size = sizeof info;
  if (fovea_compile(&request, &compiled) ||
      fovea_compiled_info(compiled, &info)) {
    fprintf(stderr, "%s\n", fovea_compiler_last_message());
    return 1;
  }
  printf("built for %d, running with %u: %s\n", FOVEA_COMPILER_VERSION,
         (unsigned)fovea_compiler_version(), info.symbol);
  fovea_compiled_destroy(compiled);
  return 0;
}
