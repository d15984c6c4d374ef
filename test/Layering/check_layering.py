#!/usr/bin/env python3
"""Holds the project to its dependency rules.

`includes ROOT` reads every #include of the source folders: a folder may include
only what its row of RULES allows, and what a row forbids may not come in through
another header either. `chips ROOT` fails when the compiler names a chip or a
generation of chips outside the folder of the chip table. `library FILE` reads a shared library's needed libraries
and exported symbols. All fail when they find nothing to check.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple


class Rule(NamedTuple):
    folder: str  # the longest folder that holds a file is its rule
    allow: tuple  # beginnings of headers that it may name itself
    forbid: tuple = ()  # beginnings that may not come in at any depth


LLVM = ("llvm/", "llvm-c/")
COMPILER_LIBRARIES = LLVM + ("mlir/", "mlir-c/", "lld/")
HIP = ("hip/", "hsa/", "hsa.h")
COMPILER = ("fovea/Dialect/", "fovea/Conversion/", "fovea/Target/",
            "fovea/Layout/", "fovea/Pipelines/", "fovea/Tools/",
            "fovea/Support/")
RUNTIME_SIDE = ("fovea/fovea.h", "fovea/Simulator/", "fovea/Reference/")
NO_COMPILER = COMPILER_LIBRARIES + HIP + COMPILER
# What operations are made of: tables that know nothing of files and packages.
OPERATIONS = ("fovea/Package/OperationSpec.h", "fovea/Package/Keys.h",
              "fovea/Package/Visibility.h", "fovea/Package/DataTypes.h",
              "fovea/Package/Status.h")

# Masks, windows and types of elements: definitions on the standard library alone,
# which stand below all that says what a query sees and of what tensors are. They are
# allowed where they are named.
VISIBILITY = ("fovea/Package/Visibility.h", "fovea/Package/DataTypes.h")
# Which entry of a cache goes, likewise.
CACHES = ("fovea/Package/Replacement.h",)

# Arrows point down only: tools -> compiler -> package <- runtime; the simulator
# and the reference stand alone, over threads. Standard and system headers are always allowed.
RULES = (
    Rule("package", ("fovea/Package/", "sqlite3.h", "zstd.h", "xxhash.h",
                     "nlohmann/"),
         NO_COMPILER + RUNTIME_SIDE),
    Rule("runtime/include", ("fovea/fovea.h",), NO_COMPILER + ("fovea/Package/",)),
    Rule("runtime/parameters", ("fovea/fovea.h",) + OPERATIONS,
         NO_COMPILER + ("fovea/Simulator/", "fovea/Reference/")),
    Rule("runtime/src", ("fovea/fovea.h", "fovea/compiler.h", "fovea/Parameters.h",
                         "fovea/Package/"),
         NO_COMPILER + ("fovea/Simulator/", "fovea/Reference/")),
    Rule("runtime/cts", ("fovea/fovea.h", "fovea/Parameters.h", "gtest/", "dlfcn.h") +
         OPERATIONS, NO_COMPILER + ("fovea/Simulator/",)),
    # The binary interface of another project: nothing of ours shows in it.
    Rule("aotriton/include", ("aotriton/", "hip/hip_runtime.h"), ("fovea/",)),
    Rule("aotriton/src",
         ("aotriton/", "fovea/fovea.h", "fovea/aotriton.h") + VISIBILITY + CACHES,
         COMPILER_LIBRARIES + COMPILER +
         ("fovea/Package/", "fovea/Simulator/", "fovea/Reference/")),
    Rule("aotriton/python", ("aotriton/", "fovea/aotriton.h", "pybind11/"),
         COMPILER_LIBRARIES + COMPILER + RUNTIME_SIDE + ("fovea/Package/",)),
    Rule("python/operators", ("fovea/fovea.hpp", "torch/", "dlfcn.h"),
         NO_COMPILER + ("fovea/Package/", "fovea/Simulator/", "fovea/Reference/")),
    Rule("simulator/include", ("fovea/Simulator/",),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/isa", ("fovea/Simulator/",),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/check", ("fovea/Simulator/",),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/exec", ("fovea/Simulator/", "fovea/Threads/"),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/memory", ("fovea/Simulator/",),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/timing", ("fovea/Simulator/",),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator/hip", ("fovea/Simulator/", "fovea/HipAbi.h",
                           "fovea/HipSim.h"),
         NO_COMPILER + ("fovea/Package/", "fovea/fovea.h")),
    Rule("simulator", ("fovea/Simulator/",) + LLVM,
         ("mlir/", "lld/") + HIP + COMPILER +
         ("fovea/Package/", "fovea/fovea.h")),
    Rule("threads", ("fovea/Threads/",),
         NO_COMPILER + RUNTIME_SIDE + ("fovea/Package/",)),
    Rule("reference", ("fovea/Reference/", "fovea/Threads/") + VISIBILITY,
         NO_COMPILER + ("fovea/Package/", "fovea/Simulator/", "fovea/fovea.h")),
    # The layout algebra and the target tables know nothing above them.
    Rule("include/fovea/Layout", LLVM + ("fovea/Layout/",),
         ("mlir/", "lld/") + RUNTIME_SIDE),
    Rule("lib/Layout", LLVM + ("fovea/Layout/",),
         ("mlir/", "lld/") + RUNTIME_SIDE),
    Rule("include/fovea/Target", COMPILER_LIBRARIES +
         ("fovea/Target/", "fovea/Layout/"), RUNTIME_SIDE),
    Rule("lib/Target", COMPILER_LIBRARIES +
         ("fovea/Target/", "fovea/Layout/", "fovea/Package/", "fovea/Support/"),
         RUNTIME_SIDE),
    Rule("include/fovea/Dialect", COMPILER_LIBRARIES +
         ("fovea/Dialect/", "fovea/Target/", "fovea/Layout/", "fovea/Support/") +
         OPERATIONS, RUNTIME_SIDE),
    Rule("lib/Dialect", COMPILER_LIBRARIES +
         ("fovea/Dialect/", "fovea/Target/", "fovea/Layout/", "fovea/Support/") +
         OPERATIONS, RUNTIME_SIDE),
    Rule("include/fovea", COMPILER_LIBRARIES + COMPILER + ("fovea/Package/",),
         RUNTIME_SIDE),
    Rule("lib", COMPILER_LIBRARIES + COMPILER +
         ("fovea/Package/", "fovea/compiler.h", "nlohmann/", "CLI/"), RUNTIME_SIDE),
    Rule("tools/aot-opt", COMPILER_LIBRARIES + COMPILER + ("fovea/Package/ReadFile.h",),
         RUNTIME_SIDE),
    Rule("tools/aot-compile", COMPILER_LIBRARIES + COMPILER + ("CLI/",),
         RUNTIME_SIDE),
    Rule("tools", ("fovea/", "CLI/", "nlohmann/") + LLVM),
    Rule("examples", ("fovea/fovea.h", "fovea/fovea.hpp", "fovea.h"), ("fovea/Package/",)),
)
FOLDERS = ("package", "runtime", "aotriton", "python", "simulator", "reference",
           "threads", "include", "lib", "tools", "examples")
SUFFIXES = {".h", ".c", ".cpp", ".inc", ".td", ".def", ".hpp"}
# Headers that a build writes come from TableGen and so from MLIR's side.
GENERATED = re.compile(r"\.(h|cpp)\.inc$")
INCLUDE = re.compile(r'^\s*#?\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
# Where `fovea/...` headers are found.
INCLUDE_ROOTS = ("package/include", "runtime/include",
                 "runtime/parameters/include", "simulator/include",
                 "simulator/hip/include", "reference/include",
                 "threads/include", "include", "aotriton/include")
# Folders that a component's private includes may be relative to.
PRIVATE_ROOTS = ("simulator", "simulator/hip/src", "package/src",
                 "runtime/src", "aotriton/src", "reference/src",
                 "lib/Tools/aot-compile", "tools/cli", "tools/describe",
                 "tools/support",
                 "tools/aot-run", "tools/aot-time", "tools/aot-launch",
                 "tools/aot-package")
SYSTEM = re.compile(r"^[a-z0-9_]+(\.h)?$|^(sys|linux|asm|arpa|netinet)/")
# Other people's headers that look like system headers.
LIBRARIES = ("sqlite3.h", "zstd.h", "xxhash.h", "hsa.h", "fovea.h")


def rule_of(path):
    best = None
    for rule in RULES:
        if path == rule.folder or path.startswith(rule.folder + "/"):
            if best is None or len(rule.folder) > len(best.folder):
                best = rule
    return best


class Tree:
    """The source files below a root and what they include."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.includes = {}
        for folder in FOLDERS:
            base = self.root / folder
            if not base.is_dir():
                continue
            for file in sorted(base.rglob("*")):
                if file.is_file() and file.suffix in SUFFIXES:
                    name = file.relative_to(self.root).as_posix()
                    text = file.read_text(errors="replace")
                    self.includes[name] = [a or b for a, b in
                                           INCLUDE.findall(text)]

    def resolve(self, path, header):
        """The file of the project that `header` means in `path`, or None."""
        here = (pathlib.PurePosixPath(path).parent / header).as_posix()
        parts = []
        for part in here.split("/"):
            if part == "..":
                if parts:
                    parts.pop()
            elif part != ".":
                parts.append(part)
        candidates = ["/".join(parts)]
        candidates += [f"{r}/{header}" for r in INCLUDE_ROOTS]
        candidates += [f"{r}/{header}" for r in PRIVATE_ROOTS
                       if path.startswith(r.split("/")[0] + "/")]
        for candidate in candidates:
            if candidate in self.includes:
                return candidate
        return None

    def leak(self, path, rule, seen):
        """How something forbidden comes into `path`: a list of names."""
        seen.add(path)
        for header in self.includes[path]:
            if header in VISIBILITY + CACHES and header in rule.allow:
                continue
            if header.startswith(rule.forbid):
                return [path, header]
            inner = self.resolve(path, header)
            if inner and inner not in seen:
                chain = self.leak(inner, rule, seen)
                if chain:
                    return [path] + chain
        return None


