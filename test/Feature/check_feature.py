#!/usr/bin/env python3
"""Takes the made-up feature `horizon` from end to end.

Compiles kernels with and without it, looks at what follows from its rows (key,
spec axis, contract), runs them on the simulated device through the C interface
against the fp64 reference, and counts the places that make it.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_PLACES = 9
PLACE = re.compile(r"^(?://|/\*) place: (.*?)(?: \*/)?$")


def places(folder):
    """{what a place is: its lines of code}, of all sources."""
    found, name = {}, None
    for path in sorted(folder.glob("*.cpp")) + sorted(folder.glob("*.h")):
        for line in path.read_text().splitlines():
            if start := PLACE.match(line):
                name = start[1]
                found[name] = 0
            elif re.match(r"(//|/\*) end\b", line):
                name = None
            elif name and line.strip() and not line.strip().startswith("//"):
                found[name] += 1
    return found


class Checker:
    def __init__(self, bin_folder, aot_run, temporary):
        self.bin, self.aot_run = bin_folder, aot_run
        self.folder = pathlib.Path(temporary)

    def command(self, *words, status=0, **environment):
        """What a command prints, which must end with `status`."""
        done = subprocess.run([str(word) for word in words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **environment})
        if done.returncode != status:
            sys.exit(f"{' '.join(map(str, words))}\nended with "
                     f"{done.returncode}, not {status}:\n{done.stdout}")
        return done.stdout

    def compile(self, *words, **keywords):
        return self.command(self.bin / "aot-compile-horizon", *words,
                            **keywords)

    def run(self, package, *words, **keywords):
        return self.command(
            self.bin / "aot-run-horizon", f"--package={self.folder / package}",
            *words, LD_LIBRARY_PATH=str(self.bin), **keywords)

    def suite(self, package, *words, **keywords):
        return self.command(self.bin / "fovea-cts-horizon",
                            self.folder / package, *words,
                            LD_LIBRARY_PATH=str(self.bin), **keywords)

    def check_compiler(self):
        one = ("--target=gfx942", "--op=forward", "--dtype=bf16",
               "--head-dim=64")
        contract = json.loads(self.compile(*one, "--groups=horizon",
                                           "--emit=contract", "-o", "-"))
        last = contract["arguments"][-1]
        expect(contract["argument_groups"],
               {"base": 1, "window": 1, "horizon": 1})
        expect(contract["problem"],
               "forward;dtype=bf16;head_dim=64;horizon=1;window=1")
        expect(contract["kernel"], "attn_fwd_bf16_d64_horizon")
        expect((last["name"], last["type"]), ("horizon", "int32_t"))
        plain = json.loads(self.compile(*one, "--emit=contract", "-o", "-"))
        expect(contract["arguments"][:-1], plain["arguments"])
        expect_in("unknown feature groups 'sea'; known: none, horizon",
                  self.compile(*one, "--groups=sea", "--emit=none", status=2))
        expect_in("--groups", self.compile("--help"))

        # Every operation, both algorithms, a chip of each family; with the
        # feature alone, and beside kernels without it.
        spec = self.folder / "spec.json"
        spec.write_text(json.dumps([
            {"targets": ["gfx942", "gfx1100", "gfx1201"],
             "ops": ["forward", "backward"], "dtypes": ["bf16"],
             "head_dims": [64], "groups": ["horizon"]},
            {"targets": ["gfx942", "gfx1100", "gfx1201"], "ops": ["backward"],
             "dtypes": ["bf16"], "head_dims": [64], "groups": ["horizon"],
             "schedules": [{"algorithm": "atomic"}]}]))
        for name, groups in ("horizon", '["horizon"]'), ("plain", '["none"]'):
            spec.write_text(spec.read_text().replace('["horizon"]', groups))
            self.compile(f"--spec={spec}", "--emit=package", "-q", "-o",
                         self.folder / name)

    def check_runs(self):
        for target in "gfx942", "gfx1100", "gfx1201":
            horizon = f"horizon/{target}.fovea"
            shape = ("--head-dim=64", "--heads=4", "--heads-k=2",
                     "--seqlen-q=150", "--seqlen-k=333")
            for op, extra in (("forward", ()), ("backward", ()),
                              ("backward", ("--no-deterministic",))):
                same = (f"--op={op}", *shape, *extra)
                for keys in 0, 1, 100, 128, 332, 333, 10**12:
                    text = self.run(horizon, *same, f"--horizon={keys}",
                                    "--input=masked")
                    expect_in("pass", text)
                for mask in "causal-bottom-right", "40:20":
                    self.run(horizon, *same, "--horizon=200", f"--mask={mask}",
                             "--input=masked")
                # Neutral where nothing is given.
                self.run(horizon, *same)
                # A wrong oracle is found.
                self.run(horizon, *same, "--horizon=100", status=1,
                         FOVEA_TEST_HORIZON_FAULT="1")
            expect_in("NeutralGroupsGiveTheSame/"
                      "k3_forward_dtype_bf16_head_dim_64_horizon_1_window_1",
                      self.suite(horizon, "--gtest_filter=*Table*"))
            # A kernel without it is not taken for a call with it, nor is a
            # group ignored.
            plain = f"plain/{target}.fovea"
            self.run(plain, "--op=forward", *shape)
            expect_in("without horizon, which the call has",
                      self.run(plain, "--op=forward", *shape, "--horizon=100",
                               status=2))
            expect_in("horizon.keys is -1",
                      self.run(horizon, "--op=forward", *shape,
                               "--horizon=-1", status=2))
        # The library that ships knows no such group, and takes no kernel that
        # has it.
        expect_in("no kernel for 'forward;dtype=bf16;head_dim=64'",
                  self.command(self.aot_run, "--op=forward", *shape,
                               f"--package={self.folder / horizon}", status=2))


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"found {found!r}, not {wanted!r}")


def expect_in(wanted, text):
    if wanted not in text:
        sys.exit(f"'{wanted}' is not in:\n{text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--aot-run", required=True)
    parser.add_argument("--sources", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        checker = Checker(args.bin, args.aot_run, temporary)
        checker.check_compiler()
        checker.check_runs()
    found = places(args.sources)
    for name, lines in found.items():
        print(f"{lines:4} lines  {name}")
    print(f"{sum(found.values()):4} lines in {len(found)} places")
    if not 1 <= len(found) <= MOST_PLACES:
        sys.exit(f"a feature should be at most {MOST_PLACES} places")


if __name__ == "__main__":
    main()
