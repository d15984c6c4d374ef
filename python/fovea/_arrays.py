"""Arrays of other libraries: what lies where, and making results like them."""

import ctypes
import dataclasses
import sys
from typing import Any

from ._errors import InvalidArgumentError

# DLPack's numbers (dlpack.h, version 1).
_CPU, _CUDA_HOST, _ROCM, _ROCM_HOST = 1, 3, 10, 11
_ON_HOST = (_CPU, _CUDA_HOST, _ROCM_HOST)
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_READ_ONLY = 1  # of a versioned tensor's flags


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.argtypes = [ctypes.py_object, ctypes.c_char_p]

_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "int32": 4, "int64": 8,
          "uint64": 8, "bool": 1}


@dataclasses.dataclass
class View:
    """Where an array lies. Strides are in elements; `device` is None on the host."""

    data: int
    shape: tuple
    strides: tuple
    dtype: str
    device: Any = None
    read_only: bool = False
    owner: Any = None  # keeps the memory

    @property
    def itemsize(self):
        return _BYTES[self.dtype]

    @property
    def span(self):
        """Bytes from the first element to behind the last; 0: there is none."""
        if 0 in self.shape:
            return 0
        return (1 + sum((extent - 1) * stride for extent, stride in
                        zip(self.shape, self.strides))) * self.itemsize


class Spec:
    """Stands for an array where nothing runs, as in :func:`fovea.explain`.

    Args:
        shape: extents.
        dtype: ``"float16"``, ``"bfloat16"``, ``"float32"``, ...
        order: dimensions from the outermost in memory to the innermost; by default
            as they are.
    """

    def __init__(self, shape, dtype, order=None):
        self.shape, self.dtype = tuple(map(int, shape)), str(dtype)
        self.order = tuple(order or range(len(self.shape)))
        if self.dtype not in _BYTES:
            raise TypeError(f"Spec: dtype is '{dtype}', not one of {', '.join(_BYTES)}")

    def __repr__(self):
        return f"Spec({self.shape}, '{self.dtype}')"


def _contiguous(shape, order=None):
    strides, step = [0] * len(shape), 1
    for dim in reversed(order or range(len(shape))):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def _of_interface(array, name):
    interface = array.__array_interface__
    kind = str(getattr(array, "dtype", ""))  # ml_dtypes' types have a name alone
    if kind not in _BYTES:
        kind = {"f2": "float16", "f4": "float32", "i4": "int32", "i8": "int64",
                "u8": "uint64", "b1": "bool"}.get(interface["typestr"][1:],
                                                  kind or interface["typestr"])
    if interface["typestr"][0] == ">":
        kind += " of big-endian bytes"
    if kind not in _BYTES:
        raise TypeError(f"{name}: its elements are {kind}, not one of "
                        f"{', '.join(_BYTES)}")
    shape, size = tuple(interface["shape"]), _BYTES[kind]
    strides = interface.get("strides")
    if strides is None:
        strides = _contiguous(shape)
    elif any(stride % size for stride in strides):
        raise InvalidArgumentError(
            f"{name}: its strides, {strides} bytes, are no multiples of its elements' "
            f"{size} bytes; copy it")
    else:
        strides = tuple(stride // size for stride in strides)
    address, read_only = interface["data"]
    return View(address, shape, strides, kind, None, read_only, array)


def _of_dlpack(array, name):
    try:
        # The memory is ordered by `stream`, of the caller's: nothing to wait for.
        where = array.__dlpack_device__()[0]
        given = {} if where in _ON_HOST else {"stream": -1}
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **given)
        except TypeError:
            capsule = array.__dlpack__(**given)
    except (BufferError, RuntimeError, ValueError) as error:
        raise TypeError(f"{name}: {type(array).__name__} gives no DLPack tensor: "
                        f"{error}") from None
    read_only = False
    if _capsule_is(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(
            _capsule_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"{name}: its DLPack version is {managed.major}, not 1")
        tensor, read_only = managed.tensor, bool(managed.flags & _READ_ONLY)
    else:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    kind = f"{_KINDS.get(tensor.code, f'DLPack type {tensor.code}, ')}{tensor.bits}"
    kind = "bool" if kind == "bool8" else kind
    if kind not in _BYTES or tensor.lanes != 1:
        raise TypeError(f"{name}: its elements are {kind}, not one of "
                        f"{', '.join(_BYTES)}")
    if tensor.device_type not in (*_ON_HOST, _ROCM):
        raise TypeError(
            f"{name}: it is in memory of DLPack's device type {tensor.device_type}, "
            "neither the host's nor ROCm's (10); copy it there")
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = (tuple(tensor.strides[:tensor.ndim]) if tensor.strides
               else _contiguous(shape))
    # The capsule is not renamed, so that it frees its tensor when it goes.
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, kind,
                tensor.device_id if tensor.device_type == _ROCM else None,
                read_only, (array, capsule))


