"""Runs the examples of a dialect's ops: examples.py <page> <aot-opt>... [op=<name>...]

<page> is what mlir-tblgen -gen-op-doc writes. Each op must have an example,
which must use the op, verify, and come back the same when it is printed and
read again. Then the example has to go through the compiler: a problem as it
stands, a function on tiles or vectors as a kernel around its body that loads
its arguments and stores its result. Attention on tensors becomes a problem before.
Of all ops, or of those that are named.
"""

import re
import subprocess
import sys

TARGET = '{attn.target = #attn.target<"gfx942">}'
SCHEDULE = ("#attn.schedule<block_m = 32, block_n = 32, waves = 1, "
            "inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, "
            "rescale_threshold = 0>")
STAGES = ["--attn-tiles-to-layouts", "--attn-layouts-to-lanes",
          "--attn-lanes-to-matrix-core", "--attn-matrix-core-to-rocdl",
          "--attn-rocdl-to-hsaco"]
# Of attention on tensors the kernel is compiled, and its caller not.
OUTLINE = ("--pass-pipeline=builtin.module(one-shot-bufferize{"
           "bufferize-function-boundaries "
           "function-boundary-type-conversion=identity-layout-map},"
           "attn-outline-kernels,builtin.module(attn-to-hsaco))")
FUNCTION = re.compile(
    r"(?P<before>.*)func\.func @\w+\((?P<arguments>[^{]*?)\)\s*"
    r"(?:->\s*(?P<result>\S[^{]*?))?\s*(?:attributes (?P<attributes>\{.*?\}))?"
    r" \{\n(?P<body>.*)\n  return(?: (?P<value>%\w+) : [^\n]*)?\n\}\s*", re.S)
TENSOR = re.compile(r"tensor<\d+x(\d+)x(\w+)(?:, #\w+)?>")


def examples(page):
    """Yields each op's name and its example, None if there is none."""
    for section in re.split(r"(?m)^### ", page)[1:]:
        found = re.search(r"(?m)^Example:\n+```mlir\n(.*?)^```", section, re.S)
        yield section.split("`")[1], found and found[1]


def view(name, columns, element):
    """A view of the kernel's memory, and its type."""
    of = f"!attn.view<{columns} x {element}>"
    return f"  {name} = attn.view %memory[%from] rows %n stride %n : {of}", of


def argument(name, of):
    """How a kernel gets what the example takes: None if as an argument."""
    if tensor := TENSOR.fullmatch(of):
        make, whole = view(f"{name}_in_memory", *tensor.groups())
        return [make, f"  {name} = attn.load {name}_in_memory : {whole} -> {of}"]
    if of.startswith("!attn.view"):
        return [view(name, *re.findall(r"\w+", of)[2::2])[0]]
    if of.startswith("!attn.lds"):
        return [f"  {name} = attn.alloc_lds : {of}"]
    return None


def result(value, of):
    if tensor := TENSOR.fullmatch(of):
        make, whole = view("%result_in_memory", *tensor.groups())
        return [make, f"  attn.store {value}, %result_in_memory : {of}, {whole}"]
    return [f"  llvm.store {value}, %memory : {of}, !llvm.ptr<1>"]


def kernel(example):
    """The example's function as a kernel in a module of its own."""
    function = FUNCTION.fullmatch(example)
    if not function:
        raise ValueError("is not a function that ends with its return")
    parameters, body = ["%memory: !llvm.ptr<1>", "%from: i64", "%n: i32"], []
    for part in re.findall(r"%\w+: [^%]*[^%,\s]", function["arguments"]):
        made = argument(*part.split(": ", 1))
        if made is None:
            parameters.append(part)
        else:
            body += made
    body.append(function["body"])
    if function["value"]:
        body += result(function["value"], function["result"])
    return "\n".join(
        [function["before"],
         f"gpu.module @module attributes {function['attributes'] or TARGET} {{",
         f"gpu.func @kernel({', '.join(parameters)}) kernel",
         f"    attributes {{attn.schedule = {SCHEDULE}}} {{",
         *body, "  gpu.return", "}", "}", ""])


def check(op, example, aot_opt):
    """Raises ValueError that says what is wrong with an op's example."""
    if not example:
        raise ValueError("has no example")
    if not re.search(rf"{re.escape(op)}\b", example):
        raise ValueError("is not in its example")

    def run(text, *options):
        done = subprocess.run([*aot_opt, "-", *options], input=text, text=True,
                              capture_output=True)
        if done.returncode != 0 or done.stderr:
            raise ValueError(f"has an example that fails with "
                             f"{' '.join(options) or 'no pass'}:\n"
                             f"{text}\n{done.stderr}")
        return done.stdout

    printed = run(example)
    if run(printed) != printed:
        raise ValueError(f"is read back otherwise than printed:\n{printed}")
    if op == "attn.sdpa":
        out = run(example, OUTLINE)
    elif "memref<" in example:
        out = run(example, "--attn-to-hsaco")
    else:
        # Layouts are there already where an example is about them.
        stages = STAGES["#attn.layout" in example:]
        out = run(kernel(example), *stages)
    if "gpu.binary" not in out:
        raise ValueError(f"is not compiled:\n{out}")


def main(page, *arguments):
    aot_opt = [text for text in arguments if not text.startswith("op=")]
    named = [text for text in arguments if text.startswith("op=")]
    with open(page, encoding="utf-8") as file:
        found = [(op, example) for op, example in examples(file.read())
                 if not named or f"op={op}" in named]
    wrong = []
    for op, example in found:
        try:
            check(op, example, aot_opt)
        except ValueError as error:
            wrong.append(f"{op} {error}")
    print("\n".join(wrong))
    print(f"{len(found)} ops, {len(wrong)} wrong")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
