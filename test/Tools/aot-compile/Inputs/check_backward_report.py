"""check_backward_report.py REPORT STATUS: the backward kernel's entry is sound,
and its figures are what follows from those of its launches."""

import json
import sys

report, status = json.load(open(sys.argv[1])), sys.argv[2]
(kernel,) = [k for k in report["kernels"] if k["op"] == "backward"]
assert kernel["kernel"] == "attn_bwd_bf16_d32", kernel
assert kernel["status"] == status, kernel
assert kernel["schedule"].startswith("deterministic;delta:block_m="), kernel
assert kernel["scratch_bytes"] == 0 and kernel["occupancy"] >= 1, kernel
if status == "current":
    assert "launches" not in kernel and kernel["instructions"] is None, kernel
    sys.exit()

launches = kernel["launches"]
names = [launch["kernel"] for launch in launches]
assert names == [f"attn_bwd_bf16_d32_{s}" for s in ("delta", "dkdv", "dq")], names
for figure in ("vgprs", "agprs", "sgprs", "vgpr_spills", "sgpr_spills",
               "lds_bytes", "scratch_bytes", "threads", "image_bytes"):
    found = [launch[figure] for launch in launches]
    assert kernel[figure] == max(found), (figure, kernel[figure], found)
for figure in ("instructions", "matrix_instructions", "code_bytes"):
    found = [launch[figure] for launch in launches]
    assert kernel[figure] == sum(found), (figure, kernel[figure], found)
assert kernel["occupancy"] == min(l["occupancy"] for l in launches), kernel
matrix = [launch["matrix_instructions"] for launch in launches]
assert matrix[0] == 0 and matrix[1] > 0 and matrix[2] > 0, matrix
for launch in launches:
    assert launch["vgpr_spills"] == 0 and launch["vgprs"] > 0, launch
    assert launch["schedule"].startswith("block_m="), launch
