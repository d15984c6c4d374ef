"""The older calls."""
#if MINOR < 13
from typing import ClassVar
#endif

from . import flash as flash
#if MINOR < 13

class CppTune:
    """Empty: nothing is tuned here."""
    def __init__(self) -> None: ...

class CppTuneSpecialKernelIndex:
    """Of builds for tuning; nothing here takes one."""
    __members__: ClassVar[dict[str, "CppTuneSpecialKernelIndex"]]
    kDefault: ClassVar["CppTuneSpecialKernelIndex"]
    kSkipGPUCall: ClassVar["CppTuneSpecialKernelIndex"]
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

kDefault: CppTuneSpecialKernelIndex
kSkipGPUCall: CppTuneSpecialKernelIndex
#endif
