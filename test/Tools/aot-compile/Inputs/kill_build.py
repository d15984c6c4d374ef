"""kill_build.py FOLDER COMMAND...: kills a build of eight kernels with SIGKILL
after it said that two are done, runs it again, and wants those two kept and the
package whole."""

import re
import signal
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
build = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
said = []
for line in build.stderr:
    said.append(line)
    if line.startswith("[2/8]"):
        build.send_signal(signal.SIGKILL)
        break
build.wait()
if build.returncode != -signal.SIGKILL:
    sys.exit(f"the build was not killed: {build.returncode}\n{''.join(said)}")


def counts():
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)
    found = re.search(r"(\d+) compiled, (\d+) current, (\d+) failed", run.stderr)
    return tuple(int(number) for number in found.groups())


compiled, current, failed = counts()
print(f"after the kill: {compiled} compiled, {current} current")
if failed or current < 2 or compiled < 1 or compiled + current != 8:
    sys.exit("the second run did not go on from the first")
if counts() != (0, 8, 0):
    sys.exit("the third run found something to do")
