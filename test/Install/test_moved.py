#!/usr/bin/env python3
"""An installation that is moved works, and has no path of its build in it.

    test_moved.py CMAKE BUILD FOLDER

Installs BUILD into FOLDER, moves the tree, and runs from it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

CMAKE, BUILD, FOLDER = sys.argv[1:]
COMPONENTS = ("fovea_runtime", "fovea_runtime_tools", "fovea_compiler",
              "fovea_compiler_tools", "fovea_simulator", "fovea_simulator_tools",
              "fovea_kernels")
FOLDER = pathlib.Path(FOLDER)
HERE, THERE = FOLDER / "first-place", FOLDER / "moved" / "to here"


def run(*command, status=0):
    """With nothing in the environment that shows the way."""
    done = subprocess.run(
        command, capture_output=True, text=True, cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": str(FOLDER)})
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}, not {status}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for component in COMPONENTS:
        run(CMAKE, "--install", BUILD, "--prefix", HERE, "--strip",
            "--component", component)
    THERE.parent.mkdir(parents=True)
    HERE.rename(THERE)

    # Neither where it was, nor where it was built.
    known = [os.fsencode(path) for path in (HERE, BUILD)]
    traces = [str(file.relative_to(THERE)) for file in THERE.rglob("*")
              if file.is_file() and not file.is_symlink()
              and any(path in file.read_bytes() for path in known)]
    if traces:
        sys.exit(f"paths of the build or of the first place are in {traces}")
    dangling = [str(file.relative_to(THERE)) for file in THERE.rglob("*")
                if file.is_symlink() and not file.exists()]
    if dangling:
        sys.exit(f"links that lead nowhere: {dangling}")

    programs = THERE / "bin"
    problem = ("--dtype=bf16", "--head-dim=128", "--heads=1", "--seqlen-q=64",
               "--seqlen-k=64")
    # Its own kernels, runtime and simulator.
    out = run(programs / "aot-run", *problem)
    if "gfx942" not in out:
        sys.exit(f"aot-run says:\n{out}")
    report = FOLDER / "run.json"
    run(programs / "fovea-sim", "--report=json", f"--output={report}", "--check=all",
        programs / "aot-run", *problem)
    summary = json.loads(report.read_text())
    if not summary["kernels"] or summary["findings"]:
        sys.exit(f"fovea-sim says:\n{summary}")
    run(programs / "aot-compile", "--target=gfx942", "--op=forward", "--dtype=bf16",
        "--head-dim=32", "--emit=package", "-q", "-o", FOLDER / "new.fovea")
    run(programs / "aot-package", "verify", FOLDER / "new.fovea")
    print(f"ok: {sum(f.is_file() for f in THERE.rglob('*'))} files")


if __name__ == "__main__":
    main()
