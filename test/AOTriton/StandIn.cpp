//===- StandIn.cpp - a library in AOTriton's place ------------------------===//
//
// Has the names that the probe calls and the file name of AOTriton's library,
// and refuses all: what Fovea's is put in place of, in tests.
//
//===----------------------------------------------------------------------===//

#include <aotriton/flash.h>

namespace aotriton {

template class TensorView<1>;
template class TensorView<2>;
template class TensorView<3>;
template class TensorView<4>;

namespace v2::flash {
hipError_t check_gpu(Stream) { return hipErrorUnknown; }
} // namespace v2::flash

namespace v3::flash {
attn_fwd_params::attn_fwd_params() = default;
attn_bwd_params::attn_bwd_params() = default;
hipError_t attn_fwd(const attn_fwd_params &, int32_t, Stream,
                    const attn_options *) {
  return hipErrorUnknown;
}
hipError_t attn_bwd(const attn_bwd_params &, int32_t, Stream,
                    const attn_options *) {
  return hipErrorUnknown;
}
} // namespace v3::flash

} // namespace aotriton