def view(array, name):
    """Where an array lies.

    Raises:
        TypeError: it is none, or has elements or memory of another kind.
    """
    if isinstance(array, View):
        return array
    if isinstance(array, Spec):
        return View(0, array.shape, _contiguous(array.shape, array.order),
                    array.dtype, None, False, array)
    if hasattr(array, "__array_interface__"):
        made = _of_interface(array, name)
    elif hasattr(array, "__dlpack__"):
        made = _of_dlpack(array, name)
    else:
        raise TypeError(f"{name}: {type(array).__name__} is no array: it has neither "
                        "__dlpack__ nor __array_interface__")
    if any(stride < 0 for stride in made.strides):
        raise InvalidArgumentError(
            f"{name}: a stride is negative, {made.strides}; copy it")
    return made


# How arrays are made like others, by the module of their type: empty or with zeros,
# in a shape, of a type by name or of the other's, where the other is; and the stream
# that work on them is ordered by, on a device.
def _numpy(like, shape, dtype, zeros):
    import numpy
    return (numpy.zeros if zeros else numpy.empty)(shape, dtype or like.dtype)


def _torch(like, shape, dtype, zeros):
    import torch
    make = torch.zeros if zeros else torch.empty
    return make(shape, dtype=getattr(torch, dtype) if dtype else like.dtype,
                device=like.device)


def _standard(like, shape, dtype, zeros):
    """Python's standard for arrays."""
    space = like.__array_namespace__()
    return (space.zeros if zeros else space.empty)(
        shape, dtype=getattr(space, dtype) if dtype else like.dtype,
        device=like.device)


_MAKERS = {"numpy": _numpy, "torch": _torch}


def empty(like, shape, dtype=None, order=None, zeros=False):
    """An array like another: of its library and device.

    Args:
        order: dimensions from the outermost in memory to the innermost.
    """
    if isinstance(like, Spec):
        return Spec(shape, dtype or like.dtype, order)
    make = _MAKERS.get(type(like).__module__.partition(".")[0])
    if make is None:
        if not hasattr(like, "__array_namespace__"):
            raise TypeError(f"results cannot be made like {type(like).__name__}, which "
                            "has no __array_namespace__; give the arrays to write to")
        make = _standard
    order = tuple(order or range(len(shape)))
    made = make(like, tuple(shape[dim] for dim in order), dtype, zeros)
    if order == tuple(range(len(shape))):
        return made
    back = tuple(order.index(dim) for dim in range(len(shape)))
    return made.permute(back) if hasattr(made, "permute") else made.transpose(back)


def order_of(view):
    """Dimensions from the outermost in memory to the innermost, the last one last."""
    inner = len(view.shape) - 1
    return (*sorted(range(inner), key=lambda dim: -view.strides[dim]), inner)


def stream_of(given, arrays, device):
    """The number of a HIP stream; 0: the null stream."""
    if given is None:
        torch = sys.modules.get("torch")
        if device is None or torch is None or not isinstance(arrays, torch.Tensor):
            return 0
        given = torch.cuda.current_stream(device)
    for name in ("cuda_stream", "ptr"):
        given = getattr(given, name, given)
    return int(given)
