"""The commands of the wheel fovea-compiler; everything else of it lies in the folder of
fovea, which finds it there."""

import os
import pathlib
import sys

COMMANDS = pathlib.Path(__file__).resolve().parent.parent / "fovea" / "bin"


def main() -> None:
    """Becomes the command by whose name it was called."""
    command = COMMANDS / pathlib.Path(sys.argv[0]).name
    try:
        os.execv(command, [str(command), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{command.name}: {command}: {error.strerror}; install the wheel "
                 "fovea-compiler again")