def is_system(header):
    return header not in LIBRARIES and bool(SYSTEM.match(header))


def check_includes(root):
    """The violations below `root`, as texts, and the number of files read."""
    tree = Tree(root)
    errors = []
    files_of_rule = {rule.folder: 0 for rule in RULES}
    for path, headers in tree.includes.items():
        rule = rule_of(path)
        if rule is None:
            errors.append(f"{path}: no rule covers it; add one to RULES in "
                          "test/Layering/check_layering.py")
            continue
        files_of_rule[rule.folder] += 1
        component = path.split("/")[0]
        for header in headers:
            if header.startswith(rule.allow) or GENERATED.search(header):
                continue
            inner = tree.resolve(path, header)
            if inner and not header.startswith("fovea/") and \
                    inner.split("/")[0] == component:
                continue  # a private header of the same component
            if inner is None and is_system(header):
                continue
            errors.append(f"{path}: {rule.folder}/ may not include {header}")
        if rule.forbid:
            chain = tree.leak(path, rule, set())
            if chain and len(chain) > 2:
                errors.append(f"{path}: {chain[-1]} comes in by " +
                              " -> ".join(chain[1:-1]))
            elif chain:
                text = f"{path}: {rule.folder}/ may not include {chain[-1]}"
                if text not in errors:
                    errors.append(text)
    return errors, files_of_rule


