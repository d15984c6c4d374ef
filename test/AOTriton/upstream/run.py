#!/usr/bin/env python3
"""Runs AOTriton's own tests through pyaotriton on the simulated device.

Takes the folder of a checkout of AOTriton that the user has. Its tests are
written for a GPU and PyTorch on it; here "cuda" is the host, PyTorch's tensors
are shown to the simulated device while a call works, and of their many cases
some are drawn by chance until the time is up. docs/Pyaotriton.md says how.

Exit status: 0 when cases passed and none failed, 1 when some failed or all that
ran were refused, 2 for wrong arguments, 77 when nothing was run, with the reason.
"""
import contextlib
import ctypes
import functools
import importlib
import inspect
import io
import os
import pathlib
import sys
import traceback
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Support"))
import upstream
from upstream import NOT_RUN, NotRun, Outcome, first

# Where a checkout has its tests: up to 0.13, and later.
TEST_FOLDERS = ("test", "modules/flash/tests")
TEST_FILES = ("test_forward", "test_backward", "test_varlen")


# ---- The device ------------------------------------------------------------


class Device:
    """The simulated device, and which memory of the host it sees."""

    def __init__(self, module):
        self.module = module
        library = ctypes.CDLL(module.__file__)
        self.symbol = library.fovea_aotriton_hip_symbol
        self.symbol.restype = ctypes.c_void_p
        if not self.symbol(b"hipDeviceSynchronize"):
            raise NotRun("there is no HIP library: " +
                         module.fovea_last_message())
        if not self.symbol(b"fovea_sim_describe"):
            raise NotRun("HIP is not the simulated one, whose kernels see the "
                         "host's memory; on a GPU AOTriton's tests need no "
                         "help of this program (FOVEA_HIP_LIBRARY=sim)")
        self.register = self.function("hipHostRegister", ctypes.c_void_p,
                                      ctypes.c_size_t, ctypes.c_uint)
        self.unregister = self.function("hipHostUnregister", ctypes.c_void_p)
        self.reset = self.function("hipDeviceReset")
        self.report = ctypes.CFUNCTYPE(ctypes.c_char_p)(
            self.symbol(b"fovea_sim_last_report"))
        self.shown = {}
        self.was_reset = False

    def function(self, name, *types):
        return ctypes.CFUNCTYPE(ctypes.c_int, *types)(
            self.symbol(name.encode()))

    def show(self, tensor):
        """Makes a tensor's whole storage visible until the next hide()."""
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if not size or address in self.shown:
            return
        status = self.register(address, size, 0)
        if status:
            raise RuntimeError(f"hipHostRegister({address:#x}, {size}) gave "
                               f"status {status}: {self.report().decode()}")
        self.shown[address] = storage

    def begin(self):
        """Nothing is shown, and no error is left of a case before."""
        with contextlib.suppress(RuntimeError):
            self.hide()
        self.module.hipGetLastError()

    def hide(self):
        """Waits for the device; RuntimeError with its report after a fault."""
        status = self.module.hipDeviceSynchronize()
        faulted = status != self.module.hipError_t.hipSuccess
        if faulted:
            report = self.report().decode(errors="replace")
            self.reset()  # which leaves registered memory as it is
            self.was_reset = True
        for address in self.shown:
            self.unregister(address)
        self.shown.clear()
        if faulted:
            raise RuntimeError(f"the device failed: {status}\n{report}")


# ---- PyTorch without a GPU -------------------------------------------------


def rehome_torch(torch, chip):
    """Has PyTorch take the host's memory for that of "cuda"."""
    # Tests of 0.11 compare versions as texts, in which 2.13 comes before 2.5.
    if str(torch.__version__) < "2.5":
        torch.__version__ = "2.9.0"
    return upstream.on_host(torch, chip)


class Calls:
    """What the calls of one case returned."""

    def __init__(self, module, device):
        self.module, self.device = module, device
        self.refusal = module.hipError_t.hipErrorNotSupported
        self.start()

    def start(self):
        self.device.begin()
        self.count, self.failures, self.latest = 0, [], None

    def refused(self):
        """Whether calls failed and the library refused all that did."""
        return bool(self.failures) and all(
            status == self.refusal for _, status, _ in self.failures)

    def note(self, name, status):
        self.count += 1
        self.latest = status
        if status != self.module.hipError_t.hipSuccess:
            self.failures.append((name, status,
                                  self.module.fovea_last_message()))


def rehome_tests(flash, device, calls):
    """Shows tensors to the device where AOTriton's tests make views of them,
    and hides them when a call is done."""
    make = flash.mk_aotensor

    def mk_aotensor(tensor, *args, **kwargs):
        if tensor is not None:
            device.show(tensor)
        return make(tensor, *args, **kwargs)
    flash.mk_aotensor = mk_aotensor

    def wrap(name, call):
        @functools.wraps(call)
        def wrapped(*args, **kwargs):
            status = call(*args, **kwargs)
            calls.note(name, status)
            if device.was_reset:
                # libfovea loads its kernels anew where a handle is none any
                # more, and leaves HIP's error of that, which a test looks at.
                device.module.hipGetLastError()
            device.hide()
            return status
        return wrapped
    for name, value in list(vars(flash).items()):
        if name.startswith("fa_") and not inspect.isclass(value):
            setattr(flash, name, wrap(name, value))


