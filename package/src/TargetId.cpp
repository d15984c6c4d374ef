//===- TargetId.cpp - chips with their code features ----------------------===//
//
// Spelling of target ids, and the rules by which code runs on a device. Source
// of the rules: LLVM, "User Guide for AMDGPU Backend", Target ID and Generic
// Processor Versioning.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Chips.h"
#include "fovea/Package/Keys.h"

#include <iterator>

namespace fovea {
namespace {

/// The two features of a target id, in the order of its text.
struct Feature {
  const char *name;
  FeatureState TargetId::*state;
  bool Chip::*supported;
};
constexpr Feature kFeatures[] = {
    {"sramecc", &TargetId::sramecc, &Chip::sramecc},
    {"xnack", &TargetId::xnack, &Chip::xnack},
};

constexpr const char *kStateNames[] = {"any", "off", "on"};

char signOf(FeatureState state) {
  return state == FeatureState::On ? '+' : '-';
}

Status invalid(std::string message) {
  return Status(StatusCode::InvalidArgument, std::move(message));
}
Status incompatible(std::string message) {
  return Status(StatusCode::Incompatible, std::move(message));
}

/// "compile for gfx942 or gfx9-4-generic".
std::string remedy(const TargetId &device) {
  std::string text = "compile for " + device.arch;
  if (const Chip *chip = findChip(device.arch); chip && !chip->family.empty())
    text.append(" or ").append(chip->family);
  return text;
}

Status checkArch(const TargetId &code, const TargetId &device) {
  if (code.arch == device.arch)
    return Status();
  const Chip *family = findChip(code.arch);
  if (!family || !family->isGeneric())
    return incompatible("it is for " + code.str() + ", the device is " +
                        device.str() + "; " + remedy(device));
  const Chip *chip = findChip(device.arch);
  if (!chip || chip->family != family->name)
    return incompatible("it is for " + code.str() + ", which is " +
                        membersOf(family->name) + "; the device is " +
                        device.str() + "; " + remedy(device));
  return Status();
}

Status checkFeature(const Feature &feature, const TargetId &code,
                    const TargetId &device) {
  const FeatureState wanted = code.*feature.state;
  const FeatureState has = device.*feature.state;
  if (wanted == FeatureState::Any || wanted == has)
    return Status();
  const std::string name = feature.name;
  if (has == FeatureState::Any)
    return incompatible("it is for " + code.str() + " and needs " + name +
                        signOf(wanted) + "; the device " + device.str() +
                        " does not state its " + name + "; compile for " +
                        code.arch + " without " + name);
  std::string message = "it is for " + code.str() + " and needs " + name +
                        signOf(wanted) + "; the device " + device.str() +
                        " runs with " + name + signOf(has) + "; compile for " +
                        code.arch + " without " + name + ", which runs on both";
  // XNACK is a setting of the process, SRAM ECC one of the board.
  if (feature.state == &TargetId::xnack)
    message += wanted == FeatureState::On ? ", or run with HSA_XNACK=1"
                                          : ", or run with HSA_XNACK=0";
  return incompatible(std::move(message));
}

} // namespace

const char *toString(FeatureState state) {
  return kStateNames[static_cast<int>(state)];
}

Expected<FeatureState> parseFeatureState(std::string_view text) {
  for (FeatureState state :
       {FeatureState::Any, FeatureState::Off, FeatureState::On})
    if (text == toString(state))
      return state;
  return invalid("feature state '" + std::string(text) +
                 "' is not any, off or on");
}

std::string TargetId::str() const {
  std::string text = arch;
  for (const Feature &feature : kFeatures)
    if (FeatureState state = this->*feature.state; state != FeatureState::Any)
      text.append(":").append(feature.name).push_back(signOf(state));
  return text;
}

Expected<TargetId> TargetId::parse(std::string_view text) {
  const std::string whole(text);
  auto take = [&text] { // up to the next colon
    const size_t at = text.find(':');
    std::string_view head = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return head;
  };
  TargetId target;
  target.arch = std::string(take());
  bool wellFormed = target.arch.size() > 3 && target.arch.size() < 32 &&
                    target.arch.compare(0, 3, "gfx") == 0 &&
                    (whole.empty() || whole.back() != ':');
  for (char c : target.arch)
    wellFormed &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  if (!wellFormed)
    return invalid("target '" + whole +
                   "' does not name a chip such as gfx942");
  while (!text.empty()) {
    std::string_view item = take();
    const char sign = item.empty() ? 0 : item.back();
    const std::string_view name = item.substr(0, item.size() - !!sign);
    FeatureState *state = nullptr;
    for (const Feature &feature : kFeatures)
      if (name == feature.name)
        state = &(target.*feature.state);
    if (!state || (sign != '+' && sign != '-') || *state != FeatureState::Any)
      return invalid("target '" + whole + "': '" + std::string(item) +
                     "' is not sramecc or xnack with + or -, given once");
    *state = sign == '+' ? FeatureState::On : FeatureState::Off;
  }
  return target;
}

Status checkTarget(const TargetId &target) {
  const Chip *chip = findChip(target.arch);
  if (!chip) {
    std::string names;
    for (const Chip &row : allChips())
      names.append(names.empty() ? "" : ", ").append(row.name);
    return invalid("no chip '" + target.arch + "' is known; known: " + names);
  }
  for (const Feature &feature : kFeatures)
    if (target.*feature.state != FeatureState::Any &&
        !(chip->*feature.supported))
      return invalid("target '" + target.str() + "': " + target.arch +
                     " has no " + feature.name +
                     " that could be on or off; leave it out");
  return Status();
}

Status checkTargetRunsOn(const TargetId &code, const TargetId &device) {
  if (Status status = checkArch(code, device); !status.ok())
    return status;
  // Code that asks a chip for what it does not have is damaged or mislabelled.
  if (findChip(code.arch))
    if (Status status = checkTarget(code); !status.ok())
      return incompatible(status.message());
  for (const Feature &feature : kFeatures)
    if (Status status = checkFeature(feature, code, device); !status.ok())
      return status;
  return Status();
}

int targetFit(const TargetId &code, const TargetId &device) {
  // The same order as HIP's for the entries of a fat binary.
  int fit = code.arch == device.arch ? std::size(kFeatures) + 1 : 0;
  for (const Feature &feature : kFeatures)
    fit += code.*feature.state != FeatureState::Any;
  return fit;
}

} // namespace fovea
