//===- ObserverTest.cpp - What an observer of a launch sees ---------------===//
//
// Instructions in order with their registers and counters, and the places of
// memory instructions by address space.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"
#include "decode/Program.h"
#include "exec/Observer.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

struct Seen {
  std::string mnemonic;
  InstInfo info;
  std::vector<MemoryAccess> accesses;
  std::vector<uint64_t> firstAddress;
};

class Recorder : public Observer {
public:
  explicit Recorder(std::vector<Seen> &log) : Log(log) {}
  void before(Wave &w, const MicroOp &, uint32_t index) override {
    const InstInfo &info = w.group->program->info(index);
    Log.push_back({info.mnemonic, info, {}, {}});
  }
  void access(Wave &, const MicroOp &, const MemoryAccess &access) override {
    Log.back().accesses.push_back(access);
    Log.back().firstAddress.push_back(
        access.address[__builtin_ctzll(access.mask)]);
  }

private:
  std::vector<Seen> &Log;
};

class Factory : public ObserverFactory {
public:
  std::unique_ptr<Observer> create() override {
    return std::make_unique<Recorder>(Log);
  }
  std::vector<Seen> Log;
};

class ObserverTest : public KernelTest {
protected:
  std::vector<Seen> watch(const std::string &body) {
    AsmKernel kernel{"k", vectorBody(body)};
    kernel.ldsBytes = 4096;
    load(assemble(asmModule({kernel})));
    for (uint64_t *&p : P)
      p = buffer<uint64_t>(std::vector<uint64_t>(64, 0));
    Factory factory;
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.options.threads = 1;
    config.options.observers = &factory;
    Status status =
        run("k", config, Args().add(P[0]).add(P[1]).add(P[2]).add(P[3]));
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Count.instructions, factory.Log.size());
    return factory.Log;
  }
  static const Seen &find(const std::vector<Seen> &log, const char *mnemonic) {
    for (const Seen &seen : log)
      if (seen.mnemonic == mnemonic)
        return seen;
    ADD_FAILURE() << mnemonic << " was not executed";
    return log[0];
  }
  uint64_t *P[4];
};

bool has(const std::vector<RegRange> &list, RegRange::File file, unsigned reg,
         unsigned words) {
  for (const RegRange &r : list)
    if (r.file == file && r.reg == reg && r.words == words)
      return true;
  return false;
}

TEST_F(ObserverTest, RegistersAndCounters) {
  auto log = watch("v_mov_b32 v10, 0\n"
                   "v_add_co_u32_e64 v11, s[20:21], v2, v4\n"
                   "v_fmac_f32 v10, v2, v4\n"
                   "v_accvgpr_write_b32 a3, v10\n"
                   "v_cmp_eq_u32 vcc, 0, v2\n"
                   "s_add_u32 s24, s20, 1\n"
                   "s_waitcnt vmcnt(3) lgkmcnt(0)");
  const InstInfo &add = find(log, "v_add_co_u32").info;
  EXPECT_TRUE(has(add.writes, RegRange::Vector, 11, 1));
  EXPECT_TRUE(has(add.writes, RegRange::Scalar, 20, 2));
  EXPECT_TRUE(has(add.reads, RegRange::Vector, 2, 1));
  EXPECT_TRUE(has(add.reads, RegRange::Scalar, kExec, 2));
  EXPECT_TRUE(has(find(log, "v_fmac_f32").info.reads, RegRange::Vector, 10, 1));
  EXPECT_TRUE(has(find(log, "v_accvgpr_write_b32").info.writes,
                  RegRange::Vector, kAgprBase + 3, 1));
  EXPECT_TRUE(has(find(log, "v_cmp_eq_u32").info.writes, RegRange::Scalar, kVcc, 2));
  EXPECT_TRUE(has(find(log, "s_add_u32").info.writes, RegRange::Scc, 0, 1));
  bool found = false;
  for (const Seen &seen : log)
    found |= seen.info.waits[VmCnt] == 3 && seen.info.waits[LgkmCnt] == 0 &&
             seen.info.waits[ExpCnt] == 0xff;
  EXPECT_TRUE(found);
}

TEST_F(ObserverTest, Accesses) {
  auto log = watch("v_lshlrev_b32 v10, 3, v0\n"
                   "ds_write2_b32 v10, v2, v4 offset0:4 offset1:8\n"
                   "s_mov_b64 exec, 0xf0\n"
                   "ds_read_b64 v[12:13], v10 offset:16\n"
                   "s_mov_b64 exec, -1\n"
                   "s_waitcnt lgkmcnt(0)");
  const Seen &write = find(log, "ds_write2_b32");
  EXPECT_EQ(write.info.counts, 1 << LgkmCnt);
  ASSERT_EQ(write.accesses.size(), 2u);
  EXPECT_EQ(write.accesses[0].space, MemoryAccess::Lds);
  EXPECT_EQ(write.accesses[0].kind, MemoryAccess::Store);
  EXPECT_EQ(write.firstAddress[0], 16u);
  EXPECT_EQ(write.firstAddress[1], 32u);
  const Seen &read = find(log, "ds_read_b64");
  ASSERT_EQ(read.accesses.size(), 1u);
  EXPECT_EQ(read.accesses[0].bytes, 8u);
  EXPECT_EQ(read.accesses[0].mask, 0xf0u);
  EXPECT_EQ(read.firstAddress[0], 4 * 8u + 16);
  const Seen &load = find(log, "global_load_dwordx2");
  EXPECT_EQ(load.info.counts, 1 << VmCnt);
  ASSERT_EQ(load.accesses.size(), 1u);
  EXPECT_EQ(load.accesses[0].space, MemoryAccess::Global);
  EXPECT_EQ(load.firstAddress[0], reinterpret_cast<uint64_t>(P[0]));
  const Seen &scalar = find(log, "s_load_dwordx8");
  ASSERT_EQ(scalar.accesses.size(), 1u);
  EXPECT_TRUE(scalar.accesses[0].scalar);
}

TEST_F(ObserverTest, OnlyTheWorkgroupsAskedFor) {
  load(assemble(asmModule({{"k", "s_endpgm"}})));
  LaunchConfig config;
  config.grid = {4, 4, 1};
  config.block = {64, 1, 1};
  config.workgroups = {3, 9};
  Args args;
  args.Bytes.resize(64);
  EXPECT_TRUE(run("k", config, args).ok());
  EXPECT_EQ(Count.workgroups, 2u);
  config.workgroups = {16};
  Status status = run("k", config, args);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("workgroup 16"), std::string::npos);
}

} // namespace
