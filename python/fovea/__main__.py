"""``python3 -m fovea COMMAND``, and the command ``fovea``."""

from __future__ import annotations

import sys
from typing import List, Optional

from . import _qualify

_USAGE = """usage: fovea COMMAND [OPTIONS]

commands:
  qualify   what GPU, HIP and PyTorch this machine has, whether kernels are right on it,
            and how fast: one report (fovea qualify --help)
"""


def main(arguments: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["qualify"]:
        return _qualify.main(words[1:])
    if words[:1] in (["--help"], ["-h"]):
        print(_USAGE, end="")
        return 0
    print(f"fovea: no command {words[0]!r}" if words else "fovea: which command?",
          file=sys.stderr)
    print(_USAGE, end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
