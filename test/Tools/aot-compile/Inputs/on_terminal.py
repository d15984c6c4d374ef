"""Runs a command with a terminal as standard error and prints what that got."""

import os
import pty
import subprocess
import sys

reader, terminal = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stderr=terminal)
os.close(terminal)
got = b""
while True:
    try:
        chunk = os.read(reader, 4096)
    except OSError:  # how Linux says that the other side is closed
        break
    if not chunk:
        break
    got += chunk
print(got.decode().replace("\r", "\n"))
sys.exit(process.wait())
