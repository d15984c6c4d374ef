"""Running the tests of others where there is no GPU: PyTorch's "cuda" is the host, cases
are drawn by chance until the time is up, and counted. Used by programs that know whose
tests they are, and which take a checkout that the user has.
"""
import argparse
import collections
import contextlib
import inspect
import math
import random
import re
import time

NOT_RUN = 77
# Draws for one case that is small enough.
MOST_DRAWS = 1000


class NotRun(Exception):
    """Why nothing can be run."""


def is_cuda(device):
    return str(device).split(":")[0] == "cuda" if device is not None else False


def on_host(torch, chip):
    """A mode in which PyTorch takes the host's memory for that of "cuda"."""
    from torch.overrides import TorchFunctionMode

    class OnHost(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if is_cuda(kwargs.get("device")):
                kwargs["device"] = "cpu"
            if function is torch.Tensor.to:
                args = tuple("cpu" if isinstance(x, (str, torch.device)) and
                             is_cuda(x) else x for x in args)
            return function(*args, **kwargs)

    generator = torch.Generator
    torch.Generator = lambda device="cpu": generator(
        "cpu" if is_cuda(device) else device)
    properties = collections.namedtuple("Properties",
                                        "gcnArchName name total_memory")
    torch.cuda.get_device_properties = lambda *_: properties(chip, chip, 2**40)
    torch.cuda.synchronize = lambda *_: None  # every call has been waited for
    torch.cuda.empty_cache = lambda: None
    torch.cuda.device = lambda *_: contextlib.nullcontext()
    return OnHost()


# ---- Cases -----------------------------------------------------------------


class Test:
    """A test function and the grid of its parameters."""

    # Arguments of tests that are pytest's fixtures.
    FIXTURES = ("request",)

    def __init__(self, file, function):
        self.name = f"{file}.py::{function.__name__}"
        self.function = function
        self.axes = []  # (names, values)
        for mark in getattr(function, "pytestmark", []):
            if mark.name == "parametrize":
                names = mark.args[0]
                if isinstance(names, str):
                    names = [name.strip() for name in names.split(",")]
                self.axes.append((names, list(mark.args[1])))
        self.total = math.prod(len(values) for _, values in self.axes)

    def arguments(self, number):
        result = {}
        for names, values in self.axes:
            number, at = divmod(number, len(values))
            value = values[at]
            result.update(zip(names, [value] if len(names) == 1 else value))
        order = list(inspect.signature(self.function).parameters)
        return dict(sorted(result.items(), key=lambda x: order.index(x[0])))

    def unknown(self):
        """Arguments that nothing gives."""
        names = {name for axis, _ in self.axes for name in axis}
        return [name for name in inspect.signature(self.function).parameters
                if name not in names and name not in self.FIXTURES]

    def fixtures(self):
        given = dict.fromkeys(self.FIXTURES, 0) | {"request": Request()}
        return {name: given[name]
                for name in inspect.signature(self.function).parameters
                if name in given}


class Request:
    """As much of pytest's request as the tests take."""

    def __init__(self):
        self.node = self

    def add_marker(self, mark):
        pass


def first(value):
    return value[0] if isinstance(value, (tuple, list)) else value


def case_name(test, arguments):
    text = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f"{test.name}[{text}]"


Outcome = collections.namedtuple("Outcome", "kind reason")


# What a case comes to. Those that are not run are told apart by why.
RAN = ("passed", "failed", "refused")
NOT_RUN_KINDS = ("skipped", "too large")


# ---- The program -----------------------------------------------------------


def add_options(parser):
    parser.add_argument("--budget", type=float, default=300,
                        help="seconds after which no case is begun (%(default)s)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the draw of cases (%(default)s)")
    parser.add_argument("--select", default="", metavar="REGEX",
                        help="cases whose names have it, as in the output")
    parser.add_argument("--work", type=float, default=2.0**28,
                        help="leaves out cases with more multiplications in a\n"
                             "product of queries and keys (%(default)g)")
    parser.add_argument("-v", "--verbose", action="store_true",
                        help="shows every case")


def parser(description):
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter)
    add_options(made)
    return made


def draw(test, options, source, work):
    """The test's cases in an order by chance; None for one that is too large."""
    drawn = (range(test.total) if test.total <= MOST_DRAWS else
             source.sample(range(test.total), MOST_DRAWS))
    drawn = source.sample(drawn, len(drawn))
    for number in drawn:
        arguments = test.arguments(number)
        if not re.search(options.select, case_name(test, arguments)):
            continue
        yield arguments if work(arguments) <= options.work else None


def numberless(text):
    return re.sub(r"\d+(\.\d+)?", "#", text.splitlines()[0])


def run(options, tests, run_case, work):
    """Counts by test and outcome, and reasons with the cases that have them.

    run_case gives a case's Outcome, of a test and its arguments; work what the
    arguments cost.
    """
    end = time.monotonic() + options.budget
    source = random.Random(options.seed)
    counts = {test.name: collections.Counter() for test in tests}
    reasons = collections.defaultdict(list)
    waiting = []
    for test in tests:
        if test.unknown():
            print(f"not run: {test.name}: nothing gives its arguments "
                  f"{', '.join(test.unknown())}")
        else:
            waiting.append((test, draw(test, options, source, work)))
    # A case of each in turn.
    while waiting and time.monotonic() < end:
        test, cases = waiting.pop(0)
        arguments = None
        for arguments in cases:
            if arguments is not None:
                break
            counts[test.name]["too large"] += 1
        if arguments is None:
            continue  # no more of them
        begun = time.monotonic()
        outcome = run_case(test, arguments)
        counts[test.name][outcome.kind] += 1
        name = case_name(test, arguments)
        if options.verbose:
            print(f"{outcome.kind}: {name} "
                  f"({time.monotonic() - begun:.1f} s)", flush=True)
        if outcome.kind == "failed":
            print(f"failed: {name}\n  {outcome.reason}", flush=True)
        elif outcome.reason:
            reasons[outcome.kind, numberless(outcome.reason)].append(
                (name, outcome.reason))
        waiting.append((test, cases))
    return counts, reasons


def report(options, tests, counts, reasons):
    """Prints them; gives the program's status."""
    wide = max(42, *(len(test.name) for test in tests)) if tests else 42
    print(f"{'test':{wide}}" +
          "".join(f"{kind:>10}" for kind in (*RAN, "not run", "of")))
    for test in tests:
        found = [counts[test.name][kind] for kind in RAN]
        print(f"{test.name:{wide}}" + "".join(
            f"{number:>10}"
            for number in (*found, test.total - sum(found), test.total)))
    total = sum(counts.values(), collections.Counter())
    for (kind, _), found in sorted(reasons.items()):
        print(f"{kind}, {len(found)} times: {found[0][1].splitlines()[0]}\n"
              f"  first by {found[0][0]}")
    ran = sum(total[kind] for kind in RAN)
    rest = sum(test.total for test in tests) - ran
    drawn = sum(total[kind] for kind in NOT_RUN_KINDS)
    print(f"{ran} cases run: {total['passed']} passed, {total['failed']} "
          f"failed, {total['refused']} refused; {rest} not run: "
          f"{total['skipped']} skipped by themselves, {total['too large']} too "
          f"large, {rest - drawn} not drawn; seed {options.seed}")
    if not ran:
        print("not run: no case that is selected and small enough ran in time")
        return NOT_RUN
    return 0 if total["passed"] and not total["failed"] else 1
