"""Arrays of other libraries: what lies where, and making results like them."""

import ctypes
import dataclasses
import sys
from typing import Any

from . import _native
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
KINDS = tuple(_BYTES)


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


def _check_kind(name, kind, wanted, known=True):
    if kind not in _BYTES or not known:
        raise TypeError(f"{name}: its elements are {kind}, not "
                        f"{'one of ' if len(wanted) > 1 else ''}{', '.join(wanted)}")


def _is_masked(array):
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


def _of_interface(array, name, wanted):
    if _is_masked(array):
        raise TypeError(f"{name} is a masked array, whose mask no kernel looks at; give its data, "
                        "or filled()")
    interface = array.__array_interface__
    kind = str(getattr(array, "dtype", ""))  # ml_dtypes' types have a name alone
    if kind not in _BYTES:
        kind = {"f2": "float16", "f4": "float32", "i4": "int32", "i8": "int64",
                "u8": "uint64", "b1": "bool"}.get(interface["typestr"][1:],
                                                  kind or interface["typestr"])
    if interface["typestr"][0] == ">":
        kind += " of big-endian bytes"
    _check_kind(name, kind, wanted)
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


def strided(tensor, name):
    """Refuses a tensor of PyTorch's whose elements lie in other than one grid."""
    if tensor.is_nested:
        raise TypeError(f"{name} is a nested tensor; give its values(), packed, with varlen=, or "
                        "to_padded_tensor(), padded, with lengths")
    if tensor.layout is not sys.modules["torch"].strided:
        raise TypeError(f"{name} is a tensor of {tensor.layout}, not a strided one; give its "
                        "to_dense()")


def _of_torch(tensor, name, wanted):
    """A tensor of PyTorch's own class, without the capsule of DLPack."""
    strided(tensor, name)
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise TypeError(f"{name}: Tensor that requires a gradient; fovea.torch.attention "
                        "is for these, detach() or torch.no_grad() for what needs none")
    if tensor.is_neg():
        raise TypeError(f"{name}: its elements are negated when they are read; give "
                        "its resolve_neg()")
    kind = str(tensor.dtype).rpartition(".")[2]
    _check_kind(name, kind, wanted)
    place = tensor.device
    if place.type not in torch_devices:
        raise TypeError(f"{name}: it is in memory of PyTorch's device '{place}', neither "
                        "the host's nor ROCm's; copy it there")
    on_device = torch_devices[place.type]
    return View(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), kind,
                (place.index or 0) if on_device else None, False, tensor)


def is_planned(array):
    """Whether it is a tensor of a compiler's of PyTorch's, which stands for those of all
    calls: it has a form, and no elements."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, getattr(torch, "Tensor", ())) and (
        isinstance(array, (torch._subclasses.FakeTensor,
                           torch._subclasses.functional_tensor.FunctionalTensor)))


def is_wrapped(array):
    """Whether it is a tensor of a transform's of PyTorch's, which has a form, and its elements
    beneath."""
    torch = sys.modules.get("torch")
    return (torch is not None and isinstance(array, getattr(torch, "Tensor", ()))
            and torch._C._functorch.is_functorch_wrapped_tensor(array))


def planned(tensor):
    """A View of one, as it lies in memory that begins at 0."""
    kind = str(tensor.dtype).rpartition(".")[2]
    return View(tensor.storage_offset() * tensor.element_size(), tuple(tensor.shape),
                tuple(tensor.stride()), kind, None, False, tensor)


def _of_dlpack(array, name, wanted):
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
    _check_kind(name, kind, wanted, tensor.lanes == 1)
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


def view(array, name, wanted=KINDS):
    """Where an array lies.

    Args:
        wanted: the types that its place takes, for a message about one that nothing takes.

    Raises:
        TypeError: it is none, or has elements or memory of another kind.
    """
    if isinstance(array, View):
        return array
    if isinstance(array, Spec):
        return View(0, array.shape, _contiguous(array.shape, array.order),
                    array.dtype, None, False, array)
    if layout_of(type(array)) is _torch_layout:
        made = _of_torch(array, name, wanted)
    elif hasattr(array, "__array_interface__"):
        made = _of_interface(array, name, wanted)
    elif hasattr(array, "__dlpack__"):
        made = _of_dlpack(array, name, wanted)
    else:
        raise TypeError(f"{name}: {type(array).__name__} is no array: it has neither "
                        "__dlpack__ nor __array_interface__")
    if any(stride < 0 for stride in made.strides):
        raise InvalidArgumentError(
            f"{name}: a stride is negative, {made.strides}; copy it")
    return made


# What a call's structures hold of an array but its address: functions of the array that
# give this as a key, and append the address to `seen`, by the array's type.
def _view_layout(array, seen):
    seen.append(array.data)
    return (array.shape, array.strides, array.dtype, array.device, array.read_only,
            isinstance(array.owner, Spec))  # which is refused where something runs


def _torch_layout(tensor, seen):
    seen.append(tensor.data_ptr())
    # Whether a gradient is required decides only whether the tensor is refused.
    # And whether elements are negated when they are read.
    return (tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.is_neg(),
            tensor.requires_grad and sys.modules["torch"].is_grad_enabled())


def _any_layout(array, seen):
    made = view(array, "")
    seen.owners.append(made.owner)
    return _view_layout(made, seen)


def _scalar_layout(scalar, _):
    # Of no array, so that no address goes with it: its array interface is of a copy, which
    # nobody keeps.
    return type(scalar), key_of_number(scalar.item())


def key_of_number(value):
    """A number in a key: zeros of both signs are equal, and their reciprocals are not."""
    return str(value) if not value and isinstance(value, float) else value


def as_plain(given):
    """One of NumPy's scalars as a number of Python's; anything else as it is."""
    return given.item() if layout_of(type(given)) is _scalar_layout else given


def without_dimensions(given):
    """An array without dimensions as the number that it has now; anything else as it is, and
    what is refused where it is named."""
    if isinstance(given, (int, float)) or getattr(given, "ndim", None) != 0:
        return given
    if _is_masked(given) or _is_watched(given):
        return given
    try:
        value = given.item()
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return given
    return value if isinstance(value, (int, float)) else given


def _is_watched(given):
    """Whether it is a tensor of PyTorch's whose number would be lost to a gradient, a compiler
    or a transform."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(given, getattr(torch, "Tensor", ())):
        return False
    return (torch.compiler.is_compiling() or given.requires_grad
            or torch._C._len_torch_dispatch_stack() > 0 or is_planned(given)
            or is_wrapped(given))


