//===- ForwardPipeline.cpp - how key blocks overlap, as data --------------===//

#include "ForwardPipeline.h"

using namespace fovea::attn;

namespace {
/// Which slots a step reads and writes, whether it accesses LDS, and whether it
/// is about all parts of a block at once.
struct StepRow {
  Step step;
  llvm::ArrayRef<Slot> reads, writes;
  bool lds = false, whole = false;
};
} // namespace

static constexpr Slot kKRows[] = {Slot::KRows}, kVRows[] = {Slot::VRows},
                      kKeys[] = {Slot::Keys}, kValues[] = {Slot::Values},
                      kScores[] = {Slot::Scores}, kWeights[] = {Slot::Weights},
                      kRounded[] = {Slot::Rounded},
                      kRelative[] = {Slot::Scores, Slot::Reference},
                      kProduct[] = {Slot::Values, Slot::Rounded};
static const StepRow kSteps[] = {
    {Step::LoadK, {}, kKRows},
    {Step::LoadV, {}, kVRows},
    {Step::StoreK, kKRows, {}, true},
    {Step::StoreV, kVRows, {}, true},
    {Step::CopyK, {}, {}, true},
    {Step::CopyV, {}, {}, true},
    {Step::AwaitK, {}, {}, false, true},
    {Step::AwaitV, {}, {}, false, true},
    {Step::ReadK, {}, kKeys, true},
    {Step::ReadV, {}, kValues, true},
    {Step::Fetch, {}, {}}, // for `Mask` of the same block and iteration
    {Step::Scores, kKeys, kScores},
    {Step::Mask, kScores, kScores},
    {Step::Refer, kScores, kRelative, false, true},
    {Step::Rescale, {}, {}, false, true},
    {Step::ReferAll, kScores, kRelative, false, true},
    {Step::Weigh, kRelative, kWeights},
    {Step::Round, kWeights, kRounded},
    {Step::Accumulate, kProduct, {}},
};

/// The row of a step that is of a block.
static const StepRow &rowOf(Step step) {
  return *llvm::find_if(kSteps,
                        [&](const StepRow &row) { return row.step == step; });
}

bool fovea::attn::touchesLds(Step step) { return rowOf(step).lds; }
bool fovea::attn::isWhole(Step step) { return rowOf(step).whole; }

// One block after the other.
// clang-format off: a line is a segment, up to a barrier or a mix.
static constexpr Place kOneStage[] = {
    {Step::Barrier},
    {Step::LoadK}, {Step::LoadV}, {Step::StoreK}, {Step::StoreV},
    {Step::Barrier},
    {Step::Fetch}, {Step::ReadK}, {Step::Scores}, {Step::Mask}, {Step::ReferAll},
        {Step::Weigh}, {Step::Round}, {Step::ReadV}, {Step::Accumulate}};
// Between the first and the second barrier LDS holds K and takes V, from the
// second to the next first it holds V and takes the next K; the loads issued in
// one half have the other half to arrive.
static constexpr Place kTwoStages[] = {
    {Step::Barrier},
    {Step::Fetch}, {Step::LoadK, 1}, {Step::ReadK}, {Step::Scores}, {Step::Mask},
        {Step::StoreV}, {Step::ReferAll}, {Step::Weigh}, {Step::Round},
    {Step::Barrier},
    {Step::LoadV, 1}, {Step::ReadV}, {Step::Accumulate}, {Step::StoreK, 1}};
static constexpr Place kOneStageDirect[] = {
    {Step::Barrier},
    {Step::CopyK}, {Step::CopyV}, {Step::AwaitCopies},
    {Step::Barrier},
    {Step::Fetch}, {Step::ReadK}, {Step::Scores}, {Step::Mask}, {Step::ReferAll},
        {Step::Weigh}, {Step::Round}, {Step::ReadV}, {Step::Accumulate}};
// What an iteration reads has been on its way for an iteration. Behind the
// barrier it is there, and nobody reads the other buffers any more.
static constexpr Place kTwoStagesDirect[] = {
    {Step::AwaitCopies},
    {Step::Barrier},
    {Step::Fetch}, {Step::CopyK, 1}, {Step::CopyV, 1}, {Step::ReadK}, {Step::Scores},
        {Step::Mask}, {Step::ReferAll}, {Step::Weigh}, {Step::Round}, {Step::ReadV},
        {Step::Accumulate}};
// The scores of the next block do not depend on anything that follows: matrix
// work beside the exponentials of this one, behind the branch that rescales, so
// that it is in their basic block.
static constexpr Place kThreeStagesDirect[] = {
    {Step::AwaitCopies},
    {Step::Barrier},
    {Step::Fetch}, {Step::CopyK, 2}, {Step::CopyV, 1}, {Step::Mask}, {Step::ReferAll},
        {Step::ReadK, 1}, {Step::Scores, 1}, {Step::Weigh}, {Step::Round}, {Step::ReadV},
        {Step::Accumulate}, {Step::Mix}};

