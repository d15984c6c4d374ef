"""Tests of run.py without PyTorch and AOTriton: what it counts as what."""
import collections
import contextlib
import io
import pathlib
import random
import sys
import tempfile
import types
import unittest
from unittest import mock

import run


class Statuses:
    hipSuccess, hipErrorInvalidValue, hipErrorNotSupported = 0, 1, 801
    hipErrorIllegalAddress = 700


class Module:
    """As much of pyaotriton as is asked."""
    hipError_t = Statuses

    @staticmethod
    def fovea_last_message():
        return "attn_fwd: no kernel for 7 heads"


DEVICE = types.SimpleNamespace(begin=lambda: None)


class Skip(Exception):
    pass


Exceptions = collections.namedtuple("Exceptions", "Exception")
PYTEST = types.SimpleNamespace(skip=Exceptions(Skip), xfail=Exceptions(Skip))
Mark = collections.namedtuple("Mark", "name args")


def parametrized(function, *axes):
    function.pytestmark = [Mark("parametrize", axis) for axis in axes]
    return run.Test("test_forward", function)


class Outcomes(unittest.TestCase):
    def outcome(self, body):
        calls = run.Calls(Module, DEVICE)
        return run.run_case(run.Test("file", lambda: body(calls)), {}, calls,
                            contextlib.nullcontext(), PYTEST)

    def test_passed(self):
        self.assertEqual(self.outcome(lambda calls: calls.note("f", 0)).kind,
                         "passed")

    def test_no_call_is_no_pass(self):
        self.assertEqual(self.outcome(lambda calls: None),
                         ("skipped", "it made no call"))

    def test_status_that_the_test_does_not_look_at(self):
        kind, reason = self.outcome(lambda calls: calls.note("f", 700))
        self.assertEqual(kind, "failed")
        self.assertIn("f returned 700: attn_fwd: no kernel", reason)
        for status, wanted in ((1, "failed"), (2, "failed"), (801, "refused")):
            self.assertEqual(
                self.outcome(lambda calls: calls.note("f", status)).kind,
                wanted)

    def test_assertions(self):
        def wrong(calls):
            calls.note("f", 0)
            raise AssertionError("far off")

        def refused(calls):
            calls.note("f", 801)
            raise AssertionError("status")

        def both(calls):
            calls.note("f", 801)
            calls.note("f", 700)
            raise AssertionError("status")

        def skips(calls):
            raise Skip("too much memory")

        def goes_on(calls):
            calls.note("f", 801)
            calls.note("f", 0)
            raise AssertionError("far off")
        self.assertRegex(self.outcome(wrong).reason, "AssertionError: far off")
        self.assertEqual([self.outcome(body).kind
                          for body in (wrong, refused, both, skips, goes_on)],
                         ["failed", "refused", "failed", "skipped", "failed"])

    def test_whatever_is_raised(self):
        """What raises has not passed, whatever its calls came to."""
        class Failed(BaseException):  # as what pytest.fail raises
            pass
        for thrown in (Failed, SystemExit(0), SystemExit, GeneratorExit,
                       RuntimeError, Warning):
            def body(calls):
                calls.note("f", 0)
                raise thrown
            self.assertEqual(self.outcome(body).kind, "failed", thrown)

        def stopped(calls):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            self.outcome(stopped)


