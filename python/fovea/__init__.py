"""Attention kernels for AMD GPUs, and a simulated GPU where there is none.

    out = fovea.attention(q, k, v, mask="causal-bottom-right")

docs/Python.md is the manual; fovea.torch is PyTorch's side.
"""

from . import scores
from ._abi import VERSION as __version__
from ._arrays import Spec
from ._attention import (Gradients, attention, attention_backward, dropout_mask,
                         explain)
from ._compile import CompiledKernel, compile, verify
from ._errors import (BusyError, CompileError, CorruptError, Error, HipError,
                      IncompatibleError, InternalError, InvalidArgumentError, IoError,
                      NoDeviceError, NotFoundError, OutOfMemoryError)
from ._features import (Blocks, Capture, Dropout, Score, Sequences, Varlen, Window)
from ._library import (Candidate, Device, Explanation, HipLibrary, Kernel, Library,
                       default_library)
from ._time import Prediction, time

__all__ = [
    "Blocks", "BusyError", "Candidate", "Capture", "CompileError", "CompiledKernel",
    "CorruptError", "Device", "Dropout", "Error", "Explanation", "Gradients",
    "HipError", "HipLibrary", "IncompatibleError", "InternalError",
    "InvalidArgumentError", "IoError", "Kernel", "Library", "NoDeviceError",
    "NotFoundError", "OutOfMemoryError", "Prediction", "Score", "Sequences", "Spec",
    "Varlen", "Window", "__version__", "attention", "attention_backward", "compile",
    "default_library", "dropout_mask", "explain", "scores", "time", "verify",
]
