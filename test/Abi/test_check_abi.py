#!/usr/bin/env python3
"""Changes to the real header that break programs must be found.

test_check_abi.py CHECK HEADER LIBRARY READELF CC BASELINE
"""

import pathlib
import subprocess
import sys
import tempfile

CHECK, HEADER, LIBRARY, READELF, CC, BASELINE = sys.argv[1:]


def run(header=HEADER, baseline=BASELINE, *more):
    result = subprocess.run(
        [sys.executable, "-B", CHECK, "--header", header, "--library", LIBRARY,
         "--readelf", READELF, "--cc", CC, "--baseline", baseline, *more],
        capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"test_check_abi: {what}")


def changed(text, old, new):
    expect(old in text, f"'{old}' is not there to be changed")
    return text.replace(old, new, 1)


HEADERS = (  # what is done to the header, and what the check must say
    (("  int32_t block_m, block_n, threads;\n",
      "  int32_t block_n, block_m, threads;\n"),
     "changed, which breaks programs: field fovea_kernel_info_t.block_m at 52"),
    (("  int32_t device_count;\n", ""),
     "breaks programs: field fovea_hip_library_info_t.device_count"),
    (("FOVEA_STATUS_BUSY = 6", "FOVEA_STATUS_BUSY = 12"),
     "breaks programs: value FOVEA_STATUS_BUSY 6"),
    (("  int64_t heads_q, heads_k;\n", "  int32_t heads_q, heads_k;\n"),
     "breaks programs: field fovea_backward_params_t.heads_q at 24, 8 bytes"),
    (("  float scale;\n", "  uint32_t scale;\n"),
     "breaks programs: field fovea_forward_params_t.scale at 12, 4 bytes, float"),
    (("  int32_t vgpr_spills, sgpr_spills;\n",
      "  int32_t vgpr_spills, sgpr_spills;\n  int64_t later;\n"),
     "new: field fovea_kernel_info_t.later at 112, 8 bytes"),
    (("FOVEA_API size_t fovea_kernel_count(fovea_context_t *context);",
      "FOVEA_API size_t fovea_kernel_count(fovea_context_t *context, int all);"),
     "breaks programs: prototype size_t fovea_kernel_count("),
)
BASELINES = (  # the same by what was there before
    ("symbol fovea_was_here FOVEA_0.1\n",
     "breaks programs: symbol fovea_was_here FOVEA_0.1"),
    ("struct fovea_tensor_t 40\n", "breaks programs: struct fovea_tensor_t 40"),
)

text = pathlib.Path(HEADER).read_text()
kept = pathlib.Path(BASELINE).read_text()
with tempfile.TemporaryDirectory() as folder:
    header = str(pathlib.Path(folder, "fovea.h"))
    baseline = str(pathlib.Path(folder, "kept"))
    for (old, new), message in HEADERS:
        pathlib.Path(header).write_text(changed(text, old, new))
        code, output = run(header)
        expect(code == 1 and message in output,
               f"'{message}' is not in:\n{output}")
    for line, message in BASELINES:
        pathlib.Path(baseline).write_text(kept + line)
        for more in ((), ("--update",)):
            code, output = run(HEADER, baseline, *more)
            expect(code == 1 and message in output,
                   f"'{message}' is not in:\n{output}")
    # A symbol under another version is another symbol.
    pathlib.Path(baseline).write_text(changed(
        kept, "symbol fovea_forward FOVEA_0.1", "symbol fovea_forward FOVEA_0.0"))
    code, output = run(HEADER, baseline)
    expect(code == 1 and "symbol fovea_forward FOVEA_0.0" in output, output)
    # What is new is written, and what has grown.
    pathlib.Path(header).write_text(changed(text, *HEADERS[5][0]))
    pathlib.Path(baseline).write_text(kept)
    code, output = run(header, baseline, "--update")
    expect(code == 0, output)
    code, output = run(header, baseline)
    expect(code == 0, output)
print("ok")
