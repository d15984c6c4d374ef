#!/usr/bin/env python3
"""Writes FlexAttention's forward kernels, as PyTorch's Inductor generates them for an
AMD GPU, with kernel descriptions (docs/KernelDescription.md): peers of this
project's score programs (docs/ScorePrograms.md). Needs no GPU.

    python3 -m venv flex && flex/bin/pip install torch==2.13.0 triton==3.8.0
    flex/bin/python benchmarks/flex_attention.py --target=gfx942 -o flex-kernels
    benchmarks/attention_table.py --scores=none,bias --batch=4 --seqlens=4096 \\
        --check=heads=1,seqlen=4096 --package=kernels FlexAttention=flex-kernels

The variants are score_mod and mask_mod functions that compute what the programs of
the same names compute; masks visit every block of keys. With --lists masks come with
PyTorch's BlockMask of them, and beside each kernel is one of this project that reads
the same lists (docs/BlockLists.md): documents of 512 rows, a prefix of 512 keys, a
window of 512 keys. Those are one length's too, and aot-time takes their folders as
they are:

    flex/bin/python benchmarks/flex_attention.py --target=gfx942 --lists -o lists
    aot-launch lists/documents/128 --hip=sim --set batch=1,heads=1
    aot-time lists/documents/128 --batch=4

Inductor lowers the operator on fake tensors of the chip; its template, its
configurations and its promises to Triton about pointers are taken as they are. Kernels
are those of one length and number of heads, as torch.compile makes them at the first
call: --seqlen and --heads say which; the batch is a variable of the description.

--configs=default is the configuration that Inductor compiles unless it is told to
tune, --configs=autotune those that it would try then, of 128 queries and 4 waves: of
the others none is predicted faster than these."""

import argparse
import ast
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
from typing import Callable, NamedTuple

try:
    import torch
    import triton
    from torch.nn.attention.flex_attention import create_block_mask
except ImportError as error:
    sys.exit(f"flex_attention.py: {error}; it takes a Python with torch and triton")

from torch._inductor import config, decomposition
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ELEMENTS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
            "i32": torch.int32, "u8": torch.bool}


class Variant(NamedTuple):
    """What is done to a score, and what of it is shown; of the score, batch, head,
    query, key and what is captured."""
    score: Callable = lambda x, b, h, i, j, *captures: x
    mask: Callable = None


VARIANTS = {
    "none": Variant(),
    "bias": Variant(lambda x, b, h, i, j, bias: x + bias[b, h, i, j]),
    "alibi": Variant(lambda x, b, h, i, j, slopes: x - slopes[b, h] * (i - j).abs()),
    "softcap": Variant(lambda x, b, h, i, j, cap: cap * torch.tanh(x / cap)),
    "relative": Variant(lambda x, b, h, i, j, table, most:
                        x + table[h, (j - i).clamp(-most, most) + most]),
    "bias_bool": Variant(mask=lambda b, h, i, j, shown: shown[b, h, i, j]),
    "documents": Variant(mask=lambda b, h, i, j, query_ids, key_ids:
                         query_ids[b, i] == key_ids[b, j]),
    "prefix_lm": Variant(mask=lambda b, h, i, j, prefix: (j < prefix[b]) | (j <= i)),
    "sliding_window": Variant(mask=lambda b, h, i, j, left, leading:
                              (i - j <= left) | (j < leading)),
}

# gcnArchName: (major, minor, compute units), what Inductor's choices depend on.
CHIPS = {"gfx942": (9, 4, 304), "gfx950": (9, 5, 256)}

# One block of keys, of more than there are: PyTorch's own list where there is no mask.
WHOLE = 1 << 30

