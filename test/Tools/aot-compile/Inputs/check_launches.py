"""check_launches.py PACKAGE REPORT: rows list launches as the schedules say."""

import json
import re
import sqlite3
import sys

rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT problem, symbol, launches, block_m, threads, vgprs, abi_version FROM "
    "kernel ORDER BY problem").fetchall()
assert [row[0].split(";")[0] for row in rows] == ["backward", "forward"], rows
backward, forward = rows
assert forward[2] == "" and forward[1] == "attn_fwd_bf16_d32", forward
(entry,) = [k for k in json.load(open(sys.argv[2]))["kernels"]
            if k["op"] == "backward"]
expected = []
for launch in entry["launches"]:
    schedule = dict(re.findall(r"(\w+)=(\w+)", launch["schedule"]))
    assert launch["threads"] == 64 * int(schedule["waves"]), launch
    suffix = launch["kernel"].removeprefix(entry["kernel"] + "_")
    expected.append(f"{suffix}:{schedule['block_m']}:{launch['threads']}")
assert backward[1:3] == ("attn_bwd_bf16_d32", ",".join(expected)), backward
blocks = [int(item.split(":")[1]) for item in expected]
assert backward[3] == max(blocks) and backward[5] == entry["vgprs"], backward
