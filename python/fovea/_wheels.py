"""What other wheels bring: fovea-compiler files beside the package's own, others packages
of kernels in folders `fovea_kernels`."""

import importlib.metadata
import importlib.util
import pathlib
from typing import List, Optional

from . import _abi

FOLDER = pathlib.Path(__file__).resolve().parent
#: Of the wheel fovea-compiler, in this folder: what messages of ours name.
COMPILER_FILES = ("lib/libfovea_compiler.so.0", "lib/libfovea_hipsim.so", "bin/aot-package",
                  "bin/aot-qualify", "bin/aot-time")


def _wheel(name: str) -> Optional[importlib.metadata.Distribution]:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _folder(wheel: importlib.metadata.Distribution) -> pathlib.Path:
    return pathlib.Path(str(wheel.locate_file("fovea"))).resolve()


def remedy(file: str) -> str:
    """What to install for a file of the wheel fovea-compiler; empty: the file is there, or
    the package is none of a wheel."""
    ours, other = _wheel("fovea"), _wheel("fovea-compiler")
    if ours is None or _folder(ours) != FOLDER:
        return ""
    install = f"pip install fovea-compiler=={_abi.VERSION}"
    if other is None:
        return f"it comes with the wheel fovea-compiler, which is not installed: {install}"
    if other.version != _abi.VERSION:
        return (f"the wheels fovea {_abi.VERSION} and fovea-compiler {other.version} do not "
                f"fit each other: {install}")
    if _folder(other) != FOLDER:
        return (f"fovea-compiler is installed in {_folder(other).parent} and fovea in "
                f"{FOLDER.parent}; install both in one place")
    if not (FOLDER / file).exists():
        return (f"{FOLDER / file} of the wheel fovea-compiler is missing: "
                f"{install} --force-reinstall")
    return ""


def with_remedy(message: str) -> str:
    """A message, with what to install where it names a file of fovea-compiler's."""
    for file in COMPILER_FILES:
        if pathlib.PurePath(file).name in message and (told := remedy(file)):
            return f"{message}; {told}"
    return message


def kernels() -> List[str]:
    """The packages of kernels that wheels have brought, as fovea-kernels-gfx942 does: in
    the order of sys.path, each folder's by name."""
    found = importlib.util.find_spec("fovea_kernels")
    folders = (found.submodule_search_locations or []) if found else []
    once = dict.fromkeys(pathlib.Path(folder).resolve() for folder in folders)
    return [str(file) for folder in once for file in sorted(folder.glob("*.fovea"))]


def kernels_remedy(file: str) -> str:
    """What to install for a package of a wheel that is refused."""
    name = f"fovea-kernels-{pathlib.PurePath(file).stem}"
    wheel = _wheel(name)
    if wheel is None:
        return f"no wheel has brought it: install {name}, or remove the file"
    if wheel.version == _abi.VERSION:
        return f"pip install --force-reinstall {name}=={_abi.VERSION}"
    return (f"the wheel {name} is {wheel.version} and fovea {_abi.VERSION}: "
            f"pip install {name}=={_abi.VERSION}")
