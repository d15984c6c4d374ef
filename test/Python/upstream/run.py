#!/usr/bin/env python3
"""Runs the tests of flash-attn and PyTorch over fovea.torch on the simulated device.

Takes whose tests they are and the folder of a checkout that the user has. They are
written for a GPU; here "cuda" is the host, fovea.torch.enable() and fovea.flash_attn are
in the place of what they test, and of their many cases some are drawn by chance until the
time is up. docs/Python.md says how.

Exit status: 0 when cases passed and none failed, 1 when some failed or all that
ran were refused, 2 for wrong arguments, 77 when nothing was run, with the reason.
"""
import contextlib
import functools
import importlib
import inspect
import io
import linecache
import math
import pathlib
import re
import signal
import sys
import traceback
import types
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Support"))
import upstream
from upstream import NOT_RUN, NotRun, Outcome, first


class Served:
    """How many calls Fovea has served, and which it refused."""

    def __init__(self, fovea, torch_side):
        self.fovea, self.torch_side = fovea, torch_side
        self.most = math.inf  # multiplications of a call that is run
        self.start()

    def start(self):
        self.own, self.refusals, self.too_large = 0, [], ""
        self.before = self.torch_side.calls()

    def counts(self):
        """Calls that came to Fovea, and those that went to PyTorch's own kernels."""
        found = {"fovea": self.own, "pytorch": 0}
        for key, number in self.torch_side.calls().items():
            found[key[1]] += number - self.before.get(key, 0)
        return found

    def counted(self, function):
        """A function of Fovea's own."""
        def called(*arguments, **options):
            try:
                result = function(*arguments, **options)
            except self.fovea.NotFoundError as reason:
                self.refusals.append(str(reason))
                raise
            self.own += 1
            return result
        return called


    def weigh(self, queries, keys, varlen=None):
        """Ends a case with a call that is too large: names of cases do not tell it where
        tests have their sizes in themselves."""
        rows = getattr(varlen, "max_k", None) or (1, *keys.shape)[-2]
        made = math.prod(queries.shape) * rows
        if made > self.most:
            self.stop(f"a call has {made:.1e} multiplications")

    def limit(self, module, name, at):
        """Weighs the calls of a function whose queries are argument `at`."""
        function = getattr(module, name)

        @functools.wraps(function)
        def called(*arguments, **options):
            self.weigh(*arguments[at:at + 2], options.get("varlen"))
            return function(*arguments, **options)

        setattr(module, name, called)

    def stop(self, reason):
        self.too_large = reason
        raise TooLarge(reason)


class TooLarge(BaseException):
    """Ends a case; neither what is tested nor a test catches it as an error."""


# ---- Whose tests -----------------------------------------------------------


def module_of(path, name, replaced=()):
    """A file as a module, with other words in the place of some; NotRun if something that
    it needs is not there."""
    text = path.read_text()
    for former, new in replaced:
        text = text.replace(former, new)
    made = types.ModuleType(name)
    made.__file__ = str(path)
    linecache.cache[str(path)] = len(text), None, text.splitlines(True), str(path)
    sys.modules[name] = made
    try:
        exec(compile(text, path, "exec"), vars(made))
    except (ImportError, unittest.SkipTest) as error:
        raise NotRun(f"{path.name} cannot be imported: {error}") from None
    return made


def functions_of(module, file):
    return [upstream.Test(file, value) for name, value in vars(module).items()
            if name.startswith("test_") and inspect.isfunction(value)]


def flash_attn(checkout, served):
    """flash-attn's package with our functions in the place of its extension's."""
    from fovea import flash_attn as ours

    def none(*_, **__):
        raise served.fovea.NotFoundError("a cache of keys is not served")

    package = types.ModuleType("flash_attn")
    package.__path__ = [str(checkout / "flash_attn")]
    interface = types.ModuleType("flash_attn.flash_attn_interface")
    for name in ours.__all__:
        setattr(interface, name, served.counted(getattr(ours, name)))
    interface.flash_attn_with_kvcache = served.counted(none)
    interface._get_block_size_n, interface.USE_TRITON_ROCM = (lambda *_: 64), False
    vars(package).update({name: value for name, value in vars(interface).items()
                          if name.startswith("flash_attn")})
    rotary = types.ModuleType("flash_attn.layers.rotary")  # of caches alone
    rotary.apply_rotary_emb = interface.flash_attn_with_kvcache
    sys.modules.update({
        "flash_attn": package, "flash_attn.flash_attn_interface": interface,
        "flash_attn.layers": types.ModuleType("flash_attn.layers"),
        "flash_attn.layers.rotary": rotary})
    file = "test_flash_attn"
    return functions_of(module_of(checkout / "tests" / f"{file}.py", file), file)


