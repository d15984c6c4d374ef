#!/usr/bin/env python3
"""Libraries of kernels in Python: what they say of themselves, in processes of all kinds.

    test_libraries.py PACKAGE [unittest's arguments]

fovea_case.py says what PACKAGE is.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from fovea_case import PACKAGE, ROOT, Case, lib

import fovea


class Packages(Case):
    def test_kernels(self):
        self.assertEqual([k.id for k in lib.kernels],
                         list(range(1, len(lib.kernels) + 1)))
        self.assertIn("head_dim=64", lib.kernels[0].problem)
        self.assertEqual(lib.hip.kind, "sim")
        self.assertTrue(lib.device().arch.startswith("gfx942"))
        self.refused(fovea.InvalidArgumentError, "7", lib.device, 7)
        self.refused(TypeError, "device is 'cpu'", lib.device, "cpu")
        spec = fovea.Spec((1, 1, 4, 32), "float16")
        self.refused(TypeError, "device is 1.5", fovea.explain, spec, spec, spec, device=1.5,
                     library=lib)

    def test_explain(self):
        def spec(n, d=64):
            return fovea.Spec((1, n, 100, d), "bfloat16")

        for backward in (False, True):
            found = fovea.explain(spec(4), spec(2), spec(2), backward=backward,
                                  mask="causal-top-left", library=lib)
            self.assertTrue(found)
            self.assertEqual(lib.kernels[found.chosen.kernel - 1].problem.partition(
                ";")[0], "backward" if backward else "forward")
            self.assertIn("refused", {step.state for step in found.candidates})
            self.assertIn("chosen", str(found))
        missing = fovea.explain(spec(4, 72), spec(4, 72), spec(4, 72), library=lib)
        self.assertFalse(missing)
        self.assertIsInstance(missing.error, fovea.NotFoundError)
        self.assertIn("FOVEA_COMPILE", missing.message)

    def test_time(self):
        spec = fovea.Spec((1, 2, 256, 64), "bfloat16")
        for backward, launches in ((False, 1), (True, 3)):
            found = fovea.time(spec, spec, spec, backward=backward, window=(31, 0),
                               library=lib, samples=1)
            self.assertIn(found.kernel.problem, {k.problem for k in lib.kernels})
            self.assertEqual(len(found.launches) > 1, launches > 1)
            self.assertLess(found.low, found.seconds)
            self.assertLess(found.seconds, found.high)
            self.assertTrue(found.is_tie(found))
            self.assertRegex(str(found), r"us \(.* to .*\) predicted for gfx942, .* TFLOPS")
            self.assertIn("no measurement", found._repr_html_())
            self.assertIn("window_left=31", found.text)
        wide = fovea.Spec((1, 2, 256, 32), "bfloat16")
        self.refused(fovea.NotFoundError, "FOVEA_COMPILE", fovea.time, wide, wide, wide,
                     library=lib)
        none = fovea.Spec((1, 2, 0, 64), "bfloat16")
        self.refused(fovea.InvalidArgumentError, "nothing to compute", fovea.time, none,
                     none, none, library=lib)

    def test_compile(self):
        kernel = fovea.compile("forward;dtype=bf16;head_dim=64;window=1", "gfx950",
                               schedule="block_m=64;waves=2")
        self.assertEqual(kernel.image[:4], b"\x7fELF")
        self.assertIn("block_m=64", kernel.schedule)
        self.assertTrue(kernel.contract and kernel.figures["vgprs"] > 0)
        refusal = self.refused(fovea.CompileError, "unknown chip 'gfx1'", fovea.compile,
                               "forward;dtype=bf16;head_dim=64", "gfx1")
        self.assertEqual(refusal.status, "FOVEA_COMPILER_STATUS_INVALID_ARGUMENT")

    def test_verify(self):
        (package,) = pathlib.Path(PACKAGE).glob("*.fovea")
        self.assertIn("kernels are sound", fovea.verify(package))
        with tempfile.NamedTemporaryFile(suffix=".fovea") as broken:
            content = bytearray(package.read_bytes())
            middle = len(content) // 2  # of images; the end may hold nothing
            content[middle:middle + 2000] = b"\xff" * 2000
            broken.write(content)
            broken.flush()
            self.refused(fovea.CorruptError, "", fovea.verify, broken.name)
        # What is told need be no UTF-8.
        self.refused(fovea.NotFoundError, r"no\\xe1", fovea.Library, b"/no\xe1")

    def test_refused(self):
        for kind, also, words, arguments in (
                (fovea.NotFoundError, LookupError, "no such file", {"paths": ["/no"]}),
                (fovea.InvalidArgumentError, ValueError, "options.compile is 'maybe'",
                 {"compile": "maybe"}),
                (fovea.InvalidArgumentError, ValueError, "loud", {"log": "loud"})):
            with self.subTest(words):
                paths = arguments.pop("paths", [])
                refusal = self.refused(kind, words, fovea.Library, *paths, **arguments)
                self.assertIsInstance(refusal, also)
                self.assertTrue(refusal.status.startswith("FOVEA_STATUS_"))
        no_hip = fovea.Library(PACKAGE, hip="/nowhere.so")
        self.refused(fovea.NoDeviceError, "/nowhere.so", lambda: no_hip.hip)
        with fovea.Library(PACKAGE) as closed:
            pass
        self.refused(fovea.InvalidArgumentError, "is closed", lambda: closed.kernels)

    def test_log(self):
        lines = []
        with fovea.Library(PACKAGE, hip="sim", log="info", log_to=lines.append) as one:
            one.hip
        self.assertTrue(any("gfx942.fovea" in line for line in lines))


def python(code, **variables):
    done = subprocess.run([sys.executable, "-B", "-c", code], text=True,
                          env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout


CALL = f"""
import fovea, numpy as np
lib = fovea.Library({PACKAGE!r}, hip="sim", compile="never")
x = np.ones((1, 1, 9, 64), np.float16)
"""


class Processes(Case):
    def test_the_end(self):
        """Contexts that nobody closed, and the library of calls that name none."""
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)\n"
                            "print(fovea.attention(x, x, x).sum())",
                            FOVEA_KERNELS=PACKAGE, FOVEA_HIP_LIBRARY="sim",
                            FOVEA_COMPILE="never")
        self.assertEqual((code, text.strip()), (0, "576.0"))

    def test_fork(self):
        code, text = python(CALL + """
