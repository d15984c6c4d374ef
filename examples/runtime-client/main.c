/*===- main.c - attention from C ------------------------------------------===*\
|*
|* Opens a package, asks whether a problem is supported, and runs it on whatever
|* HIP library the runtime has found, without HIP's headers. The values are all
|* ones, so each output must be exactly one whatever the probabilities are.
|*
|*   runtime-client PACKAGE [HEAD_DIM]
|*   runtime-client --version
|*
\*===----------------------------------------------------------------------===*/

#include <fovea/fovea.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The few HIP functions that are called here directly. */
typedef int (*hip_malloc_fn)(void **pointer, size_t bytes);
typedef int (*hip_free_fn)(void *pointer);
typedef int (*hip_memcpy_fn)(void *to, const void *from, size_t bytes,
                             int kind);
typedef int (*hip_synchronize_fn)(void);
enum { kHostToDevice = 1, kDeviceToHost = 2 };

enum { kBatch = 1, kHeadsQ = 4, kHeadsK = 2, kSeqlenQ = 100, kSeqlenK = 80 };
static const uint16_t kBf16One = 0x3f80;

static void check(fovea_status_t status, const char *what) {
  if (status == FOVEA_STATUS_OK)
    return;
  fprintf(stderr, "runtime-client: %s: %s: %s\n", what,
          fovea_status_name(status), fovea_last_message());
  exit(1);
}

/* A function of the HIP library that the runtime uses. */
static void symbol(fovea_context_t *ctx, const char *name, void *function) {
  void *address = fovea_hip_symbol(ctx, name);
  if (!address) {
    fprintf(stderr, "runtime-client: %s\n", fovea_last_message());
    exit(1);
  }
  memcpy(function, &address, sizeof(address));
}

static void checkHip(int error, const char *what) {
  if (error != 0) {
    fprintf(stderr, "runtime-client: %s: HIP error %d\n", what, error);
    exit(1);
  }
}

int main(int argc, char **argv) {
  fovea_context_t *ctx;
  fovea_hip_library_info_t hip = {0};
  fovea_device_info_t device = {0};
  fovea_forward_params_t p = {0};
  hip_malloc_fn hipMalloc;
  hip_free_fn hipFree;
  hip_memcpy_fn hipMemcpy;
  hip_synchronize_fn hipDeviceSynchronize;

  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("built for %d, running with %u\n", FOVEA_VERSION, fovea_version());
    return 0;
  }
  if (argc < 2) {
    fprintf(stderr, "usage: runtime-client PACKAGE [HEAD_DIM]\n");
    return 2;
  }

  check(fovea_context_create(NULL, &ctx), "creating a context");
  check(fovea_package_open(ctx, argv[1]), "opening the package");
  hip.struct_size = sizeof(hip);
  check(fovea_hip_library_info(ctx, &hip), "looking for HIP");
  printf("HIP library %s: %s\n", hip.path, hip.reason);
  device.struct_size = sizeof(device);
  check(fovea_device_info(ctx, 0, &device), "looking at device 0");
  printf("device %s, %d compute units\n", device.arch, device.compute_units);

  p.struct_size = sizeof(p);
  p.dtype = FOVEA_DTYPE_BF16;
  p.mask = FOVEA_MASK_NONE;
  p.batch = kBatch;
  p.heads_q = kHeadsQ;
  p.heads_k = kHeadsK;
  p.seqlen_q = kSeqlenQ;
  p.seqlen_k = kSeqlenK;
  p.head_dim = argc > 2 ? atoi(argv[2]) : 128;
  p.scale = 1.0f / sqrtf((float)(p.head_dim > 0 ? p.head_dim : 1));
  p.q.stride_seq = p.k.stride_seq = p.v.stride_seq = p.out.stride_seq =
      p.head_dim;
  p.q.stride_head = p.out.stride_head = kSeqlenQ * p.head_dim;
  p.k.stride_head = p.v.stride_head = kSeqlenK * p.head_dim;
  p.q.stride_batch = p.out.stride_batch = kHeadsQ * p.q.stride_head;
  p.k.stride_batch = p.v.stride_batch = kHeadsK * p.k.stride_head;
  check(fovea_forward_select(ctx, &p, 0, NULL), "is it supported?");
  printf("%s\n", fovea_last_message());

  symbol(ctx, "hipMalloc", &hipMalloc);
  symbol(ctx, "hipFree", &hipFree);
  symbol(ctx, "hipMemcpy", &hipMemcpy);
  symbol(ctx, "hipDeviceSynchronize", &hipDeviceSynchronize);
  {
    const size_t elementsQ = (size_t)(kBatch * p.q.stride_batch);
    const size_t elementsK = (size_t)(kBatch * p.k.stride_batch);
    const size_t most = elementsQ > elementsK ? elementsQ : elementsK;
    uint16_t *host = malloc(most * sizeof(*host));
    void *q, *k, *v, *out;
    size_t i, wrong = 0;
    if (!host)
      return 1;
    checkHip(hipMalloc(&q, elementsQ * 2), "hipMalloc");
    checkHip(hipMalloc(&k, elementsK * 2), "hipMalloc");
    checkHip(hipMalloc(&v, elementsK * 2), "hipMalloc");
    checkHip(hipMalloc(&out, elementsQ * 2), "hipMalloc");
    for (i = 0; i != most; ++i) /* +-1, +-1.25 in some order */
      host[i] = (uint16_t)(kBf16One + (i * 7 % 3) * 16 + (i % 5 & 1) * 0x8000u);
    checkHip(hipMemcpy(q, host, elementsQ * 2, kHostToDevice), "hipMemcpy");
    checkHip(hipMemcpy(k, host, elementsK * 2, kHostToDevice), "hipMemcpy");
    for (i = 0; i != elementsK; ++i)
      host[i] = kBf16One;
    checkHip(hipMemcpy(v, host, elementsK * 2, kHostToDevice), "hipMemcpy");
    p.q.data = q;
    p.k.data = k;
    p.v.data = v;
    p.out.data = out;
    check(fovea_forward(ctx, &p, NULL), "running it");
    checkHip(hipDeviceSynchronize(), "hipDeviceSynchronize");
    checkHip(hipMemcpy(host, out, elementsQ * 2, kDeviceToHost), "hipMemcpy");
    for (i = 0; i != elementsQ; ++i)
      wrong += host[i] != kBf16One;
    printf("%lu of %lu outputs are exactly 1\n",
           (unsigned long)(elementsQ - wrong), (unsigned long)elementsQ);
    checkHip(hipFree(q), "hipFree");
    checkHip(hipFree(k), "hipFree");
    checkHip(hipFree(v), "hipFree");
    checkHip(hipFree(out), "hipFree");
    free(host);
    fovea_context_destroy(ctx);
    return wrong ? 1 : 0;
  }
}
