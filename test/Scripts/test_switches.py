#!/usr/bin/env python3
"""scripts/test.sh: what its switches configure, build and run, and what it refuses;
scripts/archives.sh beside it: which archives it makes, what it refuses, and what the
check of what they have finds (manylinux.sh).

    test_switches.py SCRIPT CTEST FOLDER

In FOLDER are stand-ins of cmake, ninja, dpkg-query and ctest, which say how they were
called; CTEST itself only tells of its options.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SCRIPT, CTEST, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
BUILD = FOLDER / "out"
STAND_INS = {
    "cmake": 'mkdir -p "$6"; echo "cmake $CC $CXX ${*:7}"',
    "ninja": 'echo "ninja $*"',
    "ctest": f'[ "$1" = --help ] && exec {CTEST} --help; echo "ctest $(basename "$PWD") ${{*:2}}"',
    "dpkg-query": "echo ii",
}


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX")}
    environment.update(PATH=f"{FOLDER / 'bin'}:{os.environ['PATH']}", FOVEA_BUILD_DIR=str(BUILD),
                       FOVEA_CMAKE_ARGS="-DOWN=1")
    return subprocess.run([SCRIPT, *arguments], env=environment, text=True, capture_output=True)


class Switches(unittest.TestCase):
    def setUp(self):
        for folder in FOLDER.glob("out*"):
            shutil.rmtree(folder)
        (FOLDER / "bin").mkdir(parents=True, exist_ok=True)
        for name, text in STAND_INS.items():
            path = FOLDER / "bin" / name
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)

    def configured(self, *arguments):
        """(folder, compiler, settings, what ctest is given)."""
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        cmake, ninja, ctest = done.stdout.splitlines()
        _, cc, _, *settings = cmake.split()
        _, folder, *_ = ctest.split(maxsplit=2)
        self.assertTrue(ninja.endswith(folder), ninja)
        self.assertEqual(settings[-1], "-DOWN=1")
        # Several sources to a compilation, and by GCC each by itself: the last one counts.
        unity = [s for s in settings if "UNITY" in s]
        self.assertEqual(unity[-1], f"-DCMAKE_UNITY_BUILD={'OFF' if 'gcc' in folder else 'ON'}")
        settings = [s for s in settings[:-1] if s not in unity]
        return folder, pathlib.Path(cc).name, settings, ctest.split()[4:]

    def test_plain(self):
        self.assertEqual(self.configured(), ("out", "clang", [], []))
        self.assertEqual(self.configured("-R", "lit", "--rerun-failed", "--repeat", "until-pass:2"),
                         ("out", "clang", [], ["-R", "lit", "--rerun-failed", "--repeat",
                                               "until-pass:2"]))

    def test_switches(self):
        self.assertEqual(self.configured("--compiler=gcc", "-j1"),
                         ("out-gcc", "gcc", [], ["-j1"]))
        self.assertEqual(self.configured("--assertions"),
                         ("out-assertions", "clang", ["-DFOVEA_ASSERTIONS=ON"], []))
        folder, cc, settings, rest = self.configured(
            "--sanitize=undefined,address", "--compiler=gcc", "-L", "unit")
        self.assertEqual((folder, cc, rest), ("out-gcc-address-undefined", "gcc", ["-L", "unit"]))
        self.assertIn("-DFOVEA_SANITIZE=address,undefined", settings)
        self.assertIn("-DFOVEA_BUILD_COMPILER=OFF", settings)

    def test_full(self):
        self.assertEqual(self.configured("--full", "-R", "Grid"),
                         ("out", "clang", [], ["-C", "Full", "-R", "Grid"]))

    def test_refused(self):
        for arguments, reason in (
                (("--compiler=icc",), "gcc, clang"),
                (("--sanitize",), "has no value"),
                (("--sanitize=",), "names nothing"),
                (("--sanitize=memory",), "no 'memory': address, undefined, thread"),
                (("--sanitize=address,thread",), "cannot be in one program"),
                (("--sanitize=address", "--sanitize=undefined"), "is given twice"),
                (("-R", "lit", "--assertions"), "switches come first"),
                (("-R", "lit", "--full"), "switches come first"),
                (("--assertion",), "has an option '--assertion'"),
                (("--quie",), "has an option '--quie'")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(reason, done.stderr)
            self.assertIn("--help", done.stderr)

    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--compiler=", "--assertions", "--sanitize=", "build-gcc", "ctest"):
            self.assertIn(word, done.stdout)


class Archives(unittest.TestCase):
    """By what it does before anything is built."""

    def run_it(self, *arguments):
        return subprocess.run([pathlib.Path(SCRIPT).with_name("archives.sh"), *arguments],
                              text=True, capture_output=True)

    def names(self, *arguments):
        """Of each archive what stands behind the version."""
        done = self.run_it("--list", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        matches = [re.fullmatch(r"fovea-\d+\.\d+\.\d+-(.*)\.tar\.gz", line)
                   for line in done.stdout.splitlines()]
        self.assertTrue(all(matches), done.stdout)
        return [match[1] for match in matches]

    def test_names(self):
        machine = f"manylinux_2_28_{os.uname().machine}"
        self.assertEqual(self.names(), [
            f"{machine}-{part}" for part in ("runtime", "aotriton", "compiler", "simulator")]
            + ["kernels"])
        self.assertEqual(self.names("--without=simulator,compiler"),
                         [f"{machine}-runtime", f"{machine}-aotriton"])
        self.assertEqual(self.names("--images=gfx942,gfx12-generic", "--without=simulator")[-3:],
                         ["kernels", "images-amd-gfx942", "images-amd-gfx12-generic"])
        self.assertEqual(self.names("--images=gfx942", "--spec=kernels/inference.json")[-1],
                         "images-amd-gfx942")

    def test_refused(self):
        for arguments, reason in (
                (("--without=runtime",), "no 'runtime': compiler simulator"),
                (("--without=",), "names nothing"),
                (("--without=,",), "names nothing"),
                (("--without=compiler", "--without=simulator"), "is given twice"),
                (("--images",), "has no value"),
                (("--images=,",), "names nothing"),
                (("--images=gfx942,gfx942",), "names 'gfx942' twice"),
                (("--images=gfx942", "--images=gfx950"), "is given twice"),
                (("--images=*",), "no '*'"),
                (("--spec=kernels/sdpa.json",), "--images compiles, which is not given"),
                (("--images=gfx942", "--spec=kernels/sdpa.json", "--spec=kernels/inference.json"),
                 "is given twice"),
                (("--images=gfx906",), "no 'gfx906': gfx908 "),
                (("--images=gfx942", "--without=compiler"), "needs the compiler"),
                (("--spec=none.json",), "'none.json', which is no file"),
                (("gfx942",), "no switch 'gfx942'")):
            done = self.run_it("--list", *arguments)  # which builds nothing if not refused
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(reason, done.stderr)
            self.assertIn("--help", done.stderr)

    def test_help(self):
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--without=", "--images=", "--spec=", "--list", "2.28"):
            self.assertIn(word, done.stdout)


class Check(unittest.TestCase):
    """manylinux_check, of libraries that need no compiler but the machine's."""

    def setUp(self):
        self.tree = FOLDER / "out-tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)

    def library(self, name, *arguments):
        """A library that asks for no symbol, and so for no version of any."""
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-x", "c", os.devnull,
                        "-o", self.tree / name, *arguments], check=True)

    def faults(self, function="manylinux_check", folder=None, environment=None):
        """What is found, under the settings that the scripts have."""
        done = subprocess.run(
            [shutil.which("bash"), "-c", 'set -euo pipefail; . "$1"; "${@:2}"', "bash",
             pathlib.Path(SCRIPT).with_name("manylinux.sh"), function, folder or self.tree],
            env=environment, text=True, capture_output=True)
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        return [line.strip() for line in done.stderr.splitlines()]

    def test_needed(self):
        # Itself needed by what is in the tree.
        self.library("libinside.so", "-Wl,-soname,libinside.so")
        self.library("libplain.so", "-L", self.tree, "-Wl,--no-as-needed", "-linside",
                     "-Wl,-rpath,$ORIGIN")
        self.assertEqual(self.faults(), [])
        (self.tree / "libinside.so").unlink()
        self.assertEqual(self.faults(), ["libplain.so: needs libinside.so"])

    def test_path(self):
        self.library("libpath.so", "-Wl,-rpath,$ORIGIN/../lib:/opt/elsewhere")
        self.assertEqual(self.faults(), ["libpath.so: looks for libraries in /opt/elsewhere"])

    def test_unread(self):
        (self.tree / "libcut.so").write_bytes(b"\x7fELF")
        self.assertEqual(self.faults(), ["libcut.so: readelf cannot read it"])

    def test_without_readelf(self):
        self.library("libplain.so")
        programs = self.tree / "bin"
        programs.mkdir()
        for name in ("uname", "find", "head", "tr"):
            (programs / name).symlink_to(shutil.which(name))
        (line,) = self.faults(environment={"PATH": str(programs)})
        self.assertIn("readelf, which checks", line)

    def test_folder_with_spaces(self):
        (line,) = self.faults("manylinux_link", f"{self.tree} of mine")
        self.assertIn("has spaces", line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
