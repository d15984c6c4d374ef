#!/usr/bin/env python3
"""Makes wheels of packages of kernels: fovea-kernels-gfx942 of one for gfx942, which has it
in a folder `fovea_kernels`, where fovea finds it (docs/Python.md). Packages are given, or
compiled of a spec, which compiles what has changed since it was last done."""

import argparse
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Refused(Exception):
    """What the user is told."""


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(fovea VERSION ([0-9.]+)", text)
    assert found
    return found.group(1)


def target(package: pathlib.Path) -> str:
    """The chip that a package is for, by which a wheel is called."""
    try:
        uri = f"{package.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as file:
            (name,), = file.execute("SELECT value FROM meta WHERE key='target'")
    except (sqlite3.Error, ValueError) as error:
        raise Refused(f"{package} is no package of kernels ({error}); aot-compile "
                      "--emit=package makes one") from None
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name):
        raise Refused(f"{package} is for {name!r}, which is no chip's name; run aot-package "
                      "verify")
    return name


def write(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    chip = target(package)
    name = f"fovea_kernels_{chip.replace('-', '_')}"
    info = f"{name}-{version()}.dist-info"
    files = {
        f"fovea_kernels/{chip}.fovea": package.read_bytes(),
        # Newer libraries read older packages, older ones not always newer ones.
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: fovea-kernels-{chip}\nVersion: {version()}\n"
            f"Summary: Fovea's attention kernels for {chip}\nRequires-Python: >=3.10\n"
            f"Requires-Dist: fovea>={version()}\n").encode(),
        f"{info}/WHEEL": (b"Wheel-Version: 1.0\nGenerator: kernel-wheel.py\n"
                          b"Root-Is-Purelib: true\nTag: py3-none-any\n"),
    }
    record = ""
    wheel = folder / f"{name}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            record += f"{path},sha256={digest.decode()},{len(data)}\n"
            out.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
        out.writestr(zipfile.ZipInfo(f"{info}/RECORD"), f"{record}{info}/RECORD,,\n")
    return wheel


def compile_spec(arguments: argparse.Namespace, folder: str) -> list:
    """The packages of a spec, one for each chip."""
    command = [arguments.aot_compile, f"--spec={arguments.spec}", "--emit=package", "--prune",
               "-o", folder]
    if arguments.target:
        command.append(f"--target={arguments.target}")
    try:
        done = subprocess.run(command)
    except OSError as error:
        raise Refused(f"{arguments.aot_compile}: {error.strerror}; build it, or give "
                      "--aot-compile") from None
    if done.returncode:
        raise Refused(f"aot-compile made no package of {arguments.spec}")
    chips = arguments.target.split(",") if arguments.target else None
    packages = sorted(pathlib.Path(folder).glob("*.fovea"))
    # A folder that is kept may have those of other chips, too.
    return [file for file in packages if chips is None or target(file) in chips]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", type=pathlib.Path, metavar="PACKAGE")
    parser.add_argument("--spec", help="compiles a spec's kernels, as aot-compile does")
    parser.add_argument("--target", metavar="CHIP[,CHIP...]",
                        help="with --spec: for these chips, where it names none")
    parser.add_argument("--packages-in", metavar="FOLDER",
                        help="with --spec: keeps the packages there, so that the next time "
                             "compiles what has changed alone")
    parser.add_argument("--aot-compile", metavar="COMMAND",
                        default=os.fspath(ROOT / "build/bin/aot-compile"))
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("dist"),
                        help="the folder of the wheels (dist)")
    arguments = parser.parse_args()
    if bool(arguments.packages) == bool(arguments.spec):
        parser.error("give packages, or a spec by --spec")
    if not arguments.spec and (arguments.target or arguments.packages_in):
        parser.error("--target and --packages-in are of --spec")
    try:
        with tempfile.TemporaryDirectory() as folder:
            packages = arguments.packages
            if arguments.spec:
                packages = compile_spec(arguments, arguments.packages_in or folder)
            arguments.output.mkdir(parents=True, exist_ok=True)
            for package in packages:
                wheel = write(package, arguments.output)
                print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")
    except (Refused, OSError) as error:
        print(f"kernel-wheel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
