//===- Call.cpp - a problem as a call of the C interface ------------------===//

#include "Call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::cts {

Call::Call(const Problem &p) : problem(p) {
  const OpKind op = p.kernel.key.op;
  if (op == OpKind::Backward)
    parameters.emplace<fovea_backward_params_t>();
  auto fill = [&](auto &params) {
    using Params = std::remove_reference_t<decltype(params)>;
    params = {};
    params.struct_size = sizeof(params);
    params.dtype = dataTypeNumber(p.kernel.key.dtype);
    params.mask =
        p.window ? int32_t(FOVEA_MASK_NONE) : int32_t(p.kernel.key.mask);
    params.scale = p.scale;
    params.kernel = p.kernel.id;
    for (const spec::Extent extent : spec::kExtents)
      params.*params::sizeField<Params>(extent) = p.sizeOf(extent);
    if constexpr (std::is_same_v<Params, fovea_backward_params_t>) {
      params.deterministic = p.kernel.algorithm->deterministic;
      params.narrow_sums = p.kernel.algorithm->sumsNarrowly();
    } else if (p.kernel.algorithm && p.kernel.algorithm->splitsKeys())
      params.splits = 3; // short problems are split too

    std::vector<const fovea_group_t *> all = p.groups;
    if (p.window)
      all.push_back(&p.window->header);
    // In the place of a neutral one, whose V is as Q.
    const fovea_head_dims_t dims = {
        {sizeof(dims), FOVEA_GROUP_HEAD_DIMS, nullptr}, p.kernel.key.headDimV};
    if (p.kernel.key.headDimV) {
      all.erase(std::remove_if(all.begin(), all.end(),
                               [](const fovea_group_t *group) {
                                 return group->group == FOVEA_GROUP_HEAD_DIMS;
                               }),
                all.end());
      all.push_back(&dims.header);
    }
    for (const fovea_group_t *group : all) {
      const auto *bytes = reinterpret_cast<const unsigned char *>(group);
      auto &copy = groups.emplace_back(bytes, bytes + group->struct_size);
      auto *linked = reinterpret_cast<fovea_group_t *>(copy.data());
      linked->next = params.groups;
      params.groups = linked;
    }
  };
  std::visit(fill, parameters);
  const auto fields = params::tensorFieldsOf(op);
  const auto &tensors = spec::specOf(op).base.tensors;
  for (size_t i = 0; i != tensors.size(); ++i) {
    const spec::TensorSpec &tensor = tensors[i];
    if (i >= fields.size() || std::strcmp(fields[i].name, tensor.name) != 0) {
      ADD_FAILURE() << "the parameters of attn." << toString(op)
                    << " have no field for the tensor '" << tensor.name
                    << "'; fovea/Parameters.h takes a row for it";
      return;
    }
    if (tensor.shape == spec::Shape::Bytes)
      continue;
    buffers.push_back(std::make_unique<Buffer>(p, tensor, p[tensor.name]));
    if (p.absent.count(tensor.name) == 0)
      buffers.back()->describe(fields[i], params());
  }
}

fovea_status_t Call::select() {
  return std::visit(
      [&](auto &params) {
        using Calls =
            params::Interface<std::remove_reference_t<decltype(params)>>;
        typename Calls::Plan plan{};
        plan.struct_size = sizeof(plan);
        const fovea_status_t status =
            Calls::select(context(), &params, -1, &plan);
        workspaceBytes = plan.workspace_bytes;
        return status;
      },
      parameters);
}

void Call::allocateWorkspace() {
  // It holds NaN, and what lies around it is checked.
  const std::vector<uint8_t> before(workspaceBytes, 0xff);
  workspace.emplace(before.size());
  workspace->upload(before.data());
  std::visit(
      [&](auto &params) {
        params.workspace = workspace->data();
        params.workspace_bytes = workspaceBytes;
      },
      parameters);
}

fovea_status_t Call::enqueue() {
  return std::visit(
      [&](auto &params) {
        return params::Interface<
            std::remove_reference_t<decltype(params)>>::enqueue(context(),
                                                                &params,
                                                                problem.stream);
      },
      parameters);
}

Results Call::finish() {
  EXPECT_EQ(hip().hipStreamSynchronize(problem.stream), 0);
  if (workspace) {
    std::vector<uint8_t> after(workspace->size());
    workspace->download(after.data());
  }
  Results results;
  for (const std::unique_ptr<Buffer> &buffer : buffers) {
    const spec::TensorSpec &spec = buffer->spec;
    std::vector<float> elements = buffer->finish();
    if (!spec.written)
      continue;
    if (problem.status == FOVEA_STATUS_OK &&
        problem.absent.count(spec.name) == 0)
      results[spec.name] = std::move(elements);
    else
      EXPECT_TRUE(std::all_of(elements.begin(), elements.end(),
                              [](float x) { return std::isnan(x); }))
          << spec.name << " was written by a call without it, or refused";
  }
  return results;
}

Results run(const Problem &p) {
  Call call(p);
  EXPECT_FOVEA(call.select(), p.status);
  call.allocateWorkspace();
  if (p.enqueue)
    p.enqueue(call.params());
  else
    EXPECT_FOVEA(call.enqueue(), p.status);
  return call.finish();
}

} // namespace fovea::cts