# With --lists: what masks capture, by the number of rows; of each batch the same.
LISTED = {"documents": lambda rows: 2 * [[i // 512 for i in range(rows)]],
          "prefix_lm": lambda rows: [512],
          "sliding_window": lambda rows: [512, 0]}
LISTED_BLOCK = 128


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, choices=CHIPS)
    parser.add_argument("--scores", metavar="NAME,NAME...",
                        help=f"of {', '.join(VARIANTS)} (default all)")
    parser.add_argument("--dtype", default="bf16", choices=("fp16", "bf16"))
    parser.add_argument("--head-dims", default="64,128", metavar="N,N...")
    parser.add_argument("--batch", type=int, default=4, help="default 4")
    parser.add_argument("--heads", type=int, default=16, help="default 16")
    parser.add_argument("--seqlen", type=int, default=4096, help="default 4096")
    parser.add_argument("--configs", default="default", choices=("default", "autotune"))
    parser.add_argument("--lists", action="store_true",
                        help=f"{', '.join(LISTED)} with lists of blocks")
    parser.add_argument("--build", default="build", metavar="FOLDER",
                        help="build folder, whose aot-compile gives the programs' texts "
                        "and what they capture (default build)")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER")
    args = parser.parse_args()
    known = LISTED if args.lists else VARIANTS
    args.scores = (args.scores or ",".join(known)).split(",")
    for name in args.scores:
        if name not in known:
            parser.error(f"no variant '{name}'; there are: {', '.join(known)}")
    if args.lists and args.seqlen % LISTED_BLOCK:
        parser.error(f"--lists takes multiples of {LISTED_BLOCK} rows, not {args.seqlen}")
    return args


# A device that PyTorch asks about and never uses.

def pretend(chip):
    major, minor, units = CHIPS[chip]
    properties = types.SimpleNamespace(
        name=chip, gcnArchName=chip, major=major, minor=minor,
        multi_processor_count=units, warp_size=64, max_threads_per_block=1024,
        max_threads_per_multi_processor=2048, regs_per_multiprocessor=131072,
        shared_memory_per_block=65536, total_memory=192 << 30)
    torch.version.hip = "7.0"
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.get_device_properties = lambda device=None: properties
    cuda.get_device_capability = lambda device=None: (major, minor)
    from torch._dynamo.device_interface import CudaInterface
    for name in ("device_count", "current_device", "get_device_properties"):
        setattr(CudaInterface, name, staticmethod(getattr(cuda, name)))
    triton.runtime.driver.set_active(types.SimpleNamespace(
        get_current_target=lambda: GPUTarget("hip", chip, 64),
        get_current_device=lambda: 0))


# What Inductor makes of a variant.

class Lists(NamedTuple):
    """A BlockMask: numbers of blocks and their places, of the blocks that are seen in
    part, then of those that are seen in whole."""
    block: int
    tensors: list
    shown: float = 1  # share of the pairs of rows in listed blocks


def whole_list():
    """All keys in one block, what PyTorch has without a BlockMask."""
    return Lists(WHOLE, [torch.ones(1, 1, 1, dtype=torch.int32),
                         torch.zeros(1, 1, 1, 1, dtype=torch.int32)])


def block_mask_of(name, rows):
    """PyTorch's own."""
    captures = LISTED[name](rows)
    if name != "sliding_window":  # whose captures are no tensors
        captures = [torch.tensor([c]) for c in captures]
    shown = lambda b, h, i, j: VARIANTS[name].mask(b, h, i, j, *captures)
    mask = create_block_mask(shown, 1, 1, rows, rows, device="cpu",
                             BLOCK_SIZE=LISTED_BLOCK)
    tensors = [mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
               mask.full_kv_indices]
    blocks = (tensors[0].sum() + tensors[2].sum()).item()
    return Lists(LISTED_BLOCK, tensors, blocks * LISTED_BLOCK ** 2 / rows ** 2)


def traced(variant, inputs, scalars, lists, options):
    """The graph of the operator on fake tensors of the CPU. `scalars` stand at their
    places among what is captured, None for a tensor."""
    listed = len(lists.tensors)

    def with_captures(function, own):
        """The function of `own` arguments and of tensors, with the scalars put in."""
        def call(*values):
            tensors = iter(values[own:])
            captures = [next(tensors) if s is None else s for s in scalars]
            return function(*values[:own], *captures)
        return call

    def attention(q, k, v, *rest):
        places, captures = rest[:listed], rest[listed:]
        score = with_captures(variant.score, 5)
        shown = lambda b, h, i, j: b.new_ones((), dtype=torch.bool)
        of_score, of_mask = captures, ()
        if variant.mask:
            score = lambda x, b, h, i, j: x
            shown = with_captures(variant.mask, 4)
            of_score, of_mask = (), captures
        mask = (1, 1, *places) + (None,) * (12 - listed) + (
            lists.block, lists.block, shown)
        out, lse, _ = torch.ops.higher_order.flex_attention(
            q, k, v, score, mask, q.shape[-1] ** -0.5, options, of_score, of_mask)
        return out, lse

    return make_fx(attention, decomposition_table=decomposition.select_decomp_table()
                   )(*inputs)


def on_device(value):
    return pytree.tree_map(
        lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype,
                                      device="cuda")
        if isinstance(x, torch.Tensor) else x, value)


