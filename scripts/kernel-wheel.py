#!/usr/bin/env python3
"""Makes a wheel of a package of kernels: of library/gfx942.fovea the wheel
fovea-kernels-gfx942, which has the package in a folder `fovea_kernels`, where fovea
finds it (docs/Python.md)."""

import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(fovea VERSION ([0-9.]+)", text)
    assert found
    return found.group(1)


def write(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    chip = package.stem
    name = f"fovea_kernels_{chip.replace('-', '_')}"
    info = f"{name}-{version()}.dist-info"
    files = {
        f"fovea_kernels/{package.name}": package.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: fovea-kernels-{chip}\nVersion: {version()}\n"
            f"Summary: Fovea's attention kernels for {chip}\nRequires-Python: >=3.10\n"
            "Requires-Dist: fovea\n").encode(),
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+", type=pathlib.Path, metavar="CHIP.fovea")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("dist"),
                        help="the folder of the wheels (dist)")
    parser.add_argument("--aot-package", metavar="COMMAND",
                        help="verifies each package before it is taken")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for package in arguments.packages:
        if package.suffix != ".fovea" or not package.is_file():
            print(f"kernel-wheel.py: {package} is no package <chip>.fovea", file=sys.stderr)
            return 1
        if arguments.aot_package:
            subprocess.run([arguments.aot_package, "verify", package], check=True)
        wheel = write(package, arguments.output)
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