# Passes ask the chip table what a chip can do; none names one.
COMPILER_FOLDERS = ("lib", "include/fovea")
CHIP_TABLE = ("lib/Target/", "include/fovea/Target/")
# Texts that users read have chips for examples there.
CHIP_EXAMPLES = ("lib/Tools/aot-compile/Options.cpp",
                 "lib/Tools/aot-compile/Targets.cpp")
CHIP = re.compile(r"(?i:gfx)\d\w*|[CR]DNA\d?|[CR]dna\d|\b(?i:mi)\d{3}")
# Comments, and what TableGen makes documentation of.
PROSE = re.compile(
    r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")|'
    r'let\s+(?:description|summary)\s*=\s*(?:\[\{.*?\}\]|"(?:\\.|[^"\\])*")',
    re.S)


def without_prose(text):
    """`text` without comments and documentation; its lines stay in place."""
    return PROSE.sub(lambda m: m[1] or "\n" * m[0].count("\n"), text)


def check_chips(root):
    """Where the compiler names chips below `root`, and the files read."""
    errors, files = [], 0
    for folder in COMPILER_FOLDERS:
        for file in sorted((pathlib.Path(root) / folder).rglob("*")):
            name = file.relative_to(root).as_posix()
            if file.suffix not in SUFFIXES or name.startswith(CHIP_TABLE) or \
                    name in CHIP_EXAMPLES:
                continue
            files += 1
            text = without_prose(file.read_text(errors="replace"))
            for number, line in enumerate(text.splitlines(), 1):
                errors += [f"{name}:{number}: it names {chip}; ask a row of "
                           "fovea/Target/TargetInfo.h"
                           for chip in CHIP.findall(line)]
    return errors, files


NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]")
FORBIDDEN_LIBRARY = re.compile(r"LLVM|MLIR|lld|clang|hip|hsa", re.I)


def check_needed(readelf_output, may_need=()):
    """Violations in the output of `readelf -d`."""
    needed = NEEDED.findall(readelf_output)
    if not needed:
        return ["it needs no library at all: was it read?"]
    return [f"it needs {name}" for name in needed
            if FORBIDDEN_LIBRARY.search(name) and
            not name.startswith(tuple(may_need))]


def check_exports(readelf_output, prefix, required):
    """Violations in the output of `readelf --dyn-syms -W`."""
    exported = []
    for line in readelf_output.splitlines():
        fields = line.split()
        # Num: Value Size Type Bind Vis Ndx Name
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and \
                fields[6] not in ("UND", "ABS"):
            exported.append(fields[7].split("@")[0])
    errors = [f"it exports {name}" for name in exported
              if not name.startswith(tuple(prefix))]
    if required not in exported:
        errors.append(f"it does not export {required}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    includes = commands.add_parser("includes")
    includes.add_argument("root")
    includes.add_argument("--expect-folder", action="append", default=[],
                          help="fail unless this rule's folder has files")
    chips = commands.add_parser("chips")
    chips.add_argument("root")
    library = commands.add_parser("library")
    library.add_argument("file")
    library.add_argument("--readelf", required=True)
    library.add_argument("--prefix", action="append", required=True,
                         help="a beginning of the names that it may export")
    library.add_argument("--required", required=True,
                         help="a name that it must export")
    library.add_argument("--may-need", action="append", default=[],
                         help="a library that it may need all the same")
    options = parser.parse_args()

    if options.command == "includes":
        errors, files = check_includes(options.root)
        for folder in options.expect_folder:
            if not files.get(folder):
                errors.append(f"{folder}/: no source file was found")
        if not sum(files.values()):
            errors.append("no source file was found")
        summary = f"{sum(files.values())} files"
    elif options.command == "chips":
        errors, count = check_chips(options.root)
        if not count:
            errors.append("no source file was found")
        summary = f"{count} files"
    else:
        def run(*arguments):
            return subprocess.run([options.readelf, *arguments, options.file],
                                  check=True, capture_output=True,
                                  text=True).stdout
        errors = check_needed(run("-d"), options.may_need)
        errors += check_exports(run("--dyn-syms", "-W"), options.prefix,
                                options.required)
        summary = options.file
    for error in errors:
        print(f"layering: {error}", file=sys.stderr)
    print(f"{summary}: {len(errors)} violations")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