def move(graph):
    """The graph as it were traced on the device: tracing there needs a build of
    PyTorch for it, lowering does not."""
    for module in graph.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if "val" in node.meta:
                node.meta["val"] = on_device(node.meta["val"])
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": torch.device("cuda", 0)}
        module.recompile()


def inductor_code(variant, sizes, captures, lists, options):
    """The module that Inductor writes."""
    batch, heads, seqlen, dim, element = sizes
    with FakeTensorMode() as mode:
        qkv = [torch.empty(batch, heads, seqlen, dim, dtype=element) for _ in "qkv"]
        places = [torch.empty(t.shape, dtype=torch.int32) for t in lists.tensors]
        tensors = [torch.empty(c.shape, dtype=c.dtype) for c in captures
                   if isinstance(c, torch.Tensor)]
        scalars = [None if isinstance(c, torch.Tensor) else c for c in captures]
        inputs = qkv + places + tensors
        graph = traced(variant, inputs, scalars, lists, options)
        move(graph)
        inputs = on_device(inputs)
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        lowering = GraphLowering(graph, example_inputs=inputs, shape_env=ShapeEnv(),
                                 is_inference=True)
        with V.set_graph_handler(lowering):
            lowering.run(*inputs)
            return lowering.codegen()[0].value


class Generated(NamedTuple):
    """A kernel's source, and the names in the module's call of it."""
    source: str
    passed: list


