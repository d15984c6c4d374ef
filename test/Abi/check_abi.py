#!/usr/bin/env python3
"""Holds the C interface to what programs were built against.

Describes the library and its header in lines of text: exported symbols with
their versions, prototypes, enumeration values, macros, sizes of structures,
offset and size of each field. The layouts are those that a C compiler gives the
header. Compares them with the lines that the baseline has kept:

  a line that is gone    breaks programs that are built already: an error, but
                         for a structure that has grown by fields at its end
  a line that is new     has to be added to the baseline, by --update, which
                         refuses to write one that breaks programs
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def structures(text):
    """The structures' types, with their fields as (name, type)."""
    for body, name in re.findall(
            r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.S):
        fields = []
        for declaration in filter(str.strip, body.split(";")):
            first, *others = declaration.split(",")
            base, declarator = re.fullmatch(
                r"\s*((?:const )?(?:struct )?\w+)\s+(.*?)\s*", first, re.S).groups()
            for part in [declarator, *others]:
                stars, field, array = re.fullmatch(
                    r"\s*(\**)\s*(\w+)\s*((?:\[\w+\])?)\s*", part).groups()
                fields.append((field, base + stars + array))
        yield name, fields


def enumerators(text):
    for body in re.findall(r"\benum \{(.*?)\}", text, re.S):
        yield from re.findall(r"\b(FOVEA_\w+)\b", body)


def prototypes(text):
    """Functions and types of functions, in one spelling."""
    found = re.findall(r"FOVEA_(?:COMPILER_)?API\s+([^;]*\([^;]*\));", text)
    found += re.findall(r"typedef ([^;{]*\(\*\w+\)\([^;]*\));", text)
    return [re.sub(r"\s*([*(),])\s*", r"\1", " ".join(p.split()))
            for p in found]


def layout_program(header, text):
    lines = ["#include <stddef.h>", "#include <stdio.h>",
             f'#include "{header}"', "int main(void) {"]
    for name in enumerators(text):
        lines.append(f'  printf("value {name} %ld\\n", (long)({name}));')
    for name, fields in structures(text):
        lines.append(f'  printf("struct {name} %zu\\n", sizeof({name}));')
        for field, kind in fields:
            lines.append(
                f'  printf("field {name}.{field} at %zu, %zu bytes, {kind}\\n", '
                f"offsetof({name}, {field}), sizeof((({name} *)0)->{field}));")
    return "\n".join(lines + ["  return 0;", "}", ""])


def layouts(header, text, cc):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "layout.c")
        program = pathlib.Path(folder, "layout")
        source.write_text(layout_program(pathlib.Path(header).resolve(), text))
        subprocess.run([cc, "-std=c99", source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True)
    return output.stdout.decode().splitlines()


def symbols(library, readelf):
    output = subprocess.run([readelf, "--dyn-syms", "-W", library], check=True,
                            capture_output=True).stdout.decode()
    for line in output.splitlines():
        columns = line.split()
        if len(columns) < 8 or columns[6] == "UND" or columns[4] == "LOCAL":
            continue
        name, _, version = columns[7].partition("@")
        if columns[3] in ("FUNC", "OBJECT") and not name.startswith("FOVEA_"):
            yield f"symbol {name} {version.lstrip('@') or 'without a version'}"


def describe(header, library, readelf, cc):
    text = without_comments(pathlib.Path(header).read_text())
    lines = sorted(symbols(library, readelf))
    lines += sorted(f"prototype {p}" for p in prototypes(text))
    lines += layouts(header, text, cc)
    for kind in ("symbol", "prototype", "value", "struct", "field"):
        if not any(line.startswith(kind + " ") for line in lines):
            raise SystemExit(f"check_abi: found no {kind} at all")
    return lines


def compare(kept, found):
    """What breaks programs, and what is new, as texts."""
    sizes = {}
    for line in found:
        if line.startswith("struct "):
            _, name, size = line.split()
            sizes[name] = int(size)
    broken = []
    for line in kept:
        if line in found:
            continue
        if line.startswith("struct "):
            _, name, size = line.split()
            if sizes.get(name, 0) > int(size):
                continue  # its fields have lines of their own
        broken.append(line)
    return broken, [line for line in found if line not in kept]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--header", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--baseline", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    baseline = pathlib.Path(options.baseline)
    kept = baseline.read_text().splitlines() if baseline.exists() else []
    found = describe(options.header, options.library, options.readelf,
                     options.cc)
    broken, new = compare(kept, found)
    for line in broken:
        print(f"gone or changed, which breaks programs: {line}")
    if broken:
        return 1
    if options.update:
        baseline.write_text("\n".join(found) + "\n")
        return 0
    for line in new:
        print(f"new: {line}")
    if new:
        print(f"add what is new to {baseline.name} with --update")
        return 1
    print(f"{len(found)} lines as they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
