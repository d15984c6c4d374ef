#!/usr/bin/env python3
"""Counts WMMAs of which two operands begin in one bank of the registers.

Reads AMDGPU assembly (aot-compile --emit=asm), of one kernel or several; prints how many
WMMAs there are and how many of them read one operand after the other.
"""

import sys

from main_loop import clashes


def main():
    code = [" ".join(line.split()) for line in sys.stdin if "v_wmma" in line]
    print(f"WMMAs: {len(code)}")
    print(f"clashes: {sum(map(clashes, code))}")


if __name__ == "__main__":
    main()