class Cases(unittest.TestCase):
    def setUp(self):
        def test_it(request, BATCH, N_HEADS, D_HEAD, seqlen_q, seqlen_k):
            pass
        self.test = parametrized(test_it, ("seqlen_q, seqlen_k", [(1, 2), (9, 9)]),
                                 ("D_HEAD", [8, (16, 64)]), ("BATCH", [1, 3]),
                                 ("N_HEADS", [1, (10, 2)]))

    def test_grid(self):
        self.assertEqual(self.test.total, 16)
        all_cases = [self.test.arguments(i) for i in range(16)]
        self.assertEqual(len({str(case) for case in all_cases}), 16)
        self.assertEqual(list(all_cases[0]),
                         ["BATCH", "N_HEADS", "D_HEAD", "seqlen_q", "seqlen_k"])
        self.assertEqual(max(map(run.work, all_cases)), 3 * 10 * 64 * 81)
        self.assertEqual(self.test.unknown(), [])
        self.assertEqual(run.Test("file", lambda tmp_path: 0).unknown(),
                         ["tmp_path"])

    def test_draw(self):
        def options(**values):
            return types.SimpleNamespace(**{"select": "", "work": 1e9, **values})

        def cases(seed, **values):
            return list(run.upstream.draw(self.test, options(**values),
                                          random.Random(seed), run.work))
        self.assertEqual(len(cases(1)), 16)
        self.assertEqual(cases(1), cases(1))
        self.assertNotEqual(cases(1), cases(2))
        chosen = cases(1, select="test_it.*BATCH=3.*D_HEAD=8")
        self.assertEqual(len(chosen), 4)
        self.assertEqual({case["BATCH"] for case in chosen}, {3})
        self.assertEqual(cases(1, work=20000).count(None), 2)

    def test_run(self):
        """Counts of a run, in which nothing is too large but some refused."""
        calls = run.Calls(Module, DEVICE)

        def test_some(BATCH):
            calls.note("f", 0 if BATCH < 3 else 801)
        test = parametrized(test_some, ("BATCH", range(5)))
        with contextlib.redirect_stdout(io.StringIO()):
            counts, reasons = run.run(
                types.SimpleNamespace(budget=60, seed=1, select="", work=1e9,
                                      verbose=False),
                PYTEST, [test], calls, contextlib.nullcontext())
        self.assertEqual(counts[test.name], {"passed": 3, "refused": 2})
        self.assertEqual([len(found) for found in reasons.values()], [2])


class Report(unittest.TestCase):
    """What main() prints of counts, and its exit status."""

    def report(self, **counts):
        def test_it(BATCH):
            pass
        test = parametrized(test_it, ("BATCH", range(20)))
        printed = io.StringIO()
        with mock.patch.object(run, "parse",
                               lambda: types.SimpleNamespace(seed=1)), \
                mock.patch.object(run, "load",
                                  lambda options: (PYTEST, [test], None, None)), \
                mock.patch.object(run, "run", lambda *_: (
                    {test.name: collections.Counter(counts)}, {})), \
                contextlib.redirect_stdout(printed):
            status = run.main()
        return status, printed.getvalue()

    def test_columns(self):
        status, text = self.report(passed=3, failed=1, refused=2, skipped=4,
                                   **{"too large": 5})
        self.assertEqual(status, 1)
        self.assertRegex(text, r"test +passed +failed +refused +not run +of\n"
                               r"test_forward.py::test_it +3 +1 +2 +14 +20\n")
        self.assertIn("6 cases run: 3 passed, 1 failed, 2 refused; 14 not run: "
                      "4 skipped by themselves, 5 too large, 5 not drawn", text)

    def test_statuses(self):
        self.assertEqual(self.report(passed=1, refused=2)[0], 0)
        self.assertEqual(self.report(refused=2)[0], 1)
        status, text = self.report(skipped=2)
        self.assertEqual(status, 77)
        self.assertIn("not run: no case", text)


class NotRun(unittest.TestCase):
    def run_main(self, folder, absent):
        printed = io.StringIO()
        modules = dict.fromkeys(("torch", "numpy", "pytest"), sys)
        modules[absent] = None
        with mock.patch.dict(sys.modules, modules), \
                mock.patch.object(sys, "argv", ["run.py", str(folder)]), \
                contextlib.redirect_stdout(printed), \
                contextlib.redirect_stderr(printed):
            try:
                status = run.main()
            except SystemExit as end:
                status = end.code
        return status, printed.getvalue()

    def test_without(self):
        with tempfile.TemporaryDirectory() as name:
            tests = pathlib.Path(name) / "modules" / "flash" / "tests"
            tests.mkdir(parents=True)
            (tests / "aotriton_flash.py").touch()
            for absent, what in (("torch", "PyTorch"), ("numpy", "NumPy"),
                                 ("pyaotriton", "pyaotriton .*PYTHONPATH")):
                status, text = self.run_main(name, absent)
                self.assertEqual(status, 77)
                self.assertRegex(text, f"^not run: {what}.* cannot be imported")

    def test_no_checkout(self):
        with tempfile.TemporaryDirectory() as name:
            status, text = self.run_main(name, "torch")
        self.assertEqual(status, 2)
        self.assertIn("is no checkout of AOTriton", text)


if __name__ == "__main__":
    unittest.main()
