"""The contract says what the metadata of the code object says."""

import json
import re
import sys

contract = json.load(open(sys.argv[1]))
notes = open(sys.argv[2]).read()


def number(key):
    return int(re.search(rf"\.{key}:\s+(\d+)", notes).group(1))


def check(name, found, expected):
    if found != expected:
        sys.exit(f"{name}: contract {found}, code object {expected}")


check("lds_bytes", contract["lds_bytes"], number("group_segment_fixed_size"))
check("kernarg_bytes", contract["kernarg_bytes"], number("kernarg_segment_size"))
check("workgroup", contract["workgroup_size"][0],
      number("max_flat_workgroup_size"))
check("kernel", contract["kernel"],
      re.search(r"\.name:\s+(attn\w+)", notes).group(1))
# Explicit arguments, in order, with offset and size.
fields = [{key: value for key, value in re.findall(r"\.(\w+):\s+(\S+)", text)}
          for text in re.split(r"\n\s+- ", notes[notes.index(".args:"):])]
arguments = [field for field in fields
             if field.get("value_kind") in ("by_value", "global_buffer")]
check("arguments", len(contract["arguments"]), len(arguments))
for mine, theirs in zip(contract["arguments"], arguments):
    check(mine["name"] + " offset", mine["offset"], int(theirs["offset"]))
    check(mine["name"] + " size", mine["size"], int(theirs["size"]))
    check(mine["name"] + " is a pointer", mine["type"] == "global pointer",
          theirs["value_kind"] == "global_buffer")
