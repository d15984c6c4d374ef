"""check_report.py REPORT STATUS [KERNELS]: the JSON report is sound."""

import json
import sys

report = json.load(open(sys.argv[1]))
status = sys.argv[2]
assert report["compiler"].startswith("aot-compile "), report["compiler"]
assert len(report["kernels"]) == int(sys.argv[3] if len(sys.argv) > 3 else 1)
FIGURES = ("vgprs", "agprs", "sgprs", "vgpr_spills", "sgpr_spills", "lds_bytes",
           "scratch_bytes", "occupancy", "matrix_instructions", "instructions",
           "code_bytes", "image_bytes")
# What a package does not keep.
UNKNOWN = ("vgpr_spills", "sgpr_spills", "instructions")
for kernel in report["kernels"]:
    assert kernel["status"] == status, kernel
    assert kernel["target"] == "gfx942" and kernel["op"] == "forward", kernel
    for figure in FIGURES:
        if status == "current" and figure in UNKNOWN:
            assert kernel[figure] is None, (figure, kernel)
        else:
            assert isinstance(kernel[figure], int), (figure, kernel)
    assert 0 < kernel["vgprs"] <= 512 and 0 < kernel["sgprs"] <= 112, kernel
    assert kernel["scratch_bytes"] == 0 and kernel["occupancy"] >= 1, kernel
    assert kernel["matrix_instructions"] > 0, kernel
    assert kernel["image_bytes"] > kernel["code_bytes"] > 1000, kernel
    assert kernel["emissions"] == (None if status == "current" else 1), kernel
    assert kernel["compile_ms"] > 0 and kernel["threads"] == 256, kernel
    assert kernel["schedule"].startswith("block_m="), kernel
