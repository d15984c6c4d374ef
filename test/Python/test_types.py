#!/usr/bin/env python3
"""mypy over the package, the one argument, which promises types (py.typed).

What is installed beside it (NumPy, PyTorch) is not read, so that all machines find the
same. Where mypy is missing nothing is run.
"""

import subprocess
import sys

try:
    import mypy  # noqa: F401
except ImportError:
    print("not run: mypy is not installed")
    sys.exit(77)

sys.exit(subprocess.run(
    [sys.executable, "-m", "mypy", "--no-site-packages", "--ignore-missing-imports",
     "--cache-dir=/dev/null", sys.argv[1]], check=False).returncode)
