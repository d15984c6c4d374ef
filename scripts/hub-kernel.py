#!/usr/bin/env python3
"""Writes a kernel of the Hugging Face hub's layout: a folder that the package `kernels`
loads, and transformers by attn_implementation, with flash-attn's functions over the fovea
that is installed (docs/Python.md)."""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "fovea-flash-attn"
# Builds without code for one version of PyTorch: torch-BACKEND.
BACKENDS = ("rocm", "cpu")

MODULE = '''"""flash-attn's functions over Fovea's kernels."""

try:
    from fovea.flash_attn import *  # noqa: F401,F403
    from fovea.flash_attn import __all__  # noqa: F401
except ImportError as error:
    raise ImportError("this kernel needs the package fovea, its compiler or its kernels for "
                      f"the GPU: pip install fovea fovea-compiler ({error})") from error
'''


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(fovea VERSION ([0-9.]+)", text)
    assert found
    return found.group(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="where it is written")
    options = parser.parse_args()
    for backend in BACKENDS:
        build = options.folder / "build" / f"torch-{backend}"
        build.mkdir(parents=True, exist_ok=True)
        (build / "__init__.py").write_text(MODULE)
        (build / "metadata.json").write_text(json.dumps({
            "name": NAME, "version": 1, "backend": {"type": backend}, "python-depends": [],
            "license": "NOASSERTION",  # a field has to be there
            "id": f"_{NAME}_{backend}_{version()}".replace("-", "_").replace(".", "_"),
        }, indent=2) + "\n")
        print(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