def generated(code):
    """The only kernel of a module of Inductor's."""
    sources, calls = {}, {}
    for node in ast.walk(ast.parse(code)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "triton" and isinstance(node.func.value, ast.Name):
            sources[node.args[0].value] = node.args[1].value
        if node.func.attr == "run" and isinstance(node.func.value, ast.Name):
            calls[node.func.value.id] = [getattr(a, "id", None) for a in node.args]
    if len(sources) != 1 or set(sources) != set(calls):
        sys.exit("flex_attention.py: Inductor made other kernels than one; this script "
                 f"knows torch 2.13, this is {torch.__version__}")
    (name, source), = sources.items()
    return Generated(source, calls[name])


def imported(source, folder):
    """The kernel as Inductor holds it: Triton reads functions from files."""
    path = pathlib.Path(folder) / "kernel.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(x for x in vars(module).values() if hasattr(x, "triton_meta"))


def compiled(held, chip):
    """As Inductor calls Triton."""
    chosen = held.configs[0]
    meta = held._create_compile_meta(chosen)
    source = ASTSource(held.fn, meta["signature"], meta["constants"],
                       meta["configs"][0])
    return triton.compile(source, target=GPUTarget("hip", chip, 64),
                          options=held._create_compile_options(chosen, meta))


# Descriptions.

def own_description(args, name, dim, emit="description", output=None):
    """What aot-compile says of its own kernel: sizes, buffers, captures, the check."""
    with tempfile.TemporaryDirectory() as folder:
        path = output or pathlib.Path(folder) / "own.json"
        done = subprocess.run(
            [f"{args.build}/bin/aot-compile", f"--target={args.target}", "--op=forward",
             f"--dtype={args.dtype}", f"--head-dim={dim}", f"--emit={emit}", "-q", "-o",
             path] + ([f"--score={name}"] if name != "none" else [])
            + (["--groups=blocks"] if args.lists else []),
            capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"flex_attention.py: {done.stderr}")
        if emit != "description":
            return None
        own = json.loads(path.read_text())
    # No mask but the program's.
    own["check"] = {key: own["check"][key] for key in own["check"] if key in (
        "kind", "q", "k", "v", "out", "lse", "scale", "score", "captures")}
    return own


def with_lists(own, name, lists, args):
    """The description with lists, and with what they come from."""
    named = dict(zip(("kv_num_blocks", "kv_indices", "full_kv_num_blocks",
                      "full_kv_indices"), lists.tensors))
    own["buffers"] |= {
        key: {"type": "i32", "shape": list(tensor.shape),
              "fill": {"kind": "values", "values": tensor.flatten().tolist()}}
        for key, tensor in named.items()}
    entries = lists.tensors[1].shape[-1]
    own["variables"] |= {"seqlen": args.seqlen, "heads": args.heads,
                         "kv_entries": entries, "full_kv_entries": entries}
    (launch,) = own["launches"]
    for argument in launch["arguments"]:
        if argument["name"] in named:
            argument |= {"kind": "buffer", "value": argument["name"]}
        elif argument["name"] in ("kv_indices_stride_block",
                                  "full_kv_indices_stride_block"):
            argument["value"] = entries
    launch["work"] = {"flops": f"({launch['work']['flops']}) * {lists.shown}"}
    for capture, value in zip(own["check"]["captures"], LISTED[name](args.seqlen)):
        if "value" in capture:
            own["variables"][capture["value"]] = value
            continue
        values = value if isinstance(value, list) else [value]
        own["buffers"][capture["buffer"]] |= {
            "shape": [args.batch, len(values)] if value is values else [args.batch],
            "fill": {"kind": "values", "values": values * args.batch}}
    own["require"] += [f"seqlen == {args.seqlen}", f"batch <= {args.batch}"]
    return own


def captured(own, sizes):
    """Tensors without contents and numbers that the program captures."""
    batch, heads, seqlen, dim, _ = sizes
    names = {"batch": batch, "heads": heads, "seqlen_q": seqlen, "seqlen_k": seqlen,
             "dim": dim, "align": lambda x, to: -(-x // to) * to}
    number = lambda text: eval(str(text), {}, names | {
        key: value for key, value in own["variables"].items()
        if isinstance(value, (int, float)) and key not in names})
    found = []
    for capture in own["check"].get("captures", []):
        if "value" in capture:
            found.append(number(capture["value"]))
            continue
        buffer = own["buffers"][capture["buffer"]]
        found.append(torch.empty([number(n) for n in buffer["shape"]],
                                 dtype=ELEMENTS[buffer["type"]], device="meta"))
    return found


def describe(args, own, held, passed, binary, stem):
    """The description of a kernel; `passed` are the names in Inductor's call of it."""
    rows = held.inductor_meta["config_args"]["BLOCK_M"]
    roles = {"arg_Q": "q", "arg_K": "k", "arg_V": "v", "arg_LSE": "lse2",
             "arg_MAX": "unused", "out_ptr0": "out"}
    tensors = [c["buffer"] for c in own["check"].get("captures", []) if "buffer" in c]
    inputs = ["q", "k", "v", "kv_num_blocks", "kv_indices"]
    inputs += ["full_kv_num_blocks", "full_kv_indices"] if args.lists else []
    inputs += tensors
    launch = []
    for name, value in zip(held.triton_meta["signature"], passed):
        number = re.fullmatch(r"arg(\d+)_1", value)
        launch.append({"name": name, "kind": "buffer", "value": roles.get(name) or
                       (inputs[int(number[1])] if number else "unused")})
    launch += [{"name": name, "kind": "ptr", "value": 0}
               for name in ("global_scratch", "profile_scratch")]
    one = {"type": "i32", "shape": [1]}
    # The log-sum-exp is in base 2, so not what the check knows.
    buffers = {"lse2": own["buffers"]["lse"], "unused": one,
               "kv_num_blocks": one | {"fill": {"kind": "value", "value": 1}},
               "kv_indices": one} | own["buffers"]
    buffers.pop("lse")
    check = {key: own["check"][key] for key in own["check"] if key != "lse"}
    variables = own["variables"] | {"heads": args.heads, "seqlen": args.seqlen}
    fixed = [f"seqlen == {args.seqlen}", f"heads <= {args.heads}",
             f"batch <= {args.batch} && heads_k == heads"]
    fixed += [f"{capture['value']} == {variables[capture['value']]}"
              for capture in check.get("captures", []) if "value" in capture]
    return {
        "version": 1, "name": f"flex_attention {stem}", "target": args.target,
        "variables": variables, "require": own["require"] + fixed, "buffers": buffers,
        "launches": [{
            "code_object": stem + ".hsaco", "kernel": binary.metadata.name,
            "grid": [f"ceildiv(seqlen_q, {rows})", "batch", "heads"],
            "block": [binary.metadata.num_warps * 64],
            "dynamic_lds": binary.metadata.shared, "arguments": launch,
            "work": own["launches"][0]["work"]}],
        "check": check}


def configurations(args, dim):
    """Inductor's own; None stands for its default one."""
    if args.configs == "default":
        return [None]
    with config.patch(max_autotune=True):
        every = V.choices.get_flex_attention_fwd_configs(
            dim, ELEMENTS[args.dtype.replace("fp", "f")], "cuda")
    default = V.choices.get_flex_attention_fwd_configs(
        dim, ELEMENTS[args.dtype.replace("fp", "f")], "cuda")
    return [c for c in every if c not in default and c.block_m == 128
            and c.block_n >= 32 and c.num_warps == 4]


def write_kernel(args, name, dim, chosen):
    sizes = (args.batch, args.heads, args.seqlen, dim,
             ELEMENTS[args.dtype.replace("fp", "f")])
    options = {"BACKEND": "TRITON", "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False,
               "BLOCKS_ARE_CONTIGUOUS": False, "OUTPUT_LOGSUMEXP": True,
               "OUTPUT_MAX": False}
    if chosen:
        options |= {"BLOCK_M": chosen.block_m, "BLOCK_N": chosen.block_n,
                    "num_warps": chosen.num_warps, "num_stages": chosen.num_stages}
    own, lists = own_description(args, name, dim), whole_list()
    folder = pathlib.Path(args.output)
    if args.lists:
        lists = block_mask_of(name, args.seqlen)
        own = with_lists(own, name, lists, args)
        folder = folder / name / str(dim)
        folder.mkdir(parents=True, exist_ok=True)
        image = folder / f"fovea.{args.target}.{args.dtype}.d{dim}.{name}.hsaco"
        own_description(args, name, dim, "hsaco", image)
        own["launches"][0]["code_object"] = image.name
        image.with_suffix(".json").write_text(json.dumps(own))
    code = inductor_code(VARIANTS[name], sizes, captured(own, sizes), lists, options)
    source, passed = generated(code)
    with tempfile.TemporaryDirectory() as place:
        held = imported(source, place)
        binary = compiled(held, args.target)
    used = held.inductor_meta["config_args"]
    tuned = held.configs[0]
    stem = (f"{args.target}.{args.dtype}.d{dim}.{name}.{used['BLOCK_M']}x"
            f"{used['BLOCK_N']}.w{tuned.num_warps}.s{tuned.num_stages}")
    (folder / (stem + ".hsaco")).write_bytes(binary.asm["hsaco"])
    description = describe(args, own, held, passed, binary, stem)
    (folder / (stem + ".json")).write_text(json.dumps(description, indent=1))
    print(folder / (stem + ".json"), flush=True)


def main():
    args = arguments()
    pathlib.Path(args.output).mkdir(parents=True, exist_ok=True)
    pretend(args.target)
    for dim in map(int, args.head_dims.split(",")):
        for name in args.scores:
            for chosen in configurations(args, dim):
                write_kernel(args, name, dim, chosen)


if __name__ == "__main__":
    main()
