"""A kernel of Triton's, launched by Triton's own launcher: nothing here knows of the
simulator. Triton takes its tensors and its choice of a device from PyTorch built for
ROCm; these are stood in for, over HIP."""

import ctypes

import numpy as np
import triton
import triton.language as tl
from triton.backends.amd.driver import HIPDriver

hip = ctypes.CDLL("libamdhip64.so")
COPY_TO_DEVICE, COPY_TO_HOST = 1, 2


def call(name, *arguments):
    error = getattr(hip, name)(*arguments)
    if error:
        raise RuntimeError(f"{name} returned {error}")


class Tensor:
    """What a launcher sees of a tensor: where it lies, and of what type it is."""
    dtype = "fp32"

    def __init__(self, values):
        self.values = np.ascontiguousarray(values, np.float32)
        self.place = ctypes.c_void_p()
        size = ctypes.c_size_t(self.values.nbytes)
        call("hipMalloc", ctypes.byref(self.place), size)
        call("hipMemcpy", self.place, ctypes.c_void_p(self.values.ctypes.data), size,
             COPY_TO_DEVICE)

    def data_ptr(self):
        return self.place.value

    def read(self):
        call("hipMemcpy", ctypes.c_void_p(self.values.ctypes.data), self.place,
             ctypes.c_size_t(self.values.nbytes), COPY_TO_HOST)
        return self.values


class Driver(HIPDriver):
    """Triton's, without what it asks PyTorch."""

    def __init__(self):
        from triton.backends.amd.driver import HIPLauncher, HIPUtils
        self.utils, self.launcher_cls = HIPUtils(), HIPLauncher
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device=0: 0
        self.get_device_capability = lambda device=0: (9, 4)


@triton.jit
def scaled_sum(x, y, out, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, scale * tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def main():
    triton.runtime.driver.set_active(Driver())
    rng = np.random.default_rng(1)
    for n in (1, 1000, 4096):
        x, y, out = (Tensor(rng.standard_normal(n)) for _ in range(3))
        scaled_sum[(triton.cdiv(n, 256),)](x, y, out, 3.0, n, BLOCK=256)
        wanted = np.float32(3) * x.values + y.values
        if not np.allclose(out.read(), wanted, rtol=1e-6, atol=1e-6):
            raise SystemExit(f"wrong: {n} elements")
    print("right: 3 launches", flush=True)


if __name__ == "__main__":
    main()