import os
fovea.attention(x, x, x, library=lib)
if os.fork() == 0:
    try:
        fovea.attention(x, x, x, library=lib)
    except fovea.InvalidArgumentError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(fovea.attention(x, x, x, library=lib).sum())
""")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"of which this is a fork(.|\n)*576")

    def test_fork_of_the_default(self):
        """A fork has a default library of its own, and no device that was used."""
        for before, words in (("", "576"), ("call()", "InvalidArgumentError: .*this is a fork")):
            code, text = python(CALL + f"""
import os, signal
signal.alarm(50)
def call():
    print(fovea.attention(x, x, x).sum())
{before}
if os.fork() == 0:
    signal.alarm(20)
    try:
        call()
    except fovea.Error as error:
        print(type(error).__name__, error, sep=": ", flush=True)
    os._exit(0)
os.wait()
""", FOVEA_KERNELS=PACKAGE, FOVEA_HIP_LIBRARY="sim", FOVEA_COMPILE="never")
            self.assertEqual(code, 0, text)
            self.assertRegex(text, words)

    def test_another_chip(self):
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)",
                            FOVEA_SIM_TARGET="gfx1100")
        self.assertEqual(code, 1)
        self.assertRegex(text, "NotFoundError: (.|\n)*gfx1100")

    def test_a_fault_of_a_kernel(self):
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)",
                            FOVEA_SIM_BUDGET="10", FOVEA_SIM_QUIET="1")
        self.assertEqual(code, 1)
        self.assertRegex(text, "fovea.*HipError: hipStreamSynchronize: "
                         "hipErrorLaunchTimeOut\n(.|\n)*attn_fwd")

    def test_half_installed(self):
        for library, words in (
                ("/nowhere.so", "libfovea.so.0 cannot be opened: /nowhere.so.*"
                 "FOVEA_LIBRARY names another file"),
                (str(pathlib.Path(fovea.__file__).parent / "lib/libfovea_hipsim.so"),
                 "has no fovea_last_message: it is of an earlier version than this")):
            code, text = python("import fovea", FOVEA_LIBRARY=library)
            self.assertEqual(code, 1)
            self.assertRegex(text, "ImportError: fovea: .*" + words)
        code, text = python("import fovea; fovea.compile('', '')",
                            FOVEA_COMPILER_LIBRARY="/nowhere.so")
        self.assertRegex(text, "NotFoundError: fovea: libfovea_compiler.so.0 cannot be")


@unittest.skipUnless((ROOT / "python").exists(), "not beside the sources")
class Abi(Case):
    def test_layouts(self):
        """A field that ctypes would have elsewhere is refused, and nothing written."""
        baseline = (ROOT / "test/Abi/fovea.abi").read_text()
        line = "field fovea_device_info_t.arch at 8, 8 bytes, const char*"
        self.assertIn(line, baseline)
        for other, words in (
                (baseline, None),
                (baseline.replace(line, line.replace("at 8", "at 16")),
                 "arch .* is 8 bytes at 16, in ctypes 8 at 8"),
                (baseline.replace("struct fovea_window_t 40", "struct fovea_window_t 48"),
                 "fovea_window_t has 48 bytes, in ctypes 40"),
                (baseline.replace(line, line.replace("const char*", "wchar_t")),
                 "no type of ctypes is known for 'wchar_t'")):
            with tempfile.TemporaryDirectory() as folder:
                table = pathlib.Path(folder, "fovea.abi")
                table.write_text(other)
                made = pathlib.Path(folder, "_abi.py")
                done = subprocess.run(
                    [sys.executable, "-B", ROOT / "python/generate_abi.py", made, "1",
                     table], stderr=subprocess.PIPE, text=True)
                self.assertEqual(made.exists(), words is None, done.stderr)
                self.assertRegex(done.stderr, words or "^$")


if __name__ == "__main__":
    unittest.main()
