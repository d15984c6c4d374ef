//===- CInterfaceTest.cpp - contexts, packages, kernels, versions ---------===//

#include "RuntimeTest.h"

#include "Problem.h" // of runtime/src: a header without code behind it

using namespace fovea;
using namespace fovea::test;

extern "C" int foveaCHeaderTest(void);

namespace {
using CInterfaceTest = RuntimeTest;
} // namespace

TEST_F(CInterfaceTest, HeaderIsC99) { EXPECT_EQ(foveaCHeaderTest(), 1); }

TEST_F(CInterfaceTest, NullArgumentsAreNamed) {
  expectStatus(fovea_context_create(nullptr, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"context is NULL"});
  ContextPtr context = makeContext();
  expectStatus(fovea_package_open(nullptr, "x"), FOVEA_STATUS_INVALID_ARGUMENT,
               {"context is NULL"});
  expectStatus(fovea_package_open(context.get(), nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"path is NULL"});
  expectStatus(fovea_kernel_info(context.get(), 1, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"info is NULL"});
  expectStatus(fovea_forward(context.get(), nullptr, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"params is NULL"});
  EXPECT_EQ(fovea_kernel_count(nullptr), 0u);
  EXPECT_EQ(fovea_hip_symbol(context.get(), nullptr), nullptr);
  fovea_context_destroy(nullptr);
}

TEST_F(CInterfaceTest, StatusNames) {
  EXPECT_STREQ(fovea_status_name(FOVEA_STATUS_OK), "FOVEA_STATUS_OK");
  EXPECT_STREQ(fovea_status_name(FOVEA_STATUS_INTERNAL),
               "FOVEA_STATUS_INTERNAL");
  EXPECT_STREQ(fovea_status_name(-1), "unknown fovea_status_t");
  EXPECT_STREQ(fovea_status_name(11), "unknown fovea_status_t");
}

TEST_F(CInterfaceTest, KernelsOfAFolderOfPackages) {
  write({makeRecord(makeProblem(128), 128), makeRecord(makeProblem(64), 64)});
  writeTo(dir.file("gfx950.fovea"), {makeRecord(makeProblem(96))}, {},
          "gfx950");
  writeBytes(dir.file("notes.txt"), {'x'});
  ContextPtr context = makeContext();
  EXPECT_EQ(fovea_kernel_count(context.get()), 2u);
  expectStatus(fovea_package_open(context.get(), dir.path().c_str()),
               FOVEA_STATUS_OK);
  EXPECT_EQ(fovea_kernel_count(context.get()), 5u);

  fovea_kernel_info_t info{};
  info.struct_size = sizeof(info);
  expectStatus(fovea_kernel_info(context.get(), 1, &info), FOVEA_STATUS_OK);
  EXPECT_EQ(info.id, 1u);
  EXPECT_EQ(info.package, path);
  EXPECT_STREQ(info.target, "gfx942");
  EXPECT_STREQ(info.problem, "forward;dtype=bf16;head_dim=128");
  EXPECT_STREQ(info.schedule, "block_m=128,block_n=64,waves=4");
  EXPECT_STREQ(info.symbol, "kernel_m128");
  EXPECT_EQ(info.abi_version, fovea::abiVersionOf(fovea::OpKind::Forward));
  EXPECT_EQ(info.block_m, 128);
  EXPECT_EQ(info.block_n, 64);
  EXPECT_EQ(info.threads, 256);
  EXPECT_EQ(info.vgprs, 128);
  EXPECT_EQ(info.agprs, 64);
  EXPECT_EQ(info.sgprs, 40);
  EXPECT_EQ(info.lds_bytes, 32768);
  EXPECT_EQ(info.scratch_bytes, 0);
  EXPECT_EQ(info.occupancy, 2);
  EXPECT_EQ(info.matrix_instructions, 96);
  EXPECT_EQ(info.code_bytes, 4096);
  EXPECT_EQ(info.compile_ms, 123.5);
  EXPECT_EQ(info.vgpr_spills, 3);
  EXPECT_EQ(info.sgpr_spills, 1);
  expectStatus(fovea_kernel_info(context.get(), 5, &info), FOVEA_STATUS_OK);
  EXPECT_STREQ(info.target, "gfx950");
  expectStatus(fovea_kernel_info(context.get(), 0, &info),
               FOVEA_STATUS_INVALID_ARGUMENT, {"id is 0, not in 1 to 5"});
  expectStatus(fovea_kernel_info(context.get(), 6, &info),
               FOVEA_STATUS_INVALID_ARGUMENT, {"id is 6"});
}

