"""Changes a program and sees what a pass finds: change.py <test> <program> <command>...

Lines of the test say FOUND or LEFT and the change, as sed takes it. What is
found has attn.sdpa, all that the HAS lines below say, and no linalg; what is
left has all of its linalg and no attn.sdpa.
"""

import re
import subprocess
import sys


def main(test, program, *command):
    cases = []
    with open(test, encoding="utf-8") as file:
        for line in file:
            if found := re.match(r"# (FOUND|LEFT) +(.*)\n", line):
                cases.append((found[1], found[2], []))
            elif found := re.match(r"#   HAS (.*)\n", line):
                cases[-1][2].append(found[1])
    with open(program, encoding="utf-8") as file:
        original = file.read()
    wrong = 0
    for what, change, has in cases:
        text = subprocess.run(["sed", "-e", change, program], text=True,
                              capture_output=True, check=True).stdout
        done = subprocess.run([*command, "-"], input=text, text=True,
                              capture_output=True)
        is_found = "attn.sdpa" in done.stdout
        right = (done.returncode == 0 and text != original
                 and is_found == (what == "FOUND")
                 and is_found != ("linalg.generic" in done.stdout)
                 and all(part in done.stdout for part in has))
        if not right:
            wrong += 1
            print(f"not {what} {' '.join(has)}: {change}\n{done.stdout}{done.stderr}")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
