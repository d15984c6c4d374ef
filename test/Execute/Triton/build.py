"""Compiles the kernels with Triton, for a chip that need not be there.

A build is a kernel, types of its arguments, constants, and options of the
compiler. Results are kept in a folder by content: sources, Triton's version and
everything the build says; a change of any compiles again.
"""

import hashlib
import importlib.metadata
import json
import os
from dataclasses import dataclass, field

import numpy as np

from device import Buffer, pack

_KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.py")


def wave_size(chip):
    """Lanes of a wave as Triton builds for the chip: gfx9 has 64, later ones 32."""
    return 64 if chip.startswith("gfx9") else 32


@dataclass
class Build:
    """One compilation. `types` name each run-time argument's type in Triton's
    spelling; `divisible` are arguments known to be multiples of 16, `ranged` are
    pointers whose tensor has less than 2 GiB (buffer instructions)."""
    kernel: str
    types: dict
    constants: dict
    options: dict = field(default_factory=dict)
    divisible: tuple = ()
    ranged: tuple = ()

    def text(self, chip):
        """What the result depends on, but for Triton."""
        return json.dumps([chip, self.kernel, self.types, self.constants,
                           self.options, self.divisible, self.ranged])


@dataclass
class Compiled:
    """A code object and what its launch needs."""
    image: bytes
    kernel: str
    threads: int
    lds: int


def compile_kernel(build, chip, folder):
    """The code object of `build`, from `folder` when it is there."""
    with open(_KERNELS) as file:
        sources = file.read()
    key = hashlib.sha256("\0".join(
        [importlib.metadata.version("triton"), sources, build.text(chip)]
    ).encode()).hexdigest()[:24]
    stem = os.path.join(folder, f"{build.kernel}.{chip}.{key}")
    if not os.path.exists(stem + ".json"):
        os.makedirs(folder, exist_ok=True)
        _compile(build, chip, stem)
    with open(stem + ".json") as file:
        meta = json.load(file)
    with open(stem + ".hsaco", "rb") as file:
        image = file.read()
    return Compiled(image, meta["kernel"], meta["threads"], meta["lds"])


def _compile(build, chip, stem):
    # Triton says at every start that this default will change.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    # Slow to import, and of no use when all is built already.
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    import kernels
    function = getattr(kernels, build.kernel)
    names = function.arg_names
    signature = {n: build.types.get(n, "constexpr") for n in names}
    attributes = {}
    for name in names:
        facts = []
        if name in build.divisible:
            facts.append(["tt.divisibility", 16])
        if name in build.ranged:
            facts.append(["tt.pointer_range", 32])
        if facts:
            attributes[(names.index(name),)] = facts
    result = triton.compile(
        ASTSource(function, signature, build.constants, attributes),
        target=GPUTarget("hip", chip, wave_size(chip)), options=dict(build.options))
    with open(stem + ".hsaco", "wb") as file:
        file.write(result.asm["hsaco"])
    meta = {"kernel": result.metadata.name, "lds": result.metadata.shared,
            "threads": result.metadata.num_warps * result.metadata.warp_size}
    # Written last: it says that the pair is whole.
    with open(stem + ".json.part", "w") as file:
        json.dump(meta, file)
    os.replace(stem + ".json.part", stem + ".json")


_NUMBERS = {"i32": np.int32, "i64": np.int64, "fp32": np.float32}


def kernarg(build, values):
    """The kernarg segment: `values` by name, then Triton's two scratch pointers,
    which these kernels do not use."""
    items = []
    for name, kind in build.types.items():
        value = values[name]
        items.append(value if isinstance(value, Buffer) else _NUMBERS[kind](value))
    return pack(items + [None, None])
