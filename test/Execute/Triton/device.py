"""A device seen through the HIP module API, and nothing else.

Opens a HIP library by ctypes (the simulated one, or ROCm's), so that kernels can
be launched from Python without a framework. Every failing call raises DeviceError
with the function, the status and, on the simulated device, its full report.
"""

import ctypes
import struct

import numpy as np

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
# Markers of hipModuleLaunchKernel's `extra` list.
EXTRA_BUFFER, EXTRA_SIZE, EXTRA_END = 1, 2, 3


class DeviceError(RuntimeError):
    """A HIP call that did not return hipSuccess."""


class Buffer:
    """Device memory that holds the bytes of one NumPy array."""

    def __init__(self, device, array):
        self.device = device
        self.array = np.ascontiguousarray(array)
        self.address = ctypes.c_void_p()
        # hipMalloc of nothing gives no address, and kernels want one.
        device.call("hipMalloc", ctypes.byref(self.address),
                    ctypes.c_size_t(max(self.array.nbytes, 16)))
        self.upload()

    def upload(self):
        if self.array.nbytes:
            self.device.call("hipMemcpy", self.address,
                             self.array.ctypes.data_as(ctypes.c_void_p),
                             ctypes.c_size_t(self.array.nbytes), HOST_TO_DEVICE)

    def read(self):
        """The array as the device has it now."""
        result = np.empty_like(self.array)
        if result.nbytes:
            self.device.call("hipMemcpy", result.ctypes.data_as(ctypes.c_void_p),
                             self.address, ctypes.c_size_t(result.nbytes),
                             DEVICE_TO_HOST)
        return result

    def free(self):
        self.device.call("hipFree", self.address)


class Device:
    """Device 0 of the HIP library at `path`."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.hipGetErrorName.restype = ctypes.c_char_p

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            text = self.library.hipGetErrorName(status).decode()
            report = getattr(self.library, "fovea_sim_last_report", None)
            if report is not None:
                report.restype = ctypes.c_char_p
                text += ": " + (report() or b"").decode()
            raise DeviceError(f"{function}: {text}")

    def buffer(self, array):
        return Buffer(self, array)

    def load(self, image, kernel):
        """The function `kernel` of the code object `image` (bytes)."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), image)
        self.call("hipModuleGetFunction", ctypes.byref(function), module,
                  kernel.encode())
        return function

    def launch(self, function, grid, block, arguments, dynamic_lds=0):
        """Launches and waits. `arguments` are the kernarg segment's bytes."""
        data = ctypes.create_string_buffer(arguments, len(arguments))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(
            EXTRA_BUFFER, ctypes.cast(data, ctypes.c_void_p), EXTRA_SIZE,
            ctypes.cast(ctypes.byref(size), ctypes.c_void_p), EXTRA_END)
        self.call("hipModuleLaunchKernel", function, *grid, *block, dynamic_lds,
                  None, None, extra)
        self.call("hipDeviceSynchronize")


def pack(arguments):
    """Bytes of a kernarg segment, each value aligned to its own size.

    A Buffer is its address, None a null pointer, an int i32 (i64 when it does
    not fit), a float f32; a NumPy scalar is what it is.
    """
    data = b""
    for value in arguments:
        if isinstance(value, Buffer):
            item = struct.pack("<Q", value.address.value)
        elif value is None:
            item = struct.pack("<Q", 0)
        elif isinstance(value, np.generic):
            item = value.tobytes()
        elif isinstance(value, float):
            item = struct.pack("<f", value)
        else:
            item = struct.pack("<i" if -2**31 <= value < 2**31 else "<q", value)
        data += bytes(-len(data) % len(item)) + item
    return data
