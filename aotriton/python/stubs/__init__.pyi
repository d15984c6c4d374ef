"""AOTriton's Python module over Fovea's kernels (docs/Pyaotriton.md).

Calls return a hipError_t; the reason of one that is not hipSuccess is a
RuntimeWarning, and what fovea_last_message() gives.
"""
from typing import ClassVar, Sequence

#if MINOR >= 11
from . import lazy_tensor as lazy_tensor
#endif
from . import v2 as v2
from . import v3 as v3

class hipError_t:
    """HIP's statuses; some have two names."""
    __members__: ClassVar[dict[str, "hipError_t"]]
    hipSuccess: ClassVar["hipError_t"]
    hipErrorInvalidValue: ClassVar["hipError_t"]
    hipErrorOutOfMemory: ClassVar["hipError_t"]
    hipErrorMemoryAllocation: ClassVar["hipError_t"]
    hipErrorNotInitialized: ClassVar["hipError_t"]
    hipErrorInitializationError: ClassVar["hipError_t"]
    hipErrorDeinitialized: ClassVar["hipError_t"]
    hipErrorProfilerDisabled: ClassVar["hipError_t"]
    hipErrorProfilerNotInitialized: ClassVar["hipError_t"]
    hipErrorProfilerAlreadyStarted: ClassVar["hipError_t"]
    hipErrorProfilerAlreadyStopped: ClassVar["hipError_t"]
    hipErrorInvalidConfiguration: ClassVar["hipError_t"]
    hipErrorInvalidPitchValue: ClassVar["hipError_t"]
    hipErrorInvalidSymbol: ClassVar["hipError_t"]
    hipErrorInvalidDevicePointer: ClassVar["hipError_t"]
    hipErrorInvalidMemcpyDirection: ClassVar["hipError_t"]
    hipErrorInsufficientDriver: ClassVar["hipError_t"]
    hipErrorMissingConfiguration: ClassVar["hipError_t"]
    hipErrorPriorLaunchFailure: ClassVar["hipError_t"]
    hipErrorInvalidDeviceFunction: ClassVar["hipError_t"]
    hipErrorNoDevice: ClassVar["hipError_t"]
    hipErrorInvalidDevice: ClassVar["hipError_t"]
    hipErrorInvalidImage: ClassVar["hipError_t"]
    hipErrorInvalidContext: ClassVar["hipError_t"]
    hipErrorContextAlreadyCurrent: ClassVar["hipError_t"]
    hipErrorMapFailed: ClassVar["hipError_t"]
    hipErrorMapBufferObjectFailed: ClassVar["hipError_t"]
    hipErrorUnmapFailed: ClassVar["hipError_t"]
    hipErrorArrayIsMapped: ClassVar["hipError_t"]
    hipErrorAlreadyMapped: ClassVar["hipError_t"]
    hipErrorNoBinaryForGpu: ClassVar["hipError_t"]
    hipErrorAlreadyAcquired: ClassVar["hipError_t"]
    hipErrorNotMapped: ClassVar["hipError_t"]
    hipErrorNotMappedAsArray: ClassVar["hipError_t"]
    hipErrorNotMappedAsPointer: ClassVar["hipError_t"]
    hipErrorECCNotCorrectable: ClassVar["hipError_t"]
    hipErrorUnsupportedLimit: ClassVar["hipError_t"]
    hipErrorContextAlreadyInUse: ClassVar["hipError_t"]
    hipErrorPeerAccessUnsupported: ClassVar["hipError_t"]
    hipErrorInvalidKernelFile: ClassVar["hipError_t"]
    hipErrorInvalidGraphicsContext: ClassVar["hipError_t"]
    hipErrorInvalidSource: ClassVar["hipError_t"]
    hipErrorFileNotFound: ClassVar["hipError_t"]
    hipErrorSharedObjectSymbolNotFound: ClassVar["hipError_t"]
    hipErrorSharedObjectInitFailed: ClassVar["hipError_t"]
    hipErrorOperatingSystem: ClassVar["hipError_t"]
    hipErrorInvalidHandle: ClassVar["hipError_t"]
    hipErrorInvalidResourceHandle: ClassVar["hipError_t"]
    hipErrorIllegalState: ClassVar["hipError_t"]
    hipErrorNotFound: ClassVar["hipError_t"]
    hipErrorNotReady: ClassVar["hipError_t"]
    hipErrorIllegalAddress: ClassVar["hipError_t"]
    hipErrorLaunchOutOfResources: ClassVar["hipError_t"]
    hipErrorLaunchTimeOut: ClassVar["hipError_t"]
    hipErrorPeerAccessAlreadyEnabled: ClassVar["hipError_t"]
    hipErrorPeerAccessNotEnabled: ClassVar["hipError_t"]
    hipErrorSetOnActiveProcess: ClassVar["hipError_t"]
    hipErrorContextIsDestroyed: ClassVar["hipError_t"]
    hipErrorAssert: ClassVar["hipError_t"]
    hipErrorHostMemoryAlreadyRegistered: ClassVar["hipError_t"]
    hipErrorHostMemoryNotRegistered: ClassVar["hipError_t"]
    hipErrorLaunchFailure: ClassVar["hipError_t"]
    hipErrorCooperativeLaunchTooLarge: ClassVar["hipError_t"]
    hipErrorNotSupported: ClassVar["hipError_t"]
    hipErrorStreamCaptureUnsupported: ClassVar["hipError_t"]
    hipErrorStreamCaptureInvalidated: ClassVar["hipError_t"]
    hipErrorStreamCaptureMerge: ClassVar["hipError_t"]
    hipErrorStreamCaptureUnmatched: ClassVar["hipError_t"]
    hipErrorStreamCaptureUnjoined: ClassVar["hipError_t"]
    hipErrorStreamCaptureIsolation: ClassVar["hipError_t"]
    hipErrorStreamCaptureImplicit: ClassVar["hipError_t"]
    hipErrorCapturedEvent: ClassVar["hipError_t"]
    hipErrorStreamCaptureWrongThread: ClassVar["hipError_t"]
    hipErrorGraphExecUpdateFailure: ClassVar["hipError_t"]
    hipErrorUnknown: ClassVar["hipError_t"]
    hipErrorRuntimeMemory: ClassVar["hipError_t"]
    hipErrorRuntimeOther: ClassVar["hipError_t"]
    hipErrorTbd: ClassVar["hipError_t"]
    def __init__(self, value: int) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...