// Segments that compute and segments that move data, so that the one of a wave
// runs beside the other of a wave of another workgroup: scores of a block
// beside rounding of the one before, its output beside the exponentials of this
// one.
static constexpr Place kSegments[] = {
    {Step::Fetch}, {Step::ReadK}, {Step::Fence}, {Step::StoreV, -1}, {Step::LoadV},
    {Step::Barrier},
    {Step::Urgent}, {Step::Scores}, {Step::Round, -1}, {Step::Mix},
    {Step::Usual}, {Step::ReadV, -1}, {Step::StoreK, 1}, {Step::Fence}, {Step::Mask},
        {Step::Refer}, {Step::LoadK, 2},
    {Step::Barrier},
    {Step::Urgent}, {Step::Weigh}, {Step::Accumulate, -1}, {Step::Mix},
    {Step::Usual}, {Step::Rescale}};

// The same of blocks in two parts, each segment between barriers: half of the
// waves go a segment behind the others, so that on each SIMD one computes
// beside one that moves data. Products of a part depend on one accumulator and
// leave registers free that those of a whole block would hold; exponentials of
// the second part wait for the next block's scores, beside which there is room.
// A wait leaves what was begun since under way, for which no barrier waits.
static constexpr Place kSegmentsDirect[] = {
    {Step::CopyV}, {Step::ReadK}, {Step::Fence}, {Step::AwaitV, -1}, {Step::Fetch},
    {Step::Barrier},
    {Step::Scores, 0, 0}, {Step::Weigh, -1, 1}, {Step::Mix},
    {Step::Fence}, {Step::Scores, 0, 1}, {Step::Round, -1}, {Step::Mix},
    {Step::Pin},
    {Step::Barrier},
    {Step::CopyK, 2}, {Step::ReadV, -1}, {Step::Fence}, {Step::AwaitK, 1},
    {Step::Barrier},
    {Step::Accumulate, -1, 0}, {Step::Mask}, {Step::Refer}, {Step::Weigh, 0, 0},
        {Step::Accumulate, -1, 1}, {Step::Mix},
    {Step::Pin}, {Step::Rescale},
    {Step::Barrier}};

// A wave that has its SIMD to itself: nothing would run beside a segment that
// moves data, so what the next segment reads of LDS is read beside the products
// of this one. A copy has one and a half iterations to arrive, since either
// barrier frees a buffer.
static constexpr Place kSegmentsAlone[] = {
    {Step::Scores, 0, 0}, {Step::ReadK, 0, 1}, {Step::Weigh, -1, 1}, {Step::Fetch},
        {Step::Mix},
    {Step::AwaitV, -1},
    {Step::Barrier},
    {Step::CopyK, 2}, {Step::Scores, 0, 1}, {Step::ReadV, -1, 0}, {Step::Round, -1},
        {Step::Mix},
    {Step::Pin}, {Step::Fence}, {Step::Accumulate, -1, 0}, {Step::ReadV, -1, 1},
        {Step::Mask}, {Step::Refer}, {Step::AwaitK, 1},
    {Step::Barrier},
    {Step::CopyV, 1}, {Step::Weigh, 0, 0}, {Step::Accumulate, -1, 1}, {Step::ReadK, 1, 0},
        {Step::Mix},
    {Step::Pin}, {Step::Rescale}};

// The same by registers, with one buffer each of K and V. A barrier frees the
// buffer of what was read beside the products ahead of it, and what is read
// beside those behind it is there. Stores come before a fence, or LLVM would
// ask for the next rows ahead of them, and move those when they have come.
static constexpr Place kSegmentsAloneByRegisters[] = {
    {Step::Barrier},
    {Step::Fence}, {Step::StoreK, 1}, {Step::Fence}, {Step::LoadK, 2}, {Step::Scores},
        {Step::ReadV, -1}, {Step::Round, -1}, {Step::Fetch}, {Step::Mix},
    {Step::Pin}, {Step::Fence}, {Step::Mask}, {Step::Refer},
    {Step::Barrier},
    {Step::Fence}, {Step::StoreV}, {Step::Fence}, {Step::LoadV, 1}, {Step::Weigh},
        {Step::Accumulate, -1}, {Step::ReadK, 1}, {Step::Mix},
    {Step::Pin}, {Step::Rescale}};

// Of parts of 64 keys: the weights of the first are rounded as soon as sums are
// relative to their reference. In f32 there are no registers for them beside the
// next block's scores.
static constexpr Place kSegmentsWide[] = {
    {Step::CopyV}, {Step::ReadK}, {Step::Fence}, {Step::AwaitV, -1}, {Step::Fetch},
    {Step::Barrier},
    {Step::Scores, 0, 0}, {Step::Weigh, -1, 1}, {Step::Mix},
    {Step::Fence}, {Step::Scores, 0, 1}, {Step::Round, -1, 1}, {Step::Mix},
    {Step::Pin},
    {Step::Barrier},
    {Step::CopyK, 2}, {Step::ReadV, -1}, {Step::Fence}, {Step::AwaitK, 1},
    {Step::Barrier},
    {Step::Accumulate, -1, 0}, {Step::Mask}, {Step::Refer}, {Step::Weigh, 0, 0},
        {Step::Accumulate, -1, 1}, {Step::Mix},
    {Step::Pin}, {Step::Rescale}, {Step::Round, 0, 0}, {Step::Pin},
    {Step::Barrier}};
