"""Exceptions, one class for each status of fovea.h."""


class Error(RuntimeError):
    """What libfovea refused, in its words: the thing, the value, the remedy.

    Attributes:
        status: the status's name, ``"FOVEA_STATUS_NOT_FOUND"``.
        cause: why it is refused, where a program can do something about it: of
            ``FOVEA_CAUSE_CAPTURED`` ``"captured"``, and so on; else ``""``.
        is_of_determinism: the call, or a kernel of it, is refused as it is since
            ``deterministic`` holds; it may be served without.
    """

    status = ""
    cause = ""

    @property
    def is_of_determinism(self) -> bool:
        return self.cause == "deterministic"


class InvalidArgumentError(Error, ValueError):
    """A parameter breaks a stated rule, or shapes do not fit each other."""

    status = "FOVEA_STATUS_INVALID_ARGUMENT"


class NotFoundError(Error, LookupError):
    """No such file, or no kernel for the problem."""

    status = "FOVEA_STATUS_NOT_FOUND"


class IncompatibleError(Error):
    """Well formed, but for another version, chip or chip feature."""

    status = "FOVEA_STATUS_INCOMPATIBLE"


class CorruptError(Error):
    """A package or an image in it is damaged."""

    status = "FOVEA_STATUS_CORRUPT"


class IoError(Error, OSError):
    """The file system refused."""

    status = "FOVEA_STATUS_IO"


class BusyError(Error):
    """A build held the package for too long."""

    status = "FOVEA_STATUS_BUSY"


class NoDeviceError(Error):
    """No HIP library, or none of its devices."""

    status = "FOVEA_STATUS_NO_DEVICE"


class HipError(Error):
    """A call of the HIP library failed, or a kernel did."""

    status = "FOVEA_STATUS_HIP_ERROR"


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out, of the host or the device."""

    status = "FOVEA_STATUS_OUT_OF_MEMORY"


class InternalError(Error):
    """A fault of the library."""

    status = "FOVEA_STATUS_INTERNAL"


class CompileError(Error):
    """The compiler refused: a problem or text that is wrong, or a kernel that
    the chip cannot have. ``status`` is one of fovea/compiler.h."""


BY_STATUS = {kind.status: kind for kind in Error.__subclasses__() if kind.status}