hipSuccess: hipError_t
hipErrorInvalidValue: hipError_t
hipErrorOutOfMemory: hipError_t
hipErrorMemoryAllocation: hipError_t
hipErrorNotInitialized: hipError_t
hipErrorInitializationError: hipError_t
hipErrorDeinitialized: hipError_t
hipErrorProfilerDisabled: hipError_t
hipErrorProfilerNotInitialized: hipError_t
hipErrorProfilerAlreadyStarted: hipError_t
hipErrorProfilerAlreadyStopped: hipError_t
hipErrorInvalidConfiguration: hipError_t
hipErrorInvalidPitchValue: hipError_t
hipErrorInvalidSymbol: hipError_t
hipErrorInvalidDevicePointer: hipError_t
hipErrorInvalidMemcpyDirection: hipError_t
hipErrorInsufficientDriver: hipError_t
hipErrorMissingConfiguration: hipError_t
hipErrorPriorLaunchFailure: hipError_t
hipErrorInvalidDeviceFunction: hipError_t
hipErrorNoDevice: hipError_t
hipErrorInvalidDevice: hipError_t
hipErrorInvalidImage: hipError_t
hipErrorInvalidContext: hipError_t
hipErrorContextAlreadyCurrent: hipError_t
hipErrorMapFailed: hipError_t
hipErrorMapBufferObjectFailed: hipError_t
hipErrorUnmapFailed: hipError_t
hipErrorArrayIsMapped: hipError_t
hipErrorAlreadyMapped: hipError_t
hipErrorNoBinaryForGpu: hipError_t
hipErrorAlreadyAcquired: hipError_t
hipErrorNotMapped: hipError_t
hipErrorNotMappedAsArray: hipError_t
hipErrorNotMappedAsPointer: hipError_t
hipErrorECCNotCorrectable: hipError_t
hipErrorUnsupportedLimit: hipError_t
hipErrorContextAlreadyInUse: hipError_t
hipErrorPeerAccessUnsupported: hipError_t
hipErrorInvalidKernelFile: hipError_t
hipErrorInvalidGraphicsContext: hipError_t
hipErrorInvalidSource: hipError_t
hipErrorFileNotFound: hipError_t
hipErrorSharedObjectSymbolNotFound: hipError_t
hipErrorSharedObjectInitFailed: hipError_t
hipErrorOperatingSystem: hipError_t
hipErrorInvalidHandle: hipError_t
hipErrorInvalidResourceHandle: hipError_t
hipErrorIllegalState: hipError_t
hipErrorNotFound: hipError_t
hipErrorNotReady: hipError_t
hipErrorIllegalAddress: hipError_t
hipErrorLaunchOutOfResources: hipError_t
hipErrorLaunchTimeOut: hipError_t
hipErrorPeerAccessAlreadyEnabled: hipError_t
hipErrorPeerAccessNotEnabled: hipError_t
hipErrorSetOnActiveProcess: hipError_t
hipErrorContextIsDestroyed: hipError_t
hipErrorAssert: hipError_t
hipErrorHostMemoryAlreadyRegistered: hipError_t
hipErrorHostMemoryNotRegistered: hipError_t
hipErrorLaunchFailure: hipError_t
hipErrorCooperativeLaunchTooLarge: hipError_t
hipErrorNotSupported: hipError_t
hipErrorStreamCaptureUnsupported: hipError_t
hipErrorStreamCaptureInvalidated: hipError_t
hipErrorStreamCaptureMerge: hipError_t
hipErrorStreamCaptureUnmatched: hipError_t
hipErrorStreamCaptureUnjoined: hipError_t
hipErrorStreamCaptureIsolation: hipError_t
hipErrorStreamCaptureImplicit: hipError_t
hipErrorCapturedEvent: hipError_t
hipErrorStreamCaptureWrongThread: hipError_t
hipErrorGraphExecUpdateFailure: hipError_t
hipErrorUnknown: hipError_t
hipErrorRuntimeMemory: hipError_t
hipErrorRuntimeOther: hipError_t
hipErrorTbd: hipError_t