# Of test_varlen_attention the reference is scaled_dot_product_attention, as PyTorch has
# it on the host.
PYTORCH_FILES = {"test_transformers.py": "", "test_varlen_attention.py": "_for_cpu",
                 "inductor/test_flex_attention.py": ""}

# Of the tests of transformers: devices that they name themselves, so that no mode has to
# be there, with which modules take no fast path and nothing is compiled; and the backend
# that takes masks on a GPU.
TRANSFORMERS = (*((f"{name}{quote}cuda{quote}", f"{name}{quote}cpu{quote}")
                  for name in ("device=", "device = ", ".to(") for quote in "'\""),
                (".cuda()", ".cpu()"), ('"cpu" in str(device)', "False"),
                ("TEST_WITH_ROCM and causal_variant", "False and causal_variant"))


class Methods:
    """A test of PyTorch's, whose cases are methods of a class that it generates."""

    def __init__(self, file, name, cases, not_served, on_host):
        self.on_host = on_host  # whether "cuda" is to be the host
        self.name, self.cases = f"{file}.py::{name}", cases
        self.total = len(cases)
        self.not_served = not_served  # what operators' names have that stay PyTorch's

    def arguments(self, number):
        return {"case": self.cases[number]}

    def unknown(self):
        return []


def as_on_a_gpu(torch, served):
    """Has scaled_dot_product_attention, where sdpa_kernel() leaves one backend, take the
    operator that it takes on a GPU, and dropout the seed that manual_seed() gave.
    With a mask the flash backend has an operator on the host alone."""
    F, cuda, aten = torch.nn.functional, torch.backends.cuda, torch.ops.aten
    overrides, own = torch.overrides, F.scaled_dot_product_attention

    def chosen(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
               scale=None, **options):
        tensors = query, key, value, attn_mask
        if overrides.has_torch_function(tensors):  # such as a mask of PyTorch's
            return overrides.handle_torch_function(
                chosen, tensors, query, key, value, attn_mask, dropout_p, is_causal,
                scale=scale, **options)
        if torch.compiler.is_compiling():  # which does not trace what is asked below
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                       **options)
        if not (query.is_nested or key.is_nested):  # PyTorch's reference is slow as well
            served.weigh(query, key)
        enabled = (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(),
                   cuda.math_sdp_enabled())
        if (options or enabled not in ((True, False, False), (False, True, False))
                or (attn_mask is not None and (enabled[0] or is_causal))
                or any(t.dim() != 4 or t.dtype != query.dtype for t in tensors[:3])):
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                       **options)
        if enabled[0]:
            columns = value.shape[-1]
            padded = [F.pad(t, (0, -t.shape[-1] % 8)) for t in (query, key, value)]
            return aten._scaled_dot_product_flash_attention(
                *padded, dropout_p, is_causal,
                scale=scale or query.shape[-1] ** -0.5)[0][..., :columns]
        if attn_mask is not None:
            attn_mask = attn_mask.expand(*query.shape[:3], key.shape[2])
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale)[0]

    F.scaled_dot_product_attention = chosen
    torch.jit._builtins._register_builtin(chosen, "aten::scaled_dot_product_attention")
    importlib.import_module("fovea._torch_aten")._seeds = lambda _, like: (
        torch.tensor([torch.initial_seed(), 0], device=like.device).view(torch.uint64),
        torch.zeros((), dtype=torch.uint64, device=like.device))


# Of FlexAttention's tests: sizes that a simulator has done in seconds, and a name of the
# host that is not the one for which gradients are left out.
FLEX = (("\nS = 2048\n", "\nS = 256\n"), ("\nB = 4\n", "\nB = 2\n"), ("\nH = 8\n", "\nH = 4\n"),
        ('"cuda"', '"cpu:0"'), ("device=\"cpu\"", 'device="cpu:0"'))


@contextlib.contextmanager
def flex_on_a_gpu(torch, served):
    """Has FlexAttention's tests take fovea.torch's function where they compile, on any
    backend, and PyTorch's formula in math where they do not, as their reference."""
    from torch.nn.attention import flex_attention as flex
    from torch._higher_order_ops.flex_attention import math_attention
    from torch.testing._internal import common_device_type
    ours, own_compile = served.torch_side.flex_attention, torch.compile

    def chosen(query, key, value, score_mod=None, block_mask=None, scale=None,
               enable_gqa=False, return_lse=False, kernel_options=None, **options):
        if torch.compiler.is_compiling():
            return ours(query, key, value, score_mod, block_mask, scale, enable_gqa,
                        return_lse, **options)
        out, lse, _ = math_attention(
            query, key, value, score_mod or flex._identity,
            (None, block_mask.mask_mod if block_mask else flex.noop_mask),
            scale or query.shape[-1] ** -0.5, {})
        return (out, lse * math.log(2)) if return_lse else out

    def compiled(function=None, **options):
        if function is None:
            return functools.partial(compiled, **options)
        if function in (flex.create_block_mask, torch.nn.attention.flex_attention):
            return function
        if options.get("backend", "inductor") == "inductor":
            options["backend"] = "aot_eager"
        return own_compile(function, **{**options, "mode": None, "fullgraph": True})

    attention = importlib.import_module("fovea._attention")
    attention.attention = served.counted(attention.attention)
    available, triton = torch.cuda.is_available, torch.utils._triton.has_triton
    flex.flex_attention, torch.compile = chosen, compiled
    common_device_type.flex_attention_supported_platform = lambda function: function
    torch.cuda.is_available = torch.utils._triton.has_triton = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_available, torch.utils._triton.has_triton = available, triton


