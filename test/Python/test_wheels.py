#!/usr/bin/env python3
"""What the package says of other wheels, in a folder laid out as pip does: which one is
missing, broken or of another version, and where packages of kernels are found.

test_wheels.py FOLDER: FOLDER has a package gfx942.fovea."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import fovea

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = pathlib.Path(sys.argv.pop(1))
COMPILE = "fovea.compile('forward;dtype=bf16;head_dim=64', 'gfx942')"


class Wheels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name)
        package = pathlib.Path(fovea.__file__).parent
        (self.site / "fovea" / "lib").mkdir(parents=True)
        for file in package.glob("*.py"):
            shutil.copy(file, self.site / "fovea")
        (self.site / "fovea/lib/libfovea.so.0").symlink_to(
            (package / "lib/libfovea.so.0").resolve())
        self.install("fovea")

    def install(self, name, version=fovea.__version__):
        info = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    def run_python(self, text):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("FOVEA_")}
        return subprocess.run(
            [sys.executable, "-S", "-B", "-c", f"import fovea; print({text})"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**environment, "PYTHONPATH": str(self.site), "FOVEA_HIP_LIBRARY": "sim"},
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

    def test_kernels(self):
        subprocess.run([sys.executable, "-B", ROOT / "scripts/kernel-wheel.py", "-o", self.site,
                        KERNELS / "gfx942.fovea"], check=True, stdout=subprocess.DEVNULL)
        wheel, = self.site.glob("fovea_kernels_gfx942-*-py3-none-any.whl")
        zipfile.ZipFile(wheel).extractall(self.site)
        self.assertIn(str(self.site / "fovea_kernels/gfx942.fovea"),
                      self.run_python("fovea.default_library().kernels[0].package"))


if __name__ == "__main__":
    unittest.main()