def hipDeviceSynchronize() -> hipError_t:
    """Waits for the current device. hipErrorNoDevice where there is none."""
def hipGetLastError() -> hipError_t:
    """The thread's last status of HIP, which is success afterwards."""

class HipMemory:
    """Memory of the current device, freed with the object."""
    def __init__(self) -> None: ...
    def alloc(self, size: int) -> None:
        """Frees what there is and allocates `size` bytes; see last_state()."""
    def free(self) -> None: ...
    def get_pointer(self) -> int:
        """Its address on the device; 0 without memory."""
    def last_state(self) -> hipError_t:
        """What HIP gave to the latest of these calls."""
    def load_from_host(self, ptr: int, nbytes: int) -> None:
        """Copies from the host's address `ptr`. ValueError beyond its size."""
    def store_to_host(self, ptr: int, nbytes: int) -> None:
        """Copies to the host's address `ptr`. ValueError beyond its size."""
#if MINOR >= 12
    def zero_memory(self) -> None:
        """Sets all bytes to 0."""
#endif

class Stream:
    """A stream of the device. Does not own it."""
    def __init__(self, handle: int = ...) -> None:
        """Of a hipStream_t as a number; without one the default stream of the
        current device."""

class DType:
    """Element types."""
    __members__: ClassVar[dict[str, "DType"]]
    kUnknown: ClassVar["DType"]
    kFloat32: ClassVar["DType"]
    kFloat16: ClassVar["DType"]
    kBFloat16: ClassVar["DType"]
    kInt8: ClassVar["DType"]
    kInt16: ClassVar["DType"]
    kInt32: ClassVar["DType"]
    kInt64: ClassVar["DType"]
    kUInt8: ClassVar["DType"]
    kUInt16: ClassVar["DType"]
    kUInt32: ClassVar["DType"]
    kUInt64: ClassVar["DType"]
    def __init__(self, value: int) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...

kUnknown: DType
kFloat32: DType
kFloat16: DType
kBFloat16: DType
kInt8: DType
kInt16: DType
kInt32: DType
kInt64: DType
kUInt8: DType
kUInt16: DType
kUInt32: DType
kUInt64: DType

class T4:
    """A tensor of four dimensions. Does not own it; strides are in elements. Without data (an address
    of 0) it is false, and counts as absent where a call may go without it."""
    def __init__(self, base: int, sizes: Sequence[int], strides: Sequence[int],
                 dtype: DType) -> None:
        """A tensor at an address of the device, of 4 sizes and strides."""
    def size(self, i: int) -> int:
        """Size of a dimension. IndexError where there is none."""
    def stride(self, i: int) -> int:
        """Stride of a dimension, in elements. IndexError where there is none."""
    @property
    def sizes(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    def __bool__(self) -> bool: ...

class T2:
    """A tensor of two dimensions. Does not own it; strides are in elements. Without data (an address
    of 0) it is false, and counts as absent where a call may go without it."""
    def __init__(self, base: int, sizes: Sequence[int], strides: Sequence[int],
                 dtype: DType) -> None:
        """A tensor at an address of the device, of 2 sizes and strides."""
    def size(self, i: int) -> int:
        """Size of a dimension. IndexError where there is none."""
    def stride(self, i: int) -> int:
        """Stride of a dimension, in elements. IndexError where there is none."""
    @property
    def sizes(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    def __bool__(self) -> bool: ...

class T1:
    """A tensor of one dimension. Does not own it; strides are in elements. Without data (an address
    of 0) it is false, and counts as absent where a call may go without it."""
    def __init__(self, base: int, sizes: Sequence[int], strides: Sequence[int],
                 dtype: DType) -> None:
        """A tensor at an address of the device, of 1 sizes and strides."""
    def size(self, i: int) -> int:
        """Size of a dimension. IndexError where there is none."""
    def stride(self, i: int) -> int:
        """Stride of a dimension, in elements. IndexError where there is none."""
    @property
    def sizes(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    def __bool__(self) -> bool: ...

class T0:
    """One value in memory. Does not own it."""
    def __init__(self, base: int, dtype: DType) -> None: ...
    def size(self, i: int) -> int: ...
    def stride(self, i: int) -> int: ...
    @property
    def sizes(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    def __bool__(self) -> bool: ...

def get_name_suffix() -> str:
    """The suffix of AOTriton's namespace: Fovea has none."""
def fovea_last_message() -> str:
    """Why this thread's latest call failed, or the empty string. Fovea's own."""
