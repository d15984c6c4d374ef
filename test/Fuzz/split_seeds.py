#!/usr/bin/env python3
"""split_seeds.py FOLDER FILE...: the parts of lit tests, as seeds of FuzzMlir.

Each part that "// -----" separates becomes a file of its own, without comments
but for a first line with the chip that the test's first RUN line names.
"""

import pathlib
import re
import sys


def parts(text):
    """The seeds of one test."""
    chip = re.search(r"chip=(gfx\w+)", text)
    first = f"// {chip[1]}\n" if chip else ""
    for part in re.split(r"^// -----.*\n", text, flags=re.M):
        code = re.sub(r"^\s*//.*\n", "", part, flags=re.M).strip()
        if code:
            yield first + code + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name in map(pathlib.Path, sys.argv[2:]):
        for number, seed in enumerate(parts(name.read_text())):
            (folder / f"{name.stem}.{number}").write_text(seed)
            count += 1
    if not count:
        sys.exit("split_seeds.py: no seeds")


if __name__ == "__main__":
    main()