// clang-format on

static const ForwardPipeline kPipelines[] = {
    {1, false, ForwardPipeline::kAnyBlock, 1, 1, kOneStage},
    {2, false, ForwardPipeline::kAnyBlock, 1, 1, kTwoStages},
    {1, true, ForwardPipeline::kAnyBlock, 1, 1, kOneStageDirect},
    {2, true, ForwardPipeline::kAnyBlock, 1, 1, kTwoStagesDirect},
    {3, true, ForwardPipeline::kAnyBlock, 2, 1, kThreeStagesDirect},
    {4, false, ForwardPipeline::kAlone, 1, 1, kSegmentsAloneByRegisters},
    {4, false, ForwardPipeline::kAnyBlock, 1, 1, kSegments},
    // Of gradients, whose tiles are counted alike.
    {5, false, ForwardPipeline::kAnyBlock, 1, 1, kSegments},
    {4, true, ForwardPipeline::kAlone, 2, 2, kSegmentsAlone},
    {4, true, ForwardPipeline::kWideBlock, 2, 2, kSegmentsWide},
    {4, true, ForwardPipeline::kAnyBlock, 2, 2, kSegmentsDirect},
};

static bool fits(ForwardPipeline::Condition condition, ScheduleAttr schedule) {
  constexpr int32_t kWide = 128;
  switch (condition) {
  case ForwardPipeline::kAnyBlock:
    return true;
  case ForwardPipeline::kAlone:
    return schedule.getWavesPerSimd() == 1;
  case ForwardPipeline::kWideBlock:
    return schedule.getBlockN() >= kWide;
  }
  llvm_unreachable("all conditions are listed");
}

const ForwardPipeline &ForwardPipeline::of(ScheduleAttr schedule) {
  for (const ForwardPipeline &pipeline : kPipelines)
    if (pipeline.stages == schedule.getStages() &&
        pipeline.directCopy == bool(schedule.getDirectCopy()) &&
        fits(pipeline.condition, schedule))
      return pipeline;
  llvm_unreachable("a verified schedule has a pipeline");
}

bool ForwardPipeline::countsCopies() const {
  return llvm::any_of(places,
                      [](const Place &place) { return isAwait(place.step); });
}

int ForwardPipeline::copiesBehind(size_t index, bool values,
                                  std::optional<int> iteration) const {
  const Place &wait = places[index];
  Step copied = wait.step == Step::AwaitK ? Step::CopyK : Step::CopyV;
  // Times as (iteration, place), the wait being in iteration 0.
  using Time = std::pair<int, size_t>;
  Time begun;
  for (auto [at, place] : llvm::enumerate(places))
    if (place.step == copied)
      begun = {wait.ahead - place.ahead, at};
  int count = 0;
  for (auto [at, place] : llvm::enumerate(places))
    if (place.step == (values ? Step::CopyV : Step::CopyK))
      for (int past = begun.first; past <= 0; ++past) {
        Time time = {past, at};
        bool exists = !iteration || *iteration + past + place.ahead >= 0;
        count += exists && time > begun && time < Time{0, index};
      }
  return count;
}

int ForwardPipeline::ahead() const {
  int most = 0;
  for (const Place &place : places)
    most = std::max(most, place.ahead);
  return most;
}

int ForwardPipeline::behind() const {
  int most = 0;
  for (const Place &place : places)
    most = std::max(most, -place.ahead);
  return most;
}

llvm::SmallVector<ForwardPipeline::Key> ForwardPipeline::carried() const {
  // A block's value is made once it is `first` ahead of the iteration and last
  // read when it is `last` ahead.
  struct Life {
    int first, last;
  };
  std::map<std::pair<Slot, int>, Life> lives;
  for (const Place &place : places) {
    if (!isOfBlock(place.step))
      continue;
    const StepRow &row = rowOf(place.step);
    for (Slot slot : llvm::concat<const Slot>(row.reads, row.writes))
      for (int part = 0; part < partsOf(slot); ++part) {
        if (place.part >= 0 && place.part != part && partsOf(slot) > 1)
          continue;
        auto [it, isNew] =
            lives.try_emplace({slot, part}, Life{place.ahead, place.ahead});
        it->second.first = std::max(it->second.first, place.ahead);
        it->second.last = std::min(it->second.last, place.ahead);
      }
  }
  llvm::SmallVector<Key> result;
  for (auto [key, life] : lives)
    for (int block = life.last; block < life.first; ++block)
      result.push_back({key.first, key.second, block});
  return result;
}
