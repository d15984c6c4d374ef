#!/usr/bin/env python3
"""aot-qualify on the simulated device and on one that gives other answers.

    test_qualify.py BUILD OTHERHIP PACKAGE [unittest's arguments]

BUILD: the build folder. OTHERHIP: OtherHip.cpp's library. PACKAGE: the plain kernels of
test/Cts for gfx942.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

BUILD, OTHER, PACKAGE = (pathlib.Path(sys.argv.pop(1)) for _ in range(3))
sys.path.insert(0, os.fspath(BUILD / "python"))
for name in ("FOVEA_HIP_LIBRARY", "FOVEA_SIM_TARGET", "FOVEA_PACKAGE"):
    os.environ.pop(name, None)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def qualify(self, *arguments, code, package=PACKAGE, **environment):
        done = subprocess.run(
            [BUILD / "bin" / "aot-qualify", f"--package={package}", *arguments,
             "-o", self.folder / "report"],
            env={**os.environ, **environment}, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.says = done.stdout + done.stderr
        path = self.folder / "report.json"
        return json.loads(path.read_text()) if path.exists() else None

    def time(self, *arguments, code=0):
        done = subprocess.run([BUILD / "bin" / "aot-time", *arguments], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Simulated(Case):
    def test_all_but_the_suite(self):
        report = self.qualify("--hip=sim", "--parts=images,instructions,kernels,benchmark",
                              "--cases=3", "--seqlen=64", "--heads=1", "--tokens=64", code=0)
        self.assertEqual(report["result"], "pass")
        self.assertEqual(report["findings"], [])
        self.assertTrue(report["device"]["simulated"])
        self.assertEqual(report["images"]["says"][-1].split(":")[1].split(" load")[0],
                         " 8 of 8 kernels")
        for probe in report["instructions"]["probes"]:
            self.assertEqual(probe["result"], "pass", probe)
            if "order" in probe:
                self.assertTrue(probe["order"]["device"]["found"], probe)
        self.assertGreaterEqual(len(report["kernels"]["problems"]), 8)
        # No time of a simulated device is a speed.
        text = json.dumps(report)
        self.assertNotIn('"measured"', text)
        for row in report["benchmark"]["rows"]:
            self.assertGreater(row["predicted"]["seconds"], 0)
        self.assertIn("not measured: the device is simulated", self.says)
        page = (self.folder / "report.html").read_text()
        inside = re.search(r'<script id="data" type="application/json">(.*?)</script>', page,
                           re.S).group(1)
        self.assertEqual(json.loads(inside), report)
        self.assertNotRegex(page.replace(inside, ""), r"(src|href)=|@import|url\(")

    def test_the_suite(self):
        # Its own test runs it in full; here it is a suite without a kernel of the chip.
        report = self.qualify("--hip=sim", "--target=gfx1100", "--parts=conformance,images",
                              "--cases=1", code=0)
        self.assertEqual(report["conformance"]["result"], "not run")
        self.assertEqual(report["images"]["left_out"][0]["why"], "it is for gfx942")

    def test_matrix_instructions_of_the_device_are_looked_at(self):
        report = self.qualify("--hip=sim", "--parts=instructions", code=1,
                              FOVEA_SIM_MFMA_FAULT="rotate-k")
        wrong = {probe["name"] for probe in report["instructions"]["probes"]
                 if probe["result"] != "pass"}
        self.assertIn("product_mfma_32x32x8_bf16", wrong)
        self.assertTrue(all(name.startswith("product_") for name in wrong), wrong)


class OtherAnswers(Case):
    def test_each_wrong_value_is_named(self):
        # The first element that is no whole number of a product lies behind eight tiles.
        wrong = {"copy_word": "17:1", "convert_f32_bf16": "100:8000", "integer_mul_hi": "5:80000000",
                 "mask_ballot": "1:1", "arithmetic_fma": "4242:1",
                 "exponential_exp2": "7:40", "product_mfma_16x16x16_bf16": "3:1",
                 "product_mfma_32x32x8_fp16": "9000:8000"}
        # One ulp is what hardware may be off by, and adding in another order.
        right = {"exponential_rcp": "7:1", "product_mfma_32x32x8_bf16": "9000:1"}
        faults = ",".join(f"{name}:8:{where}" for name, where in {**wrong, **right}.items())
        report = self.qualify(f"--hip={OTHER}", "--target=gfx942", "--parts=instructions",
                              code=1, FOVEA_OTHERHIP_WRONG=faults)
        self.assertFalse(report["device"]["simulated"])
        found = {probe["name"]: probe for probe in report["instructions"]["probes"]
                 if probe["result"] != "pass"}
        self.assertEqual(set(found), set(wrong))
        for name, where in wrong.items():
            self.assertEqual(found[name]["differ"], 1)
            self.assertEqual(found[name]["first"]["at"], int(where.split(":")[0]))
            self.assertIn(f"FOUND: {name} ", self.says)
        probes = {probe["name"]: probe for probe in report["instructions"]["probes"]}
        self.assertEqual(probes["exponential_rcp"]["ulps"]["most"], 1)
        product = probes["product_mfma_32x32x8_bf16"]
        self.assertEqual(product["ulps"]["most"], 1)
        self.assertFalse(product["order"]["device"]["found"])

    def test_a_wrong_result_of_attention_is_named(self):
        report = self.qualify(f"--hip={OTHER}", "--target=gfx942", "--parts=kernels", "--cases=1",
                              code=1, FOVEA_OTHERHIP_WRONG="plain_forward:24:3:40000000")
        problems = report["kernels"]["problems"]
        wrong = [problem for problem in problems if problem["result"] != "pass"]
        self.assertTrue(wrong)
        self.assertTrue(all(problem["problem"]["op"] == "forward" for problem in wrong))
        self.assertGreater(wrong[0]["beside_simulator"]["most"], 100)
        self.assertEqual(sum(wrong[0]["beside_simulator"]["counts"][1:]), 1)
        self.assertEqual(report["kernels"]["beside_simulator"], "the simulated gfx942")
        self.assertIn("FOUND: forward ", self.says)

    def test_a_part_that_ends_its_process_ends_alone(self):
        report = self.qualify(f"--hip={OTHER}", "--target=gfx942", "--parts=images,instructions",
                              code=1, FOVEA_OTHERHIP_WRONG="copy_word:8:1152921504606846976:1")
        self.assertEqual(report["images"]["result"], "pass")
        self.assertIn("ended by signal", report["instructions"]["why"])


class Benchmark(Case):
    def test_times_calibrate_predictions(self):
        report = self.qualify(f"--hip={OTHER}", "--target=gfx942", "--parts=benchmark",
                              "--seqlen=32,64", "--heads=1", "--tokens=32", code=0,
                              FOVEA_OTHERHIP_MICROSECONDS="5000")
        rows = report["benchmark"]["rows"]
        self.assertEqual(len(rows), 8)
        for row in rows:
            launches = 1 if row["op"] == "forward" else row["measured"]["seconds"] / 5e-3
            self.assertAlmostEqual(row["measured"]["seconds"], launches * 5e-3, 6)
            # As a GPU with a clock of a tenth would have it, with a tenth of scatter.
            row["measured"]["seconds"] = row["predicted"]["seconds"] * 10
        rows[0]["measured"]["seconds"] *= 1.1
        path = self.folder / "report.json"
        path.write_text(json.dumps(report))
        self.assertRegex(self.time(f"--calibrate={path}"),
                         r"8 measurements.*\n  times      by 10\.000, as if the clock was 0\.\d* GHz"
                         r".*\n  interval .* in which 0 of 8 lie; now 10 %, the farthest of all")
        both = [json.loads(self.time(*more, f"--package={PACKAGE}", "--head-dim=64", "--seqlen=64",
                                     "--heads=1", "--report=json"))
                for more in ([], [f"--calibrate={path}"])]
        kept = self.folder / "calibration.json"
        self.time(f"--calibrate={path}", f"--json={kept}")
        self.assertEqual(json.loads(kept.read_text()), both[1]["calibration"])
        for option, words in (("--report=html", "--calibrate alone makes none"),
                              ("--annotate", "--calibrate alone times none"),
                              ("--clock=1.3", "--clock gives another")):
            self.assertIn(words, self.time(f"--calibrate={path}", option, code=2))
        before, after = (run["runs"][0] for run in both)
        self.assertAlmostEqual(after["seconds"] / before["seconds"], 10, 3)
        self.assertAlmostEqual(after["launches"][0]["time_error"], 0.1, 3)
        self.assertEqual(both[1]["calibration"]["points"], 8)
        report["device"]["arch"] = "gfx950"
        path.write_text(json.dumps(report))
        self.assertIn("is a report of a gfx950; leave --calibrate out",
                      self.time(f"--calibrate={path}", f"--package={PACKAGE}", "--head-dim=64",
                                "--seqlen=64", "--heads=1", code=2))


class Refusals(Case):
    def refused(self, content, words):
        path = self.folder / "other.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        self.assertIn(words, self.time(f"--calibrate={path}", code=2))

    def test_reports_that_calibrate_nothing(self):
        good = {"format": "fovea-qualify", "version": 1, "device": {"simulated": False}}
        self.refused("{", "is no report of aot-qualify")
        self.refused({"version": 1}, "is no report of aot-qualify")
        self.refused({**good, "version": 2}, "has version 2")
        self.refused({**good, "device": {"simulated": True}}, "is of a simulated device")
        self.refused({**good, "device": 3}, "is of a simulated device")
        self.refused({**good, "benchmark": {"rows": [3, {"measured": "x"}]}}, "has 0 settled times")
        row = {"measured": {"seconds": 1, "settled": True}, "predicted": {"seconds": 1}}
        self.refused({**good, "benchmark": {"rows": 4 * [row]}}, "has 4 settled times")
        row["measured"]["settled"] = False
        self.refused({**good, "benchmark": {"rows": 9 * [row]}}, "has 0 settled times")

    def test_wrong_usage(self):
        self.qualify("--hip=sim", "--parts=speed", code=2)
        self.assertIn("speed", self.says)
        self.qualify("--hip=sim", package="/no/package", code=2)
        self.assertIn("/no/package", self.says)
        self.qualify("--hip=sim", f"--peers={__file__}", code=2)
        self.assertIn("is none of the files", self.says)
        report = self.qualify("--hip=sim", "--parts=conformance", code=0, TMPDIR="/no/folder")
        self.assertEqual(report["conformance"]["result"], "not run")
        self.assertIn("let the environment variable TMPDIR", report["conformance"]["why"])
        report = self.qualify("--hip=/no/hip.so", "--parts=images", code=3)
        self.assertEqual(report["result"], "no device")
        self.assertIn("/no/hip.so", report["device"]["why"])


class FakeTorch(types.SimpleNamespace):
    """A PyTorch for ROCm whose flash attention is refused, as on a chip that is new."""

    def __init__(self):
        import warnings

        def can(parameters, debug):
            warnings.warn("Flash attention was not compiled for current AMD GPU architecture.")
            return False

        def forced(*tensors, **options):
            warnings.warn("Flash attention kernel not used because: no image")
            raise RuntimeError("No available kernel. Aborting execution.")

        class Kernel:
            def __init__(self, backends): pass
            def __enter__(self): return self
            def __exit__(self, *error): return False

        backends = types.SimpleNamespace(FLASH_ATTENTION=1, EFFICIENT_ATTENTION=2, MATH=0)
        backend_type = type("SDPBackend", (), {
            "__call__": lambda self, number: types.SimpleNamespace(name="MATH"),
            **{name: types.SimpleNamespace(name=name) for name in vars(backends)}})()
        tensor = types.SimpleNamespace()
        tensor.to = tensor.float = lambda *kind: tensor
        event = types.SimpleNamespace(record=lambda: None, elapsed_time=lambda stop: 2.0)
        super().__init__(
            __version__="2.13.0+rocm7.0", __file__=__file__, bfloat16=0, float16=1,
            version=types.SimpleNamespace(hip="7.0"),
            randn=lambda *shape, device: tensor,
            _fused_sdp_choice=lambda *tensors: 0,
            profiler=types.SimpleNamespace(),
            nn=types.SimpleNamespace(
                functional=types.SimpleNamespace(scaled_dot_product_attention=forced),
                attention=types.SimpleNamespace(sdpa_kernel=Kernel, SDPBackend=backend_type)),
            cuda=types.SimpleNamespace(
                is_available=lambda: True, get_device_name=lambda number: "Radeon 8060S",
                get_device_properties=lambda number: types.SimpleNamespace(gcnArchName="gfx1151"),
                Event=lambda enable_timing: event, synchronize=lambda: None),
            backends=types.SimpleNamespace(cuda=types.SimpleNamespace(
                preferred_rocm_fa_library=lambda: "AOTriton", SDPAParams=lambda *all: None,
                flash_sdp_enabled=lambda: True, mem_efficient_sdp_enabled=lambda: True,
                math_sdp_enabled=lambda: True, can_use_flash_attention=can,
                can_use_efficient_attention=can)))


class Peers(Case):
    def test_what_pytorch_says(self):
        from fovea import _qualify
        torch = FakeTorch()
        facts = {fact["question"]: fact["answer"] for fact in _qualify.gather(torch, False)["facts"]}
        self.assertEqual(facts["its chip"], "gfx1151")
        self.assertEqual(facts["its preferred library of flash attention"], "AOTriton")
        self.assertIn("not compiled for current AMD GPU",
                      facts["can_use_flash_attention, bf16, head dimension 64"])
        self.assertEqual(facts["the backend that it takes by itself"], "MATH")
        self.assertIn("no image", facts["a call that may take FLASH_ATTENTION alone"])
        # What it does not have is an answer, too.
        self.assertIn("AttributeError", facts["the kernels of a call"])
        torch.nn.functional.scaled_dot_product_attention = lambda *tensors, **options: None
        rows = _qualify.measure(torch, [], lengths=(512, 1024))
        self.assertEqual({row["library"] for row in rows}, {"PyTorch flash", "PyTorch efficient"})
        self.assertEqual(len(rows), 2 * 2 * 2 * 2 * 2)
        self.assertTrue(all(row["seconds"] == 2e-3 and row["spread"] == 0 for row in rows))

    def test_without_pytorch_and_in_a_report(self):
        done = subprocess.run(
            [sys.executable, "-B", "-m", "fovea", "qualify", "--no-torch", "--hip=sim",
             f"--package={PACKAGE}", "--parts=images", "-o", self.folder / "peers"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads((self.folder / "peers.json").read_text())
        self.assertEqual(report["peers"]["facts"],
                         [{"question": "PyTorch", "answer": "not installed: not asked"}])
        done = subprocess.run([sys.executable, "-B", "-m", "fovea", "qualfy"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no command 'qualfy'", done.stderr)


if __name__ == "__main__":
    unittest.main()
