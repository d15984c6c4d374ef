# The lit suite: every .mlir and .test file below test/.
#
# Parameters (-D): roundtrip=1 runs each aot-opt once more through its own
# textual and binary forms (--verify-roundtrip).

import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "Fovea"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
# Inputs are data for tests; the other folders belong to other kinds of tests.
config.excludes = ["Inputs", "Unit", "Execute", "Cts", "Docs", "Install", "Layering"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fovea_build_dir, "test")

llvm_config.with_system_environment(["HOME", "TMP", "TEMP"])
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.use_default_substitutions()

aot_opt = os.path.join(config.fovea_tools_dir, "aot-opt")
if "roundtrip" in lit_config.params:
    aot_opt += " --verify-roundtrip"
llvm_config.add_tool_substitutions(
    [
        ToolSubst("aot-opt", aot_opt, unresolved="fatal"),
        ToolSubst("aot-compile", unresolved="fatal"),
        ToolSubst("aot-time", unresolved="ignore"),
        ToolSubst("aot-package", unresolved="ignore"),
        ToolSubst("aot-tune", unresolved="ignore"),
        ToolSubst("aot-run", unresolved="ignore"),
        ToolSubst("aot-launch", unresolved="ignore"),
        ToolSubst("fovea-cts", unresolved="ignore"),
        ToolSubst("llvm-mc", unresolved="fatal"),
        ToolSubst("ld.lld", unresolved="fatal"),
        ToolSubst("llvm-readelf", unresolved="fatal"),
        ToolSubst("split-file", unresolved="fatal"),
    ],
    [config.fovea_tools_dir, config.llvm_tools_dir],
)
config.substitutions.append(
    ("%include", os.path.join(config.test_source_root, "..", "include")))
config.substitutions.append(("%mlir-include", config.mlir_include_dir))
config.substitutions.append(("%tools", config.fovea_tools_dir))
config.substitutions.append(("%python", f'"{config.python}" -B'))
kernel_table = os.path.join(config.test_source_root, "..", "scripts", "kernel-table.py")
config.substitutions.append((
    "%kernel-table",
    f'"{config.python}" -B {kernel_table} --build={config.fovea_build_dir}'))
tuning_rows = os.path.join(config.test_source_root, "..", "scripts", "tuning-rows.py")
config.substitutions.append(("%tuning-rows-file", tuning_rows))
config.substitutions.append((
    "%tuning-rows", f'"{config.python}" -B {tuning_rows} --build={config.fovea_build_dir}'))
attention_table = os.path.join(
    config.test_source_root, "..", "benchmarks", "attention_table.py")
config.substitutions.append((
    "%attention-table",
    f'"{config.python}" -B {attention_table} --build={config.fovea_build_dir}'))
# A problem that most tests of aot-compile take; small, so quick.
config.substitutions.append(
    ("%problem", "--target=gfx942 --op=forward --dtype=bf16 --head-dim=32"))
config.substitutions.append(
    ("%gradients", "--target=gfx942 --op=backward --dtype=bf16 --head-dim=32"))

# Lines that run with scripts/test.sh --full alone: %if full %{ ... %}.
if os.environ.get("FOVEA_FULL_GRIDS", "0") not in ("", "0"):
    config.available_features.add("full")
# Arguments of a call that each build an operation: Clang builds them from the first
# to the last, GCC the other way. Tests that go by that order are Clang's.
if config.fovea_compiler_id == "Clang":
    config.available_features.add("first-argument-first")
if config.fovea_build_runtime:
    config.available_features.add("runtime")
if config.fovea_build_runtime and config.fovea_build_simulator:
    config.available_features.add("aot-time")
    config.available_features.add("aot-package")
    config.available_features.add("aot-tune")
    config.available_features.add("device")
config.substitutions.append((
    "%sim", os.path.join(config.fovea_build_dir, "lib", "libfovea_hipsim.so")))
# A code object of a few instructions, with its description, in the folder %t.
aot_time_inputs = os.path.join(config.test_source_root, "Tools", "aot-time", "Inputs")
config.substitutions.append((
    "%make-loop",
    f"rm -rf %t && mkdir -p %t && cp {aot_time_inputs}/loop.json %t && "
    f"llvm-mc -triple=amdgcn-amd-amdhsa -mcpu=gfx942 -filetype=obj "
    f"{aot_time_inputs}/loop.s -o %t/loop.o && "
    f"ld.lld -shared %t/loop.o -o %t/loop.hsaco && rm %t/loop.o"))
