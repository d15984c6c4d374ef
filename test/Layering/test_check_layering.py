#!/usr/bin/env python3
"""The layering checks find planted violations and accept sound trees."""

import pathlib
import tempfile
import unittest

import check_layering as layering


class IncludesTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return layering.check_includes(root)[0]

    def test_sound_tree(self):
        self.assertEqual([], self.check({
            "runtime/include/fovea/fovea.h": "#include <stdint.h>\n",
            "runtime/src/A.cpp": '#include "A.h"\n#include <vector>\n'
                                 '#include "fovea/Package/Keys.h"\n',
            "runtime/src/A.h": '#include "fovea/fovea.h"\n#include <dlfcn.h>\n',
            "package/include/fovea/Package/Keys.h": "#include <string>\n",
            "simulator/decode/D.cpp": '#include "llvm/MC/MCInst.h"\n',
            "simulator/isa/I.cpp": '#include "exec/Wave.h"\n',
            "simulator/exec/Wave.h": "#include <sys/mman.h>\n",
        }))

    def test_direct(self):
        for path, header in (
                ("runtime/src/A.cpp", "llvm/ADT/APInt.h"),
                ("runtime/src/A.cpp", "hip/hip_runtime.h"),
                ("runtime/include/fovea/fovea.h", "fovea/Package/Keys.h"),
                ("package/src/A.cpp", "fovea/Target/TargetInfo.h"),
                ("simulator/exec/A.cpp", "llvm/ADT/APInt.h"),
                ("simulator/decode/A.cpp", "fovea/Target/MatrixInstr.h"),
                ("simulator/decode/A.cpp", "mlir/IR/Value.h"),
                ("reference/src/A.cpp", "fovea/Simulator/Chip.h"),
                ("threads/src/A.cpp", "fovea/Simulator/Chip.h"),
                ("runtime/src/A.cpp", "fovea/Threads/Parallel.h"),
                ("lib/Dialect/Attn/A.cpp", "fovea/Conversion/Passes.h"),
                ("lib/Layout/A.cpp", "mlir/IR/Value.h"),
                ("lib/Target/A.cpp", "fovea/Dialect/Attn/IR/Attn.h"),
                ("lib/Pipelines/A.cpp", "fovea/fovea.h"),
                ("examples/runtime-client/A.cpp", "fovea/Package/Keys.h")):
            for quoted in (f'"{header}"', f"<{header}>"):
                errors = self.check({path: f"#include {quoted}\n"})
                self.assertTrue(any(header in e for e in errors),
                                f"{path} {header}: {errors}")

    def test_leak_through_a_header(self):
        errors = self.check({
            "simulator/exec/A.cpp": '#include "decode/Program.h"\n',
            "simulator/decode/Program.h": '#include "Inner.h"\n',
            "simulator/decode/Inner.h": '#include "llvm/MC/MCInst.h"\n'})
        self.assertEqual(["simulator/exec/A.cpp: llvm/MC/MCInst.h comes in by "
                          "simulator/decode/Program.h -> "
                          "simulator/decode/Inner.h"], errors)

    def test_private_header_of_another_component(self):
        errors = self.check({
            "runtime/src/A.cpp": '#include "../../package/src/Database.h"\n',
            "package/src/Database.h": ""})
        self.assertEqual(1, len(errors), errors)

    def test_folder_without_a_rule(self):
        errors = self.check({"include/other/A.h": ""})
        self.assertIn("no rule covers it", errors[0])


class ChipsTest(unittest.TestCase):
    def check(self, text, path="lib/Conversion/A.cpp"):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return layering.check_chips(root)

    def test_named(self):
        for text in ('if (target.name == "gfx942")', "chip::gfx1100",
                     'name.starts_with("gfx12")', "isCDNA3(target)", "kRdna4",
                     'Option<"chip", "chip", "std::string", "\\"gfx942\\"">',
                     'x = "// no comment"; y = "gfx950";', "Mi300()"):
            errors, files = self.check("// line 1\n" + text + "\n")
            self.assertEqual((1, 1), (len(errors), files), f"{text}: {errors}")
            self.assertTrue(errors[0].startswith("lib/Conversion/A.cpp:2: "))

    def test_prose(self):
        for text in ("// as gfx942 has it", "/* gfx942\n gfx950 */ x;",
                     "let description = [{\n On gfx942: RDNA.\n}];",
                     'let summary = "for gfx942";', "kPermlaneSwap",
                     "recordName"):
            self.assertEqual([], self.check(text)[0], text)

    def test_lines_after_prose(self):
        errors, _ = self.check("let description = [{\n\n}];\n/*\n*/\ngfx908")
        self.assertIn("A.cpp:6: it names gfx908", errors[0])

    def test_where(self):
        self.assertEqual(([], 0), self.check('"gfx942"', "lib/Target/A.cpp"))
        self.assertEqual(([], 0), self.check('"gfx942"', "tools/A.cpp"))
        self.assertEqual(1, len(self.check('"gfx942"', "include/fovea/A.td")[0]))


class LibraryTest(unittest.TestCase):
    NEEDED = (" 0x0000000000000001 (NEEDED)  Shared library: [libc.so.6]\n"
              " 0x0000000000000001 (NEEDED)  Shared library: [libzstd.so.1]\n")
    SYMBOLS = ("   Num: Value Size Type Bind Vis Ndx Name\n"
               "     1: 0 0 FUNC GLOBAL DEFAULT UND dlopen@GLIBC_2.34 (3)\n"
               "     2: 0 0 OBJECT GLOBAL DEFAULT ABS FOVEA_0.1\n"
               "     3: 1000 9 FUNC GLOBAL DEFAULT 12 fovea_forward@@F_1\n")

    def test_sound(self):
        self.assertEqual([], layering.check_needed(self.NEEDED))
        self.assertEqual([], layering.check_exports(
            self.SYMBOLS, ["hip", "fovea_"], "fovea_forward"))

    def test_violations(self):
        for name in ("libLLVM.so.22.1", "libMLIR.so.22.1", "libamdhip64.so.6",
                     "libfovea_hipsim.so", "libhsa-runtime64.so.1"):
            line = f" 0x1 (NEEDED)  Shared library: [{name}]\n"
            self.assertEqual([f"it needs {name}"],
                             layering.check_needed(self.NEEDED + line))
            self.assertEqual([], layering.check_needed(line, [name]))
        self.assertTrue(layering.check_needed(""))
        leak = "     4: 1010 9 FUNC WEAK DEFAULT 12 _ZN5fovea1fEv\n"
        self.assertEqual(["it exports _ZN5fovea1fEv"],
                         layering.check_exports(self.SYMBOLS + leak, ["fovea_"],
                                                "fovea_forward"))
        self.assertEqual(["it does not export fovea_forward"],
                         layering.check_exports("", ["fovea_"], "fovea_forward"))


if __name__ == "__main__":
    unittest.main()
