#!/usr/bin/env python3
"""Writes fovea/_abi.py: the C interfaces as ctypes has them.

    generate_abi.py OUTPUT VERSION BASELINE...

A baseline is a file of test/Abi: lines of values, structures, fields with their
type, offset and size, and prototypes, which check_abi.py holds to header and
library. Nothing is written where ctypes lays a structure out in another way.
"""

import ctypes
import pathlib
import re
import sys

# What C's types are in ctypes. Pointers to what a library keeps are addresses, since
# arrays are; texts are bytes.
SCALARS = {
    "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64",
    "uint64_t": "c_uint64", "size_t": "c_size_t", "float": "c_float",
    "double": "c_double", "const char*": "c_char_p",
    "fovea_status_t": "c_int32", "fovea_compiler_status_t": "c_int32",
}


def python_type(kind, known):
    """The expression for a type of C, of a field or a parameter."""
    array = re.fullmatch(r"(.*)\[(\d+)\]", kind)
    if array:
        return f"{python_type(array[1], known)} * {array[2]}"
    if kind in SCALARS:
        return SCALARS[kind]
    if kind in known:
        return kind
    if kind.endswith("*"):
        return "c_void_p"
    raise SystemExit(f"generate_abi: no type of ctypes is known for '{kind}'")


def parameters(text, known):
    kinds = []
    for parameter in filter(lambda p: p != "void", text.split(",")):
        kind = re.fullmatch(r"(.*?[ *])\w+", parameter)[1].strip()
        if kind == "const char**":  # receives a text
            kind = "c_char_p*"
        target = kind.removeprefix("const ").removesuffix("*")
        if kind.endswith("*") and kind not in SCALARS and target in known:
            kinds.append(f"POINTER({target})")
        elif kind.endswith("**") or kind == "c_char_p*":
            inner = "c_char_p" if kind == "c_char_p*" else "c_void_p"
            kinds.append(f"POINTER({inner})")
        else:
            kinds.append(python_type(kind, known))
    return kinds


def read(lines):
    """Values, structures with fields, types of functions, and functions."""
    values, structures, callbacks, functions = {}, {}, {}, {}
    for line in lines:
        what, rest = line.split(" ", 1)
        if what == "value":
            name, number = rest.split()
            values[name] = int(number)
        elif what == "struct":
            name, size = rest.split()
            structures[name] = (int(size), [])
        elif what == "field":
            name, field, offset, size, kind = re.fullmatch(
                r"(\w+)\.(\w+) at (\d+), (\d+) bytes, (.*)", rest).groups()
            structures[name][1].append((field, kind, int(offset), int(size)))
        elif what == "prototype":
            callback = re.fullmatch(r"(.*)\(\*(\w+)\)\((.*)\)", rest)
            result, name, given = (callback or re.fullmatch(
                r"(.*[ *])(\w+)\((.*)\)", rest)).groups()
            table = callbacks if callback else functions
            table[name] = (result.strip(), given)
    return values, structures, callbacks, functions


def generate(baselines, version):
    text = [f'"""{" and ".join(p.stem + ".h" for p in baselines)} in ctypes, by '
            'generate_abi.py. Not to be edited."""', "",
            "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, "
            "c_float,", "                    c_int32, c_int64, c_size_t, c_uint32, "
            "c_uint64, c_void_p)", "", f'VERSION = "{version}"', ""]
    functions_of, layouts = [], {}
    for baseline in baselines:
        values, structures, callbacks, functions = read(
            baseline.read_text().splitlines())
        text += [f"{name} = {value}" for name, value in values.items()] + [""]
        known = dict.fromkeys([*structures, *callbacks])
        layouts |= structures
        # A callback's structures come before it, and it before what has it as a field:
        # addresses in callbacks are addresses, and so nothing is before another.
        for name, (result, given) in callbacks.items():
            kinds = ", ".join(
                "c_char_p" if p.startswith("const char*") else "c_void_p"
                for p in given.split(","))
            if result != "void":
                raise SystemExit(f"generate_abi: {name} returns {result}")
            text.append(f"{name} = CFUNCTYPE(None, {kinds})")
        for name, (_, fields) in structures.items():
            text += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
            text += [f'        ("{field}", {python_type(kind, known)}),'
                     for field, kind, _, _ in fields] + ["    ]"]
        rows = []
        for name, (result, given) in functions.items():
            made = "None" if result == "void" else python_type(result, known)
            rows.append(f'    "{name}": ({made}, '
                        f'[{", ".join(parameters(given, known))}]),')
        functions_of.append((baseline.stem, rows))
    text += ["", ""]
    for name, rows in functions_of:
        text += [f"{name.upper()}_FUNCTIONS = {{", *rows, "}"]
    text = "\n".join(text) + "\n"

    module = {"__name__": "_abi"}
    exec(compile(text, "_abi.py", "exec"), module)
    for name, (size, fields) in layouts.items():
        made = module[name]
        if ctypes.sizeof(made) != size:
            raise SystemExit(f"generate_abi: {name} has {size} bytes, in ctypes "
                             f"{ctypes.sizeof(made)}")
        for field, kind, offset, size in fields:
            place = getattr(made, field)
            if (place.offset, place.size) != (offset, size):
                raise SystemExit(
                    f"generate_abi: {name}.{field} ({kind}) is {size} bytes at "
                    f"{offset}, in ctypes {place.size} at {place.offset}")
    if not layouts or not all(rows for _, rows in functions_of):
        raise SystemExit("generate_abi: found no structures or no functions")
    return text


def main():
    output, version, *baselines = sys.argv[1:]
    text = generate([pathlib.Path(b) for b in baselines], version)
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)


if __name__ == "__main__":
    main()
