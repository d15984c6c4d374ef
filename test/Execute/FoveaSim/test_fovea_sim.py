#!/usr/bin/env python3
"""fovea-sim with programs of C++ and Python.

    test_fovea_sim.py FOVEA_SIM FOLDER

FOLDER has sum, which is linked with rocm/libamdhip64.so.6; sum-with-hip, which has
HIP in it; and static.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
SUM = str(FOLDER / "sum")


def run(*arguments, **settings):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("FOVEA_SIM_")}
    environment.update(settings)
    return subprocess.run([SIM, *arguments], capture_output=True, text=True,
                          env=environment, timeout=300)


def summary(*arguments, **settings):
    """The JSON form and what the program printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        done = run("--report=json", f"--output={path}", *arguments, **settings)
        return json.loads(path.read_text()), done


class Programs(unittest.TestCase):
    def test_program_is_really_linked_with_another_library(self):
        done = subprocess.run([SUM], capture_output=True, text=True)
        self.assertEqual(done.returncode, 70)
        self.assertIn("ROCm's hipMalloc was called", done.stdout)

    def test_runs_in_hips_place_and_counts(self):
        found, done = summary(SUM)
        self.assertEqual(done.stdout, "sum 229376, right\n")
        self.assertEqual(done.stderr, "")  # no warning of the loader either
        self.assertEqual(found["exit_status"], 0)
        self.assertEqual([p["chips"] for p in found["processes"]], [["gfx942"]])
        kernel, = found["kernels"]
        self.assertEqual(kernel["kernel"],
                         "void sumBlocks<true>(float const*, float*, unsigned int)")
        self.assertEqual((kernel["launches"], kernel["workgroups"]), (1, 256))
        self.assertEqual(sum(kernel["classes"].values()), kernel["instructions"])
        self.assertEqual(found["total"]["instructions"], kernel["instructions"])
        self.assertNotIn("predicted", kernel)
        self.assertEqual(found["findings"], [])

    def test_text(self):
        done = run(SUM)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(
            done.stderr,
            r"^fovea-sim: 1 process on simulated gfx942: 1 launch of 1 kernel\n"
            r" +launches +workgroups +instructions +kernel\n"
            r" +1 +256 +\d+  void sumBlocks<true>\(.*\)\n"
            r"  found: nothing \(bounds and budget are always watched; --check=all "
            r"watches more\)\n$")
        self.assertIn("found: nothing (watched: race-lds)",
                      run("--check=race-lds", SUM).stderr)
        self.assertEqual(run("--report=none", SUM).stderr, "")

    def test_another_chip(self):
        found, done = summary("--target=gfx1100", SUM)
        self.assertEqual((done.returncode, found["kernels"][0]["chip"]),
                         (0, "gfx1100"))

    def test_chip_that_the_program_has_no_code_for(self):
        found, done = summary("--target=gfx90a", SUM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("gfx90a", found["refusals"][0])

    def test_race(self):
        found, done = summary("--check=all", SUM, "race")
        finding, = found["findings"]
        self.assertEqual(finding["by"], "race-lds")
        self.assertRegex(finding["message"], r"sum\.hip:\d+")
        self.assertEqual((done.returncode, found["exit_status"]), (1, 1))
        self.assertIn("found by race-lds: ", run("--check=all", SUM, "race").stderr)
        self.assertEqual(summary("--check=all", SUM)[0]["findings"], [])

    def test_fault(self):
        found, done = summary(SUM, "beyond")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(found["findings"][0]["by"], "bounds")

    def test_predicted_time(self):
        found, _ = summary("--time", SUM)
        time = found["kernels"][0]["predicted"]
        self.assertEqual(time["launches"], 1)
        self.assertLess(time["low"], time["seconds"])
        self.assertLess(time["seconds"], time["high"])
        self.assertNotIn("unpredicted", time)
        again, _ = summary("--time", SUM)
        self.assertEqual(again["kernels"], found["kernels"])
        self.assertRegex(run("--time", SUM).stderr,
                         r"1  +256 +\d+  \d[\d.]* us \(\d[\d.]* us to \d[\d.]* us")

    def test_predicted_time_on_rdna(self):
        done = run("--time", "--target=gfx1100", SUM)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"1  +256 +\d+  \d[\d.]* us \(\d[\d.]* us to \d")
        self.assertNotIn("without a prediction", done.stderr)

    def test_status_is_the_programs(self):
        self.assertEqual(run("sh", "-c", "exit 7").returncode, 7)
        done = run("sh", "-c", "kill -SEGV $$")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertIn(f"ended by signal {int(signal.SIGSEGV)} (", done.stderr)

    def test_signals_before_the_program_is_known(self):
        # The program's first act is to have its parent asked to end.
        done = run("sh", "-c", "trap 'exit 5' TERM; kill -TERM $PPID; sleep 10")
        self.assertEqual(done.returncode, 5)

    def test_signals_are_handed_on(self):
        child = subprocess.Popen(
            [SIM, "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.terminate()
        self.assertEqual(child.wait(timeout=60), 5)
        child.stdout.close()

    def test_error_exit_code(self):
        handles = ("sh", "-c", '"$0" beyond; exit 0', SUM)
        self.assertEqual(run(*handles).returncode, 0)
        self.assertEqual(run("--error-exitcode=9", *handles).returncode, 9)
        self.assertEqual(run("--error-exitcode=9", SUM, "beyond").returncode, 1)
        self.assertEqual(run("--error-exitcode=9", SUM).returncode, 0)

    def test_arguments_are_the_programs(self):
        done = run("--report=none", "echo", "--target=nothing", "", "-h", "--")
        self.assertEqual(done.stdout, "--target=nothing  -h --\n")
        self.assertEqual(run("--report", "none", "--", "echo", "--", "a").stdout,
                         "-- a\n")

    def test_several_processes(self):
        found, _ = summary("sh", "-c", '"$0" & "$0" race; wait', SUM)
        self.assertEqual(len(found["processes"]), 2)
        self.assertEqual(len(found["kernels"]), 2)

    def test_python(self):
        text = (
            "import ctypes\n"
            "for name in ('libamdhip64.so', 'libamdhip64.so.7', 'libamdhip64.so.5',\n"
            f"             '{FOLDER}/rocm/libamdhip64.so.6', '/opt/rocm/lib/libamdhip64.so'):\n"
            "    hip = ctypes.CDLL(name)\n"
            "    count = ctypes.c_int()\n"
            "    assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0\n"
            "    assert count.value == 2, (name, count)\n"
            "try:\n"
            "    ctypes.CDLL('/nowhere/libamdhip64.so.debug')\n"
            "except OSError: print('done')\n")
        found, done = summary("--target=gfx942,gfx950", sys.executable, "-c", text)
        self.assertEqual(done.stdout, "done\n", done.stderr)
        process, = found["processes"]
        self.assertEqual(process["chips"], ["gfx942", "gfx950"])

    def test_own_log_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            for runs in (1, 2):
                done = run(SUM, FOVEA_SIM_LOG=log)
                self.assertIn("1 launch of 1 kernel", done.stderr)
                with open(log) as lines:
                    records = [json.loads(line)["record"] for line in lines]
                self.assertEqual(records.count("launch"), runs)


class Errors(unittest.TestCase):
    def refused(self, status, text, *arguments, **settings):
        done = run(*arguments, **settings)
        self.assertEqual((done.returncode, done.stdout), (status, ""))
        self.assertRegex(done.stderr, text)

    def test_programs(self):
        self.refused(127, "no program 'no-such-program' in the folders of PATH",
                     "no-such-program")
        self.refused(127, "there is no program '/no/such'", "/no/such")
        self.refused(126, "is a folder", str(FOLDER))
        self.refused(126, "not executable.*fovea-sim python3 ", __file__.replace(
            "test_fovea_sim.py", "launch.py"))
        self.refused(126, "linked statically.*without -static", str(FOLDER / "static"))
        self.refused(126, "has HIP itself in it.*-lamdhip64",
                     str(FOLDER / "sum-with-hip"))
        done = run("true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("did not use HIP", done.stderr)

    def test_settings(self):
        self.refused(125, "--target: .*gfx999.*gfx942", "--target=gfx999", SUM)
        self.refused(125, "--check is 'races'; it takes all", "--check=races", SUM)
        self.refused(125, "FOVEA_SIM_THREADS is 'x'; it takes", SUM,
                     FOVEA_SIM_THREADS="x")
        self.refused(125, "FOVEA_SIM_LOG is '/no/log'|the log is '/no/log'", SUM,
                     FOVEA_SIM_LOG="/no/log")
        self.refused(125, "program is required")
        self.refused(125, "--error-exitcode", "--error-exitcode=0", SUM)
        self.refused(125, "cannot write '/no/file'", "-o", "/no/file", "true")
        self.refused(125, "--no-such-option", "--no-such-option", SUM)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
