"""kill_build.py SIGNAL COMMAND...: sends a build of eight kernels a signal after
it said that two are done, and wants the end that the signal calls for. Runs it
again, and wants those two kept and the package whole."""

import re
import signal
import subprocess
import sys

number, command = signal.Signals[sys.argv[1]], sys.argv[2:]
# Shells have commands in the background ignore SIGINT.
build = subprocess.Popen(
    command, stderr=subprocess.PIPE, text=True,
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
said = []
sent = False
for line in build.stderr:
    said.append(line)
    if line.startswith("[2/8]") and not sent:
        sent = True
        build.send_signal(number)
build.wait()
said = "".join(said)
expected = -number if number == signal.SIGKILL else 128 + number
if build.returncode != expected:
    sys.exit(f"status {build.returncode} and not {expected}:\n{said}")
if number != signal.SIGKILL and (
        not re.search(r"[1-6] not tried\n", said) or
        f"aot-compile: error: interrupted by {number.name}: the finished kernels "
        "are kept; the same command goes on with the rest\n" not in said):
    sys.exit(f"it does not say how to go on:\n{said}")


def counts():
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)
    found = re.search(r"(\d+) compiled, (\d+) current, (\d+) failed", run.stderr)
    return tuple(int(number) for number in found.groups())


compiled, current, failed = counts()
print(f"after {number.name}: {compiled} compiled, {current} current")
if failed or current < 2 or compiled < 1 or compiled + current != 8:
    sys.exit("the second run did not go on from the first")
if counts() != (0, 8, 0):
    sys.exit("the third run found something to do")
