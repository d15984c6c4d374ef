#include "fovea/Simulator/CodeObject.h"
namespace fovea::sim {
struct CodeObject::Impl { std::vector<KernelInfo> Kernels; std::vector<GlobalVariable> Globals; std::string Target; std::shared_ptr<Device> Dev; };
CodeObject::CodeObject() : Self(new Impl) {}
CodeObject::~CodeObject() = default;
Status CodeObject::load(const std::shared_ptr<Device> &, const void *, size_t, std::shared_ptr<CodeObject> &) {
  return {ErrorCode::InvalidImage, "code objects cannot be loaded yet"};
}
const std::vector<KernelInfo> &CodeObject::kernels() const { return Self->Kernels; }
const std::vector<GlobalVariable> &CodeObject::globals() const { return Self->Globals; }
const KernelInfo *CodeObject::findKernel(std::string_view) const { return nullptr; }
const GlobalVariable *CodeObject::findGlobal(std::string_view) const { return nullptr; }
const std::string &CodeObject::targetId() const { return Self->Target; }
const std::shared_ptr<Device> &CodeObject::device() const { return Self->Dev; }
uint64_t CodeObject::imageSize(const void *) { return 0; }
uint32_t KernelInfo::explicitKernargSize() const {
  uint32_t end = 0;
  for (const KernelArg &arg : args)
    if (!arg.hidden() && arg.offset + arg.size > end)
      end = arg.offset + arg.size;
  return end;
}
} // namespace fovea::sim
