//===- Pipeline.h - how blocks of a loop overlap, as data -------*- C++ -*-===//
//
// A kernel visits blocks of rows in a loop and takes the same steps for each. A
// software pipeline is the order in which an iteration takes them, and of which
// block. The kernel writes each step once; what an iteration carries to the
// next, and what goes before and behind the loop, follows.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <map>
#include <optional>

namespace fovea::attn {

/// What orders the work of all blocks.
enum class Order {
  Barrier, ///< all waves are here, what they wrote to LDS is there
  // Of loops alone.
  Mix, ///< the end of a segment: its work is spread evenly, and stays in it
};
inline bool isOfLoop(Order order) { return order >= Order::Mix; }

/// \tparam Step  what a kernel does for a block
/// \tparam Slot  what steps leave to later ones of the same block
template <typename Step, typename Slot>
struct PipelineOf {
  /// What a step works with.
  enum Means { Products, Memory, Lds, Vectors };
  struct StepRow {
    Step step;
    Means means;
    llvm::ArrayRef<Slot> reads, writes;
  };

  struct Place {
    constexpr Place(Step step, int ahead = 0, int chunk = 0)
        : step(step), ahead(ahead), chunk(chunk) {}
    constexpr Place(Order order) : order(order) {}
    std::optional<Step> step;
    int ahead = 0; ///< of which block: so many behind the iteration's own
    int chunk = 0; ///< of the block's columns, where they come in several
    Order order = Order::Barrier; ///< where it is no step
  };

  /// What an iteration finds of those before: the slot, and of which block.
  using Key = std::pair<Slot, int>;

  /// Places that a loop takes for one chunk of columns after the other.
  struct ChunkLoop {
    size_t first = 0, end = 0; ///< of the places; none
    int count = 0;             ///< of the chunks
    llvm::ArrayRef<Slot> sums; ///< what it carries, from nothing() on
  };

  llvm::ArrayRef<StepRow> steps;
  llvm::SmallVector<Place> places;
  int buffers = 1; ///< in LDS for what is visited: blocks take turns
  /// Whether an iteration may visit a block of each buffer, in which they have
  /// constant addresses.
  bool goesInTurns = false;
  ChunkLoop chunks = {};

  const StepRow &rowOf(Step step) const {
    return *llvm::find_if(steps,
                          [&](const StepRow &row) { return row.step == step; });
  }
  /// How far ahead of an iteration its first step is.
  int ahead() const {
    int most = 0;
    for (const Place &place : places)
      most = std::max(most, place.ahead);
    return most;
  }
  /// How many blocks its last step is behind.
  int behind() const {
    int most = 0;
    for (const Place &place : places)
      most = std::max(most, -place.ahead);
    return most;
  }

  llvm::SmallVector<Key> carried() const {
    // A block's value is made once it is `first` ahead of the iteration and
    // last read when it is `last` ahead.
    struct Life {
      int first, last;
    };
    std::map<Slot, Life> lives;
    for (const Place &place : places) {
      if (!place.step)
        continue;
      const StepRow &row = rowOf(*place.step);
      for (Slot slot : llvm::concat<const Slot>(row.reads, row.writes)) {
        auto [it, isNew] =
            lives.try_emplace(slot, Life{place.ahead, place.ahead});
        it->second.first = std::max(it->second.first, place.ahead);
        it->second.last = std::min(it->second.last, place.ahead);
      }
    }
    llvm::SmallVector<Key> result;
    for (auto [slot, life] : lives)
      for (int block = life.last; block < life.first; ++block)
        result.push_back({slot, block});
    return result;
  }
};

/// Emits a pipeline. Blocks are visited in the order of their numbers.
template <typename Step, typename Slot>
class PipelineRunner {
protected:
  using Pipeline = PipelineOf<Step, Slot>;
  using Place = typename Pipeline::Place;
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value, 1>;