TEST_F(CInterfaceTest, PackagesThatAreRefused) {
  ContextPtr context = makeContext();
  expectStatus(fovea_package_open(context.get(), path.c_str()),
               FOVEA_STATUS_NOT_FOUND, {"no such file", path.c_str()});
  expectStatus(fovea_package_open(context.get(), dir.path().c_str()),
               FOVEA_STATUS_NOT_FOUND, {"holds no package (*.fovea)"});
  write({makeRecord(makeProblem(64))});
  const std::string bad = dir.file("bad.fovea");
  writeBytes(bad, std::vector<uint8_t>(5000, 1));
  expectStatus(fovea_package_open(context.get(), bad.c_str()),
               FOVEA_STATUS_CORRUPT, {"not that of an SQLite file"});
  // One bad file: nothing of the folder is opened.
  expectStatus(fovea_package_open(context.get(), dir.path().c_str()),
               FOVEA_STATUS_CORRUPT, {bad.c_str()});
  EXPECT_EQ(fovea_kernel_count(context.get()), 0u);
}

TEST_F(CInterfaceTest, OptionsAndVariables) {
  fovea_context_t *context = nullptr;
  fovea_context_options_t options{};
  options.struct_size = sizeof(options);
  options.log = "loud";
  expectStatus(fovea_context_create(&options, &context),
               FOVEA_STATUS_INVALID_ARGUMENT,
               {"options.log is 'loud', not off, info or dispatch"});
  EXPECT_EQ(context, nullptr);
  options.log = nullptr;
  options.hip_library = "";
  expectStatus(fovea_context_create(&options, &context),
               FOVEA_STATUS_INVALID_ARGUMENT, {"options.hip_library is empty"});
  ::setenv("FOVEA_LOG", "shout", 1);
  expectStatus(fovea_context_create(nullptr, &context),
               FOVEA_STATUS_INVALID_ARGUMENT, {"FOVEA_LOG is 'shout'"});
  ::setenv("FOVEA_LOG", "", 1);
  expectStatus(fovea_context_create(nullptr, &context), FOVEA_STATUS_OK);
  fovea_context_destroy(context);
  ::unsetenv("FOVEA_LOG");
}

TEST_F(CInterfaceTest, StructuresOfOtherVersions) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  // A caller of a later version: more fields, which must be zero.
  struct {
    fovea_forward_params_t known;
    uint64_t later;
  } params{makeParams(), 0};
  params.known.struct_size = sizeof(params);
  expectStatus(fovea_forward_select(context.get(), &params.known, 0, nullptr),
               FOVEA_STATUS_OK);
  params.later = 1;
  expectStatus(fovea_forward_select(context.get(), &params.known, 0, nullptr),
               FOVEA_STATUS_INCOMPATIBLE,
               {"params uses fields of a later version"});
  // Sizes that no version had.
  for (uint32_t size : {0u, 8u, 224u - 8, 1u << 20}) {
    params.known.struct_size = size;
    expectStatus(fovea_forward_select(context.get(), &params.known, 0, nullptr),
                 FOVEA_STATUS_INVALID_ARGUMENT, {"params.struct_size is"});
  }
  // What is written stays inside what the caller said it has.
  struct {
    fovea_forward_plan_t known;
    uint32_t later;
  } plan{{}, 7};
  plan.known.struct_size = sizeof(plan);
  fovea_forward_params_t sound = makeParams();
  expectStatus(fovea_forward_select(context.get(), &sound, 0, &plan.known),
               FOVEA_STATUS_OK);
  EXPECT_EQ(plan.known.kernel, 1u);
  EXPECT_EQ(plan.known.struct_size, sizeof(plan));
  EXPECT_EQ(plan.later, 7u);
  plan.known.struct_size = 12;
  expectStatus(fovea_forward_select(context.get(), &sound, 0, &plan.known),
               FOVEA_STATUS_INVALID_ARGUMENT, {"plan.struct_size is 12"});
}

TEST_F(CInterfaceTest, LogTellsLibraryPackageAndChoice) {
  write({makeRecord(makeProblem(128))});
  std::string lines;
  const ContextPtr context = makeContext(FAKE_HIP6, &lines);
  fovea_forward_params_t params = makeParams();
  expectStatus(fovea_forward(context.get(), &params, nullptr), FOVEA_STATUS_OK);
  for (const char *part :
       {"fovea: HIP library ", "its path was given",
        "fovea: device 0: gfx942:sramecc+:xnack-, 304 compute units",
        "fovea: package ", "gfx942, 1 kernel, by", "fovea: loaded kernel 1",
        "lengths 300x500", "chosen by the rule, grid 8x3x2"})
    EXPECT_NE(lines.find(part), std::string::npos) << part << "\n" << lines;
}
