"""check_contract.py CONTRACT NOTES: the contract says what the metadata of the
code object says, of one kernel or of each launch."""

import json
import re
import sys

contract = json.load(open(sys.argv[1]))
notes = open(sys.argv[2]).read()

# The kernels are the items of a list, two columns in.
kernels = {}
for text in re.split(r"\n +- (?=\.(?:agpr_count|args):)", notes)[1:]:
    kernels[re.search(r"\.name:\s+(attn\w+)", text).group(1)] = text


def check(name, found, expected):
    if found != expected:
        sys.exit(f"{name}: contract {found}, code object {expected}")


def check_launch(launch):
    name = launch["kernel"]
    notes = kernels[name]

    def number(key):
        return int(re.search(rf"\.{key}:\s+(\d+)", notes).group(1))

    check(name + " lds_bytes", launch["lds_bytes"],
          number("group_segment_fixed_size"))
    check(name + " kernarg_bytes", launch["kernarg_bytes"],
          number("kernarg_segment_size"))
    check(name + " workgroup", launch["workgroup_size"][0],
          number("max_flat_workgroup_size"))
    # Explicit arguments, in order, with offset and size.
    fields = [{key: value for key, value in re.findall(r"\.(\w+):\s+(\S+)", text)}
              for text in re.split(r"\n\s+- ", notes[notes.index(".args:"):])]
    arguments = [field for field in fields
                 if field.get("value_kind") in ("by_value", "global_buffer")]
    check(name + " arguments", len(contract["arguments"]), len(arguments))
    for mine, theirs in zip(contract["arguments"], arguments):
        argument = name + " " + mine["name"]
        check(argument + " offset", mine["offset"], int(theirs["offset"]))
        check(argument + " size", mine["size"], int(theirs["size"]))
        check(argument + " is a pointer", mine["type"] == "global pointer",
              theirs["value_kind"] == "global_buffer")


launches = contract.get("launches", [contract])
check("kernels", sorted(launch["kernel"] for launch in launches),
      sorted(kernels))
for launch in launches:
    check_launch(launch)
