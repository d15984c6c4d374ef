"""Memory of a device, through the HIP library that a context uses."""

import contextlib
import ctypes

from . import _errors, _native

_p, _n, _i = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_HIP = {
    "hipGetDevice": [ctypes.POINTER(_i)],
    "hipSetDevice": [_i],
    "hipMalloc": [ctypes.POINTER(_p), _n],
    "hipFree": [_p],
    "hipMallocAsync": [ctypes.POINTER(_p), _n, _p],
    "hipFreeAsync": [_p, _p],
    "hipMemcpy": [_p, _p, _n, _i],
    "hipStreamSynchronize": [_p],
}
_TO_DEVICE, _TO_HOST = 1, 2
_OUT_OF_MEMORY = 2
# What a block of the device is aligned to; arrays keep their place within it.
_ALIGNMENT = 256
# And there is memory behind the last: rows of 1, 3, 5 or 7 elements of 16 bits are read
# in words (docs/HeadDimensions.md).
_WORD = 4


class Hip:
    """Functions of a context's HIP library, as methods that raise."""

    def __init__(self, context):
        # Opens the library, or says why there is none.
        info = _native.new(_native._abi.fovea_hip_library_info_t)
        _native.check(_native.lib.fovea_hip_library_info(context, info))
        self._context = context
        for name, parameters in _HIP.items():
            setattr(self, name, self._function(name, parameters))
        name = self._symbol("hipGetErrorName")
        self._name = ctypes.CFUNCTYPE(ctypes.c_char_p, _i)(name) if name else None
        # Of the simulated library alone: the report of a kernel's failure.
        report = self._symbol("fovea_sim_last_report")
        self._report = ctypes.CFUNCTYPE(ctypes.c_char_p)(report) if report else None

        self._get_device = self._pointer("hipGetDevice", _HIP["hipGetDevice"])

    def current_device(self):
        """The thread's current device."""
        number = _i()
        if self._get_device(number):
            self.hipGetDevice(number)  # tells what there is to tell
        return number.value

    def _symbol(self, name):
        return _native.lib.fovea_hip_symbol(self._context, name.encode())

    def _pointer(self, name, parameters):
        address = self._symbol(name)
        return ctypes.CFUNCTYPE(_i, *parameters)(address) if address else None

    def _function(self, name, parameters):
        call = self._pointer(name, parameters)

        def checked(*arguments):
            if call is None:
                raise _errors.IncompatibleError(f"the HIP library has no {name}")
            if status := call(*arguments):
                raise self.failure(name, status)
        return checked

    def failure(self, name, status):
        text = self._name(status).decode() if self._name else str(status)
        # Nothing of a kernel is to be told where the call itself was refused.
        report = _native.text(self._report()).strip() if self._report else ""
        if status == _OUT_OF_MEMORY:
            return _errors.OutOfMemoryError(f"{name}: {text}")
        return _errors.HipError(f"{name}: {text}" + (f"\n{report}" if report else ""))

    @contextlib.contextmanager
    def device(self, number):
        """Makes a device the thread's current one for a while; None: it is."""
        if number is None:
            yield
            return
        former = self.current_device()
        if former == number:
            yield
            return
        self.hipSetDevice(number)
        try:
            yield
        finally:
            self.hipSetDevice(former)


class Mirror:
    """Memory of the host, as a device sees it for the time of a call.

    Arrays that overlap have one copy, and keep their places in it. So what the
    library says of shared memory holds, and bytes between the rows of a result come
    back as they went.
    """

    def __init__(self, hip):
        self._hip = hip
        self._spans = []  # [begin, end, written]
        self._blocks = []  # (begin, end, written, address, allocation)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for *_, allocation in self._blocks:
            self._hip.hipFree(allocation)

    def add(self, begin, size, written):
        if size:
            self._spans.append([begin, begin + size, written])

    def copy_in(self):
        merged = []
        for begin, end, written in sorted(self._spans):
            if merged and begin < merged[-1][1]:
                last = merged[-1]
                last[1], last[2] = max(last[1], end), last[2] or written
            else:
                merged.append([begin, end, written])
        for begin, end, written in merged:
            within = begin % _ALIGNMENT
            allocation = _p()
            self._hip.hipMalloc(allocation, end - begin + within + _WORD)
            address = allocation.value + within
            self._blocks.append((begin, end, written, address, allocation))
            self._hip.hipMemcpy(address, begin, end - begin, _TO_DEVICE)

    def block(self, size):
        """Memory of the device alone."""
        allocation = _p()
        self._hip.hipMalloc(allocation, size)
        self._blocks.append((0, 0, False, allocation.value, allocation))
        return allocation.value

    def address(self, host):
        """Where the device has an address of the host's."""
        return next(address + host - begin
                    for begin, end, _, address, _ in self._blocks
                    if begin <= host < end)

    def copy_out(self):
        for begin, end, written, address, _ in self._blocks:
            if written:
                self._hip.hipMemcpy(begin, address, end - begin, _TO_HOST)
