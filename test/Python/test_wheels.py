#!/usr/bin/env python3
"""What the package says of other wheels, in a folder laid out as pip does: which one is
missing, broken or of another version, and where packages of kernels are found.

test_wheels.py FOLDER: FOLDER has a package gfx942.fovea."""

import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import zipfile

import fovea

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = pathlib.Path(sys.argv.pop(1))
PACKAGE = pathlib.Path(fovea.__file__).parent
FIRST = "fovea.default_library().kernels[0].package"
COMPILE = "fovea.compile('forward;dtype=bf16;head_dim=64', 'gfx942')"


class Wheels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name)
        (self.site / "fovea" / "lib").mkdir(parents=True)
        for file in PACKAGE.glob("*.py"):
            shutil.copy(file, self.site / "fovea")
        (self.site / "fovea/lib/libfovea.so.0").symlink_to(
            (PACKAGE / "lib/libfovea.so.0").resolve())
        self.install("fovea")

    def install(self, name, version=fovea.__version__):
        info = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    def run_python(self, text, before="", **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("FOVEA_")}
        return subprocess.run(
            [sys.executable, "-B", *([] if before else ["-S"]), "-c",
             f"import fovea; {before}\nprint({text})"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**environment, "PYTHONPATH": str(self.site), "FOVEA_HIP_LIBRARY": "sim",
                 **variables},
            cwd=self.site).stdout

    def test_no_compiler(self):
        self.assertIn("it comes with the wheel fovea-compiler, which is not installed: pip "
                      f"install fovea-compiler=={fovea.__version__}", self.run_python(COMPILE))

    def test_a_removed_file(self):
        self.install("fovea-compiler")
        self.assertIn("libfovea_compiler.so.0 of the wheel fovea-compiler is missing: pip",
                      self.run_python(COMPILE))

    def test_another_version(self):
        self.install("fovea-compiler", "0.1.0")
        self.assertIn("and fovea-compiler 0.1.0 do not fit each other",
                      self.run_python(COMPILE))

    def wheel(self, *arguments):
        """Makes wheels of kernels and installs them; what was said."""
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "scripts/kernel-wheel.py", "-o", self.site,
             *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for wheel in self.site.glob("*-py3-none-any.whl"):
            with zipfile.ZipFile(wheel) as file:
                file.extractall(self.site)
            wheel.unlink()
        return done.stdout

    def test_kernels(self):
        self.wheel(KERNELS / "gfx942.fovea")
        package = str(self.site / "fovea_kernels/gfx942.fovea")
        self.assertIn(package, self.run_python(FIRST))
        # What the variable says goes before.
        other = str(shutil.copy(package, self.site / "other.fovea"))
        self.assertIn(other, self.run_python(FIRST, FOVEA_KERNELS=other))
        self.assertEqual("()\n", self.run_python("fovea.default_library().kernels",
                                                 FOVEA_KERNELS=""))

    def test_kernels_of_a_spec(self):
        spec = self.site / "spec.json"
        spec.write_text('{"ops": ["forward"], "dtypes": ["bf16"],'
                        ' "head_dims": [64]}')
        said = self.wheel(f"--spec={spec}", "--target=gfx1100,gfx950",
                          f"--aot-compile={PACKAGE / 'bin/aot-compile'}")
        self.assertRegex(said, r"fovea_kernels_gfx1100-[0-9.]+-py3-none-any.whl: 0.0 MB")
        self.assertEqual("['gfx1100', 'gfx950']\n", self.run_python(
            "[kernel.target for kernel in fovea.default_library().kernels]"))
        # There are kernels, for other chips than the device.
        message = self.run_python(
            "fovea.attention(*[numpy.zeros((1, 1, 9, 64), numpy.float16)] * 3)",
            FOVEA_HIP_LIBRARY=PACKAGE / "lib/libfovea_hipsim.so", FOVEA_COMPILE="never",
            FOVEA_SIM_TARGET="gfx942", before="import numpy")
        self.assertIn("gfx942", message)
        self.assertIn("gfx1100", message)

    def test_kernels_that_are_refused(self):
        newer = shutil.copy(KERNELS / "gfx942.fovea", self.site)
        with contextlib.closing(sqlite3.connect(newer)) as file:
            file.execute("PRAGMA user_version=9")
        self.wheel(newer)
        said = self.run_python("fovea.default_library().kernels")
        self.assertRegex(said, r"^package '.*fovea_kernels/gfx942.fovea': its format version is "
                               r"9, this library reads 2 to [0-9]; .* it is passed over: pip "
                               r"install --force-reinstall fovea-kernels-gfx942==[0-9.]+\n"
                               r"\(\)\n$")
        # Where it is named it is an error.
        self.assertIn("IncompatibleError", self.run_python(
            "fovea.default_library()", FOVEA_KERNELS=newer))

    def test_no_package(self):
        (self.site / "text.fovea").write_text("text")
        self.assertIn("text.fovea is no package of kernels (file is not a database)",
                      self.wheel(self.site / "text.fovea"))
        self.assertIn("give packages, or a spec", self.wheel())


if __name__ == "__main__":
    unittest.main()
