#!/usr/bin/env python3
"""Every command and program of docs/StrixHalo.md, on the simulated gfx1151.

    test_strix_halo.py BIN     where the commands are

Programs are not run where PyTorch or transformers is missing.
"""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "StrixHalo.md"
BIN = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```(\w+)( predicted)?\n(.*?)^```$", TEXT, re.M | re.S)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.folder.name)
        shutil.copytree(ROOT / "kernels", cls.place / "kernels")  # as of a checkout
        # What the page has exported, and nothing else that says which device it is.
        cls.environment = {name: value for name, value in os.environ.items()
                           if name not in ("FOVEA_HIP_LIBRARY", "FOVEA_SIM_TARGET")}
        cls.environment["PATH"] = os.pathsep.join([
            str(BIN), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        for kind, _, block in BLOCKS:
            for line in block.splitlines() if kind == "sh" else ():
                if line.startswith("export "):
                    cls.environment.update(
                        word.split("=", 1) for word in shlex.split(line)[1:])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_line(self, *words, **options):
        return subprocess.run(*words, cwd=self.place, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              **options)

    def test_commands(self):
        """In the page's order, each with the exit code 0."""
        commands = [(line, predicted) for kind, predicted, block in BLOCKS if kind == "sh"
                    for line in block.splitlines() if not line.startswith("export ")]
        self.assertGreaterEqual(len(commands), 6)
        self.assertTrue(any(predicted for _, predicted in commands))
        self.assertEqual(self.environment["FOVEA_SIM_TARGET"], "gfx1151")
        for line, predicted in commands:
            with self.subTest(line):
                # As the page has it, but in a form that can be read.
                report = " --report=json" if predicted else ""
                done = self.run_line(["bash", "-c", line + report])
                self.assertEqual(done.returncode, 0, done.stdout)
                if predicted:
                    self.figures_of(json.loads(done.stdout)["runs"], "--board=" in line)
                if "library.device()" in line or line.startswith("aot-run"):
                    self.assertIn("gfx1151", done.stdout)

    def figures_of(self, runs, of_55w):
        """What is predicted is what the page says, to its last digit but one."""
        for run in runs:
            has = run["variables"]
            row = [f"head dimension {has['dim']}"]
            if has["seqlen_q"] == 1:
                row.append(f"1 row and {has['seqlen_k']} keys")
            else:
                row = [run["name"].partition(";")[0], *row, f"length {has['seqlen']}"]
            lines = [line for line in TEXT.splitlines()
                     if line.startswith("| ") and all(part in line for part in row)]
            self.assertEqual(len(lines), 1, row)
            if run["schedule"].startswith("split"):
                lines = TEXT[TEXT.index(lines[0]):].splitlines()[1:]
                self.assertIn("`--algorithm=split`", lines[0])
            said, unit = lines[0].split("|")[3 if of_55w else 2].split()
            found = (1e6 * run["seconds"] if unit == "us" else
                     run["flops_credited"] / run["seconds"] / 1e12)
            self.assertLess(abs(found / float(said) - 1), 0.02,
                            f"{row}: predicted {found:.1f} {unit}, the page says {said}")

    def test_files(self):
        """What it links to is there, and so is what it names beside its commands."""
        for link in re.findall(r"\]\(([^)#]+)", TEXT):
            self.assertTrue((PAGE.parent / link).exists(), link)
        for name in re.findall(r"\./(scripts/[\w-]+\.\w+)", TEXT):
            self.assertTrue((ROOT / name).exists(), name)

    def program(self, *modules):
        for module in modules:
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"not run: {module} is not installed")
        (program,) = [block for kind, _, block in BLOCKS
                      if kind == "python" and f"fovea.{modules[-1]}" in block]
        done = self.run_line([sys.executable, "-c", program])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_pytorch(self):
        self.program("torch")

    def test_transformers(self):
        self.program("torch", "transformers")


if __name__ == "__main__":
    if BIN is None or not (BIN / "aot-run").exists():
        print(f"not run: there is no aot-run in {BIN}")
        sys.exit(77)
    unittest.main()