#: PyTorch's kinds of devices whose memory a call takes: whether it is a GPU's.
torch_devices = {"cpu": False}
_layouts = {View: _view_layout}


def layout_of(kind):
    """The function for arrays of a type."""
    found = _layouts.get(kind)
    if found is None:
        found = _any_layout
        torch = sys.modules.get("torch")
        # Other classes than these may have their elements elsewhere.
        if torch is not None and hasattr(torch, "nn") and kind in (
                torch.Tensor, torch.nn.Parameter):
            found = _torch_layout
            if torch.version.hip:
                torch_devices["cuda"] = True
        elif kind.__module__.partition(".")[0] == "torch":
            return found  # may be asked while PyTorch is being imported
        elif issubclass(kind, getattr(sys.modules.get("numpy"), "generic", ())):
            found = _scalar_layout
        _layouts[kind] = found
    return found


def address_of(like):
    """A function that gives the address of an array of the class of another, and keeps
    what has to live as long, in a Seen."""
    if layout_of(type(like)) is _torch_layout:
        return lambda tensor, _: tensor.data_ptr()

    def address(array, seen):
        made = view(array, "")
        seen.owners.append(made.owner)
        return made.data
    return address


class Seen(list):
    """Addresses of a call's arrays, in their order, and what keeps the memory."""

    def __init__(self):
        self.owners = []


# How arrays are made like others, by the module of their type: a function that makes
# them, empty or with zeros, in a shape, of a type by name or of the other's, where the
# other is. Strides are `order`, dimensions from the outermost in memory to the innermost.
def _numpy(like, shape, dtype, order, zeros):
    import numpy
    make, kind = numpy.zeros if zeros else numpy.empty, dtype or like.dtype
    return _permuted(shape, order, lambda _, extents: make(extents, kind))


def _torch(like, shape, dtype, order, zeros):
    import torch
    kind, device = getattr(torch, dtype) if dtype else like.dtype, like.device
    strides, make = _contiguous(shape, order), torch.empty_strided
    if zeros:
        return lambda _: make(shape, strides, dtype=kind, device=device).zero_()
    return lambda _: make(shape, strides, dtype=kind, device=device)


def _standard(like, shape, dtype, order, zeros):
    """Python's standard for arrays."""
    def make(like, extents):
        space = like.__array_namespace__()
        return (space.zeros if zeros else space.empty)(
            extents, dtype=getattr(space, dtype) if dtype else like.dtype,
            device=like.device)
    return _permuted(shape, order, make)


def _permuted(shape, order, make):
    extents = tuple(shape[dim] for dim in order)
    if order == tuple(range(len(shape))):
        return lambda like: make(like, extents)
    back = tuple(order.index(dim) for dim in range(len(shape)))

    def permuted(like):
        made = make(like, extents)
        return made.permute(back) if hasattr(made, "permute") else made.transpose(back)
    return permuted


_MAKERS = {"numpy": _numpy, "torch": _torch}


def maker(like, shape, dtype=None, order=None, zeros=False):
    """A function of `like`, or another array of its library, device and type, that
    makes an array of these too.

    Args:
        order: dimensions from the outermost in memory to the innermost.
    """
    if isinstance(like, Spec):
        return lambda _: Spec(shape, dtype or like.dtype, order)
    make = _MAKERS.get(type(like).__module__.partition(".")[0])
    if make is None:
        if not hasattr(like, "__array_namespace__"):
            raise TypeError(f"results cannot be made like {type(like).__name__}, which "
                            "has no __array_namespace__; give the arrays to write to")
        make = _standard
    return make(like, tuple(shape), dtype, tuple(order or range(len(shape))), zeros)


def order_of(view):
    """Dimensions from the outermost in memory to the innermost, the last one last."""
    inner = len(view.shape) - 1
    return (*sorted(range(inner), key=lambda dim: -view.strides[dim]), inner)


def _torch_stream(device):
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # ten times as fast
    return raw(device) if raw else torch.cuda.current_stream(device).cuda_stream


def current_stream_of(like):
    """A function that gives the number of the stream that a device's arrays like this
    one are ordered by; None: it is the null stream's."""
    torch = sys.modules.get("torch")
    # Classes that are made of PyTorch's, too.
    return (_torch_stream if torch is not None
            and isinstance(like, getattr(torch, "Tensor", ())) else None)


def stream_number(given):
    """The number of a HIP stream."""
    for name in ("cuda_stream", "ptr"):
        given = getattr(given, name, given)
    try:
        if isinstance(given, (str, bytes, float)):  # which int() would read, or cut off
            raise TypeError
        number = int(given)
    except (TypeError, ValueError):
        raise TypeError(f"stream is {given!r}, neither a hipStream_t as a number nor an object "
                        "with cuda_stream") from None
    return _native.whole(number, "stream", 0, 2**64)  # which ctypes would cut off