  PipelineRunner(mlir::ImplicitLocOpBuilder &builder, const Pipeline &pipeline)
      : builder(builder), pipeline(pipeline) {}
  virtual ~PipelineRunner() = default;

  /// Does a step of the block that is visited as `number`, i32.
  virtual void take(Step step, Value number) = 0;
  /// What a slot holds of a block before the first.
  virtual Value nothing(Slot slot) = 0;
  /// The same of a slot with several values, or none.
  virtual Values nothingsOf(Slot slot) { return {nothing(slot)}; }
  /// What iterations carry besides slots.
  virtual llvm::SmallVector<Value *> sums() = 0;

  /// A slot of the block that a step is about.
  Value &slot(Slot slot) {
    Values &values = valuesOf(slot);
    values.resize(1);
    return values.front();
  }
  /// The same of one with several, as many each time.
  Values &valuesOf(Slot slot) { return slots[{slot, current}]; }

  llvm::SmallVector<Value> sumValues() {
    return llvm::map_to_vector(sums(), [](Value *sum) { return *sum; });
  }
  /// The first of the values; returns the others.
  mlir::ValueRange setSums(mlir::ValueRange values) {
    auto all = sums();
    for (auto [sum, value] : llvm::zip(all, values))
      *sum = value;
    return values.drop_front(all.size());
  }

  /// What is ahead of the first iteration, of blocks from 0 on.
  void prologue() {
    slots.clear();
    for (int iteration = -pipeline.ahead(); iteration < 0; ++iteration)
      takePlaces(iteration, constant(iteration),
                 [&](int ahead) { return iteration + ahead >= 0; });
  }

  /// Blocks [from, to), of which `from` follows what was visited last.
  /// \param blocks  that an iteration visits, which divides how many there are
  void loop(Value from, Value to, int blocks = 1) {
    auto loop =
        mlir::scf::ForOp::create(builder, from, to, constant(blocks), pack(0));
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    unpack(loop.getRegionIterArgs());
    for (int turn = 0; turn < blocks; ++turn) {
      if (blocks > 1)
        turnOfIteration = turn;
      takePlaces(turn, after(loop.getInductionVar(), turn), nullptr);
    }
    turnOfIteration.reset();
    mlir::scf::YieldOp::create(builder, pack(blocks));
    unpack(loop.getResults());
  }

  /// What is behind the last iteration, of blocks before `to`.
  void drain(Value to) {
    isLdsTouched = true;
    for (int iteration = 0; iteration < pipeline.behind(); ++iteration)
      takePlaces(iteration, after(to, iteration),
                 [&](int ahead) { return iteration + ahead < 0; });
  }

  mlir::ImplicitLocOpBuilder &builder;
  const Pipeline pipeline;
  int chunk = 0;     ///< that a step is about; in a loop over them 0
  Value chunkOfLoop; ///< i32: there which; null: there is no loop
  /// Whether nothing is summed up of chunks yet.
  bool isFirstChunk() const { return chunk == 0 && !chunkOfLoop; }
  /// Which of an iteration's blocks a step is about, and so many more; none: it
  /// has one.
  std::optional<int> turn;
  std::optional<int> turnOfIteration; ///< the first of these alone

private:
  Value constant(int value) {
    return mlir::arith::ConstantIntOp::create(builder, value, 32);
  }
  Value after(Value number, int distance) {
    if (distance == 0)
      return number;
    return builder.createOrFold<mlir::arith::AddIOp>(number,
                                                     constant(distance));
  }

  void keep(Order order) {
    switch (order) {
    case Order::Barrier:
      mlir::amdgpu::LDSBarrierOp::create(builder);
      return;
    case Order::Mix:
      InterleaveOp::create(builder);
      // LLVM would move vector instructions to where their results are used.
      for (auto key : made)
        for (Value &value : slots[key])
          value = PinOp::create(builder, value);
      made.clear();
      mlir::amdgpu::SchedBarrierOp::create(
          builder, mlir::amdgpu::sched_barrier_opt_enum::none);
      return;
    }
    llvm_unreachable("all orders are listed");
  }