# ---- Cases -----------------------------------------------------------------


class Test(upstream.Test):
    # One device, nobody else.
    FIXTURES = ("request", "torch_gpu", "gpufilelock", "gpu_id")


def work(arguments):
    """Multiplications of one product of queries and keys, in as far as the
    arguments tell; the simulator's time is some proportion of it."""
    heads = first(arguments.get("N_HEADS", 1))
    dims = arguments.get("D_HEAD", 64)
    return (arguments.get("BATCH", 1) * heads * arguments.get("seqlen_q", 64) *
            arguments.get("seqlen_k", 64) *
            (max(dims) if isinstance(dims, (tuple, list)) else dims))


def run_case(test, arguments, calls, mode, pytest):
    """One case: passed, failed, refused, skipped (by the test itself). What
    raised anything but a skip has not passed, and is refused only where the
    library's refusal was the last that it heard."""
    calls.start()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), \
                warnings.catch_warnings(), mode:
            warnings.simplefilter("ignore")
            test.function(**arguments, **test.fixtures())
    except (pytest.skip.Exception, pytest.xfail.Exception) as reason:
        return Outcome("skipped", str(reason))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # pytest.fail and sys.exit are no Exception
        if calls.refused() and calls.latest == calls.refusal:
            return Outcome("refused", calls.failures[0][2])
        text = f"{type(error).__name__}: {error}"
        for name, status, message in calls.failures:
            text += f"\n  {name} returned {status}: {message}"
        where = traceback.extract_tb(error.__traceback__)[-1]
        text += f"\n  at {where.filename}:{where.lineno}"
        return Outcome("failed", text)
    # A call whose status the test did not look at is no pass.
    if calls.failures:
        name, status, message = calls.failures[0]
        return Outcome("refused" if calls.refused() else "failed",
                       f"{name} returned {status}: {message}")
    if not calls.count:
        return Outcome("skipped", "it made no call")
    return Outcome("passed", "")


# ---- The program -----------------------------------------------------------


def parse():
    parser = upstream.parser(__doc__)
    parser.add_argument("checkout", type=pathlib.Path,
                        help="folder of a checkout of AOTriton")
    options = parser.parse_args()
    for folder in TEST_FOLDERS:
        if (options.checkout / folder / "aotriton_flash.py").is_file():
            options.tests = options.checkout / folder
            return options
    parser.error(f"{options.checkout} is no checkout of AOTriton: it has no "
                 "aotriton_flash.py in " + " or ".join(TEST_FOLDERS))


def load(options):
    """The modules that everything needs, and the tests."""
    found = {}
    for name, what in (("torch", "PyTorch"), ("numpy", "NumPy"),
                       ("pytest", "pytest"),
                       ("pyaotriton", "pyaotriton (its folder in PYTHONPATH)")):
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            raise NotRun(f"{what} cannot be imported: {error}") from None
    module = found["pyaotriton"]
    # The tests want a namespace of its own, lest PyTorch's copy of AOTriton be
    # called; there is none here.
    module.get_name_suffix = lambda: "fovea"
    # All of their functions, not only those of every day.
    os.environ.setdefault("FOR_RELEASE", "3")
    sys.path.insert(0, str(options.tests))
    chip = os.environ.get("FOVEA_SIM_TARGET", "gfx942").split(",")[0]
    device = Device(module)
    calls = Calls(module, device)
    version = found["torch"].__version__
    mode = rehome_torch(found["torch"], chip)
    rehome_tests(importlib.import_module("aotriton_flash"), device, calls)
    tests = []
    for file in TEST_FILES:
        loaded = importlib.import_module(file)
        for name, value in vars(loaded).items():
            if name.startswith("test_") and inspect.isfunction(value):
                tests.append(Test(file, value))
    for loaded in list(sys.modules.values()):
        if "exit_pytest" in getattr(loaded, "__dict__", {}):
            loaded.exit_pytest = stop
    flash = sys.modules["aotriton_flash"]
    print(f"tests of {options.tests}, by {module.__file__} (forward "
          f"{flash.fa_forward_op_params.kVersion}, backward "
          f"{flash.fa_backward_op_params.kVersion}), simulated {chip}, "
          f"PyTorch {version}", flush=True)
    return found["pytest"], tests, calls, mode


def stop():
    raise RuntimeError("the test gave up: an illegal address")


def run(options, pytest, tests, calls, mode):
    return upstream.run(
        options, tests, lambda test, arguments: run_case(
            test, arguments, calls, mode, pytest), work)


def main():
    options = parse()
    try:
        pytest, tests, calls, mode = load(options)
    except NotRun as reason:
        print(f"not run: {reason}")
        return NOT_RUN
    counts, reasons = run(options, pytest, tests, calls, mode)
    return upstream.report(options, tests, counts, reasons)


if __name__ == "__main__":
    sys.exit(main())