def pytorch(checkout, served):
    """Of the classes for devices, those of "cuda" made for the host."""
    import torch
    from torch.testing._internal import common_cuda, common_device_type, common_utils

    for name in vars(common_cuda):
        if name.startswith(("PLATFORM_SUPPORTS_FLASH", "PLATFORM_SUPPORTS_MEM_EFF",
                            "PLATFORM_SUPPORTS_FUSED", "PLATFORM_SUPPORTS_BF16")):
            setattr(common_cuda, name, True)
    common_utils.TEST_WITH_ROCM = True  # its bounds are of this chip's maker
    as_on_a_gpu(torch, served)
    generate = common_device_type.instantiate_device_type_tests

    def for_the_host(generic, scope, except_for=None, only_for=None, **options):
        generate(generic, scope, only_for=("cpu",), **{
            key: value for key, value in options.items() if not key.startswith("allow_")})

    common_device_type.instantiate_device_type_tests = for_the_host
    sys.path.append(str(checkout / "test"))  # they import one another
    tests = []
    for name in PYTORCH_FILES:
        path = checkout / "test" / name
        if not path.exists():
            print(f"not run: {path} is not there")
            continue
        groups, is_flex = {}, "flex" in name
        is_transformers = name == "test_transformers.py"
        with flex_on_a_gpu(torch, served) if is_flex else contextlib.nullcontext():
            module = module_of(path, path.stem, FLEX if is_flex else
                               TRANSFORMERS if is_transformers else ())
        if is_flex:  # of PyTorch's own experimental caches, whose functions have changed
            module.TestFlexAttention.run_test_with_paged_attention = lambda *_, **__: None
        for kind in vars(module).values():
            if not (inspect.isclass(kind) and issubclass(kind, unittest.TestCase)):
                continue
            for method in unittest.defaultTestLoader.getTestCaseNames(kind):
                base = getattr(kind, method).__name__
                short = re.match(r"test_[a-z_]*?(?=_(?:cpu|[a-z_]*\d)|$)", base)
                groups.setdefault(f"{kind.__name__}.{short[0] if short else base}",
                                  []).append(kind(method))
        tests += [Methods(path.stem, group, cases, PYTORCH_FILES[name],
                          not is_flex and not is_transformers)
                  for group, cases in groups.items()]
    return tests


SUITES = {"flash-attn": flash_attn, "pytorch": pytorch}


# ---- Cases -----------------------------------------------------------------

LONGEST = 30  # seconds for a case



def work(arguments):
    """Multiplications of a product of queries and keys, as far as the arguments tell."""
    if "case" in arguments:
        numbers = re.findall(r"(batch_size|seq_len_q|seq_len_k|max_seq_len|head_dim|n_heads?)"
                             r"_(\d+)", arguments["case"].id())
        made = 1
        for _, number in numbers:
            made *= int(number)
        return made * (1 if any("head" in name for name, _ in numbers) else 4 * 64)
    rows = arguments.get("seqlen_q", arguments.get("seqlen", 64))
    keys = arguments.get("seqlen_k", rows)
    return 4 * 6 * first(rows) * first(keys) * first(arguments.get("d", 64))


# What a compiler's exception has of ours: a function or a type that no kernel has.
NO_PROGRAM = re.compile(r"its elements are float64|[^:`]* is no part of a score program|"
                        r"an array is indexed with [^;]*;|a program reads one element|"
                        r"kernel_options has \w+|multiples of 128|captures at most 8 arrays")


def limited(run):
    """Ends a case of which PyTorch's part takes too long, between two of its operators."""
    @functools.wraps(run)
    def called(test, arguments, served, *others):
        signal.signal(signal.SIGALRM, lambda *_: served.stop(
            f"it takes more than {LONGEST} s"))
        signal.alarm(LONGEST)
        try:
            return run(test, arguments, served, *others)
        finally:
            signal.alarm(0)
    return called