  /// One iteration.
  /// \param iteration  as slots count
  /// \param first      the block that is 0 ahead in it
  /// \param includes   whether to do what is so far ahead; null: all of it.
  ///   Otherwise what orders work is left out where nothing has touched LDS.
  void takePlaces(int iteration, Value first,
                  llvm::function_ref<bool(int ahead)> includes) {
    made.clear();
    const auto &chunks = pipeline.chunks;
    for (size_t number = 0; number < pipeline.places.size(); ++number) {
      if (number == chunks.first && number < chunks.end) {
        takeChunks(iteration, first, includes);
        number = chunks.end - 1;
        continue;
      }
      takePlace(pipeline.places[number], iteration, first, includes);
    }
  }

  void takePlace(const Place &place, int iteration, Value first,
                 llvm::function_ref<bool(int ahead)> includes) {
    bool isLoop = !includes;
    if (!place.step) {
      if (isLoop || (isLdsTouched && !isOfLoop(place.order)))
        keep(place.order);
      if (place.order == Order::Barrier)
        isLdsTouched = false;
      return;
    }
    if (!isLoop && !includes(place.ahead))
      return;
    const auto &row = pipeline.rowOf(*place.step);
    isLdsTouched |= row.means == Pipeline::Lds;
    current = iteration + place.ahead;
    chunk = place.chunk;
    turn = turnOfIteration;
    if (turn)
      *turn += place.ahead;
    take(*place.step, after(first, place.ahead));
    if (row.means == Pipeline::Vectors)
      for (Slot written : row.writes)
        made.push_back({written, current});
  }

  void takeChunks(int iteration, Value first,
                  llvm::function_ref<bool(int ahead)> includes) {
    const auto &chunks = pipeline.chunks;
    auto sums = llvm::map_to_vector(chunks.sums,
                                    [&](Slot slot) { return nothing(slot); });
    auto set = [&](mlir::ValueRange values) {
      for (auto [slot, value] : llvm::zip_equal(chunks.sums, values))
        slots[{slot, iteration}] = {value};
    };
    auto loop = mlir::scf::ForOp::create(
        builder, constant(0), constant(chunks.count), constant(1), sums);
    {
      mlir::OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      set(loop.getRegionIterArgs());
      chunkOfLoop = loop.getInductionVar();
      for (size_t number = chunks.first; number < chunks.end; ++number)
        takePlace(pipeline.places[number], iteration, first, includes);
      chunkOfLoop = nullptr;
      mlir::scf::YieldOp::create(
          builder, llvm::map_to_vector(chunks.sums, [&](Slot slot) {
            return slots[{slot, iteration}].front();
          }));
    }
    set(loop.getResults());
  }

  /// What is carried on from `iterations` of a loop's body.
  llvm::SmallVector<Value> pack(int iterations) {
    llvm::SmallVector<Value> values = sumValues();
    carried.clear();
    for (auto [slot, block] : pipeline.carried()) {
      Values &held = slots[{slot, block + iterations}];
      const bool isHeld = !held.empty() && held.front();
      const Values packed = isHeld ? held : nothingsOf(slot);
      carried.append(packed.size(), {slot, block});
      llvm::append_range(values, packed);
    }
    return values;
  }
  void unpack(mlir::ValueRange values) {
    slots.clear();
    for (auto [key, value] : llvm::zip_equal(carried, setSums(values)))
      slots[key].push_back(value);
  }

  std::map<typename Pipeline::Key, Values> slots;
  /// What was packed last: of each value the slot.
  llvm::SmallVector<typename Pipeline::Key> carried;
  /// By vector instructions of this segment.
  llvm::SmallVector<typename Pipeline::Key> made;
  int current = 0;           ///< block that a step is about, as slots count
  bool isLdsTouched = false; ///< since the last barrier
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_H
