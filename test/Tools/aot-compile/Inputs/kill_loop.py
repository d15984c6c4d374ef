"""kill_loop.py FOLDER AOT-COMPILE ARGS...: builds a package undisturbed, and one
whose build is killed with SIGKILL over and over: after parts of the undisturbed
build's time that are the same in every run, and while a transaction is open. Both must then hold the same:
all rows but the compile time and its checksum, and the hash of every image."""

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

folder, command = sys.argv[1], sys.argv[2:]


def build(path):
    return subprocess.Popen(command + ["-o", path], stderr=subprocess.PIPE,
                            text=True)


def finish(path):
    process = build(path)
    said = process.communicate()[1]
    if process.returncode:
        sys.exit(f"status {process.returncode}:\n{said}")
    found = re.search(r"(\d+) compiled, (\d+) current, 0 failed", said)
    return int(found.group(1)), int(found.group(2))


def content(path):
    with sqlite3.connect(path) as package:
        columns = [row[1] for row in package.execute("PRAGMA table_info(kernel)")
                   if row[1] not in ("compile_ms", "checksum")]
        kernels = package.execute(
            f"SELECT {','.join(columns)} FROM kernel ORDER BY problem, schedule")
        images = package.execute("SELECT hash, size FROM image ORDER BY hash")
        return kernels.fetchall(), images.fetchall()


def kernels(path):
    """How many are stored, as another process sees it meanwhile."""
    try:
        return len(content(path)[0])
    except sqlite3.Error:
        return 0  # not there yet, or locked


calm, killed = os.path.join(folder, "calm.fovea"), os.path.join(folder, "killed.fovea")
start = time.monotonic()
total, _ = finish(calm)
whole = time.monotonic() - start

chance = random.Random(1)
kills = journals = builds = 0
while kills < 12 or kernels(killed) < total:
    builds += 1
    if builds > 200:
        sys.exit(f"no end after {kills} kills of {builds} builds")
    process = build(killed)
    end = time.monotonic() + chance.uniform(0.05, 0.4) * whole
    wants_journal = builds % 3 == 2
    while process.poll() is None and (wants_journal or time.monotonic() < end):
        if wants_journal and os.path.exists(killed + "-journal"):
            break
        time.sleep(0.0005)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate()
    if process.returncode == -signal.SIGKILL:
        kills += 1
        journals += os.path.exists(killed + "-journal")
    elif process.returncode != 0:
        sys.exit(f"status {process.returncode} after {kills} kills")
    else:
        whole *= 0.7  # it is quicker than the first build was

compiled, current = finish(killed)
print(f"{kills} kills hit, {journals} of them a transaction; then {compiled} of "
      f"{total} kernels were left to compile")
if journals < 1:
    sys.exit("no transaction was killed")
if compiled + current != total:
    sys.exit("kernels are missing")
if content(calm) != content(killed):
    sys.exit("the packages differ")
if finish(killed) != (0, total):
    sys.exit("the last run found something to do")
