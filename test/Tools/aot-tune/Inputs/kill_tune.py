"""Starts a search, ends it by a signal once its state has two lines, cuts a line off
as a full disk might, and runs the command again.

    kill_tune.py SIGNAL STATE COMMAND..."""

import json
import os
import signal
import subprocess
import sys
import time

name, state, *command = sys.argv[1:]
number = getattr(signal, name)
rows = command[command.index("-o") + 1]


def questions():
    if not os.path.exists(state):
        return []
    with open(state) as file:
        return [json.loads(line)["question"] for line in file
                if line.endswith("\n")]


run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
while len(questions()) < 2:
    assert run.poll() is None, "it ended before it was killed"
    time.sleep(0.01)
run.send_signal(number)
said = run.stderr.read()
run.wait()
assert not os.path.exists(rows), "rows of a search that was ended"
if number == signal.SIGKILL:
    assert run.returncode == -number, run.returncode
else:
    assert run.returncode == 128 + number, run.returncode
    assert "interrupted by " + name in said and "goes on" in said, said
before = questions()
assert len(before) < 5, "it was too fast to be killed"
with open(state, "a") as file:
    file.write('{"question": {"comp')
subprocess.run(command, check=True)
after = questions()
assert after[:len(before)] == before, "what was known is gone"
assert len(after) == len({json.dumps(one) for one in after}), "asked twice"
# The budget is of schedules that are tried, so there are five more.
assert len(after) == len(before) + 5, (len(before), len(after))
assert os.path.exists(rows)
