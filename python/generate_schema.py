#!/usr/bin/env python3
"""Writes the schemas of PyTorch's operators, and the places of their arguments, for C++.

    generate_schema.py _torch_schema.py OUTPUT
"""

import pathlib
import re
import runpy
import sys


def main():
    source, output = sys.argv[1:]
    schemas = {name: text for name, text in runpy.run_path(source).items() if name.isupper()}
    lines = ["// Of _torch_schema.py, by generate_schema.py. Not to be edited.", "#pragma once"]
    for name, schema in schemas.items():
        operator, arguments = re.fullmatch(r"(\w+)\((.*)\) -> .*", schema).groups()
        names = [argument.split()[1] for argument in arguments.split(", ")]
        lines += [f"struct {name.title()} {{", f'  static constexpr char name[] = "{operator}";',
                  f'  static constexpr char schema[] = "{schema}";',
                  f"  enum : unsigned {{ {', '.join(names)}, count }};", "};"]
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