@limited
def run_case(test, arguments, served, mode, enabled, pytest):
    served.start()
    printed, skipped = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), \
                warnings.catch_warnings(), enabled(test), \
                mode if getattr(test, "on_host", True) else contextlib.nullcontext():
            warnings.simplefilter("ignore")
            if isinstance(test, Methods):
                result = unittest.TestResult()
                arguments["case"](result)
                skipped = [reason for _, reason in result.skipped]
                for _, text in result.failures + result.errors:
                    raise AssertionError(text)
                for _, text in result.expectedFailures:
                    skipped = ["it is expected to fail"]
            else:
                test.function(**arguments, **test.fixtures())
    except (pytest.skip.Exception, pytest.xfail.Exception) as reason:
        return Outcome("skipped", str(reason))
    except KeyboardInterrupt:
        raise
    except TooLarge:
        pass
    except ImportError as reason:
        return Outcome("skipped", f"it needs parts that are none of ours: {reason}")
    except BaseException as error:  # pytest.fail and sys.exit are no Exception
        if served.too_large:
            return Outcome("too large", served.too_large)
        if served.refusals and (isinstance(error, served.fovea.NotFoundError)
                                or served.refusals[-1] in str(error)):
            return Outcome("refused", served.refusals[-1])
        if re.search("not compiled with CUDA|requires CUDA support", str(error)):
            return Outcome("skipped", "it calls CUDA by itself")
        if re.search("'NestedTensorCPU' backend|NestedTensorImpl doesn't support", str(error)):
            return Outcome("skipped", "its strided nested tensors have no attention on the CPU")
        if found := NO_PROGRAM.search(str(error)):
            return Outcome("refused", found[0])
        where = traceback.extract_tb(error.__traceback__)[-1]
        lines = str(error).strip().splitlines() or [""]
        # Of a text that has its own traceback the error.
        named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
        return Outcome("failed", f"{type(error).__name__}: {(named or lines)[-1]}\n  at "
                       f"{where.filename}:{where.lineno} {served.counts()}")
    if served.too_large:
        return Outcome("too large", served.too_large)
    if skipped:
        return Outcome("skipped", skipped[0])
    counts = served.counts()
    if not counts["fovea"]:
        return Outcome("skipped", "all of its calls went to PyTorch's kernels"
                       if counts["pytorch"] else "it made no call")
    return Outcome("passed", "some of its calls went to PyTorch's kernels"
                   if counts["pytorch"] else "")


# ---- The program -----------------------------------------------------------


def parse():
    parser = upstream.parser(__doc__)
    parser.add_argument("suite", choices=SUITES, help="whose tests")
    parser.add_argument("checkout", type=pathlib.Path, help="folder of a checkout of it")
    return parser.parse_args()


def load(options):
    found = {}
    for name, what in (("torch", "PyTorch"), ("pytest", "pytest"),
                       ("fovea.torch", "fovea.torch (build/python in PYTHONPATH)")):
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            raise NotRun(f"{what} cannot be imported: {error}") from None
    torch, torch_side = found["torch"], found["fovea.torch"]
    fovea = sys.modules["fovea"]
    library = fovea.default_library()
    if library.hip.kind != "sim":
        raise NotRun("HIP is not the simulated one; on a GPU these tests need no help of "
                     "this program (FOVEA_HIP_LIBRARY=sim)")
    chip = library.device().arch.partition(":")[0]
    importlib.import_module("torch._inductor.compile_fx")  # while PyTorch is as it is
    mode = upstream.on_host(torch, chip)
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    served = Served(fovea, torch_side)
    try:
        with mode:
            tests = SUITES[options.suite](options.checkout, served)
    except ImportError as error:
        raise NotRun(f"the tests need what is not there: {error}") from None
    print(f"tests of {options.checkout}, by fovea {fovea.__version__}, simulated {chip}, "
          f"PyTorch {torch.__version__}", flush=True)
    aten = importlib.import_module("fovea._torch_aten")
    operators = aten.OVERRIDES

    def enabled(test):
        without = getattr(test, "not_served", "")
        aten.OVERRIDES = [row for row in operators
                          if not without or without not in row[0]]
        return torch_side.enable()

    attention = importlib.import_module("fovea._attention")
    served.most = options.work
    served.limit(attention, "attention", 0)
    served.limit(attention, "attention_backward", 1)
    return found["pytest"], tests, served, mode, enabled


def main():
    options = parse()
    try:
        pytest, tests, served, mode, enabled = load(options)
        if not tests:
            raise NotRun(f"there are no tests in {options.checkout}")
    except NotRun as reason:
        print(f"not run: {reason}")
        return NOT_RUN
    counts, reasons = upstream.run(
        options, tests, lambda test, arguments: run_case(test, arguments, served, mode,
                                                         enabled, pytest), work)
    return upstream.report(options, tests, counts, reasons)


if __name__ == "__main__":
    sys.exit(main())
