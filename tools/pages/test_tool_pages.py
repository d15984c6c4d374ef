#!/usr/bin/env python3
"""Holds a command's manual page and bash completion to its --help.

    test_tool_pages.py PROGRAM PAGE COMPLETION

Every option that --help shows is in the page as groff renders it, which has
nothing to warn of, and is offered by bash; values are offered where --help lists
them.
"""

import pathlib
import re
import subprocess
import sys

# Values that bash must offer, by command: what is typed and what comes.
OFFERED = {
    "aot-compile": [(["--dtype", "=", ""], ["fp16", "bf16", "fp32"]),
                    (["--dtype", "=", "fp16,b"], ["fp16,bf16"]),
                    (["--emit", "=", "h"], ["hsaco"]),
                    (["--report", "=", "t"], ["text"]),
                    (["--stage", "m"], ["matrix-core"])],
    "aot-run": [(["--mask", "=", "causal-t"], ["causal-top-left"]),
                (["--op", "="], ["forward", "backward"]),
                (["--hip", "=", ""], ["auto", "rocm", "sim"])],
    "aot-launch": [(["--hip", "=", "s"], ["sim"])],
    "aot-time": [(["--layout", "=", "s"], ["sbhd"]),
                 (["--op", "=", ""], ["forward", "backward"])],
    "aot-qualify": [(["--hip", "=", "r"], ["rocm"])],
    "aot-tune": [(["--by", "=", "m"], ["measurement"]),
                 (["--op", "=", ""], ["forward", "backward"]),
                 (["--algorithm", "=", "a"], ["atomic", "atomic16"])],
    "aot-package": [(["ver"], ["verify"]), (["list", "--js"], ["--json"]),
                    (["merge", "a", "--prefer", "=", ""], ["first", "last"])],
    "fovea-sim": [(["--report", "=", "j"], ["json"])],
    "aot-opt": [(["--attn-to-rocd"], ["--attn-to-rocdl"])],
}
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    expect(done.returncode == 0,
           f"{' '.join(map(str, command[:3]))}: {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def options_of(text):
    """The options that the help describes, each at the start of a line, and
    MLIR's passes."""
    found = set()
    for line in text.split("\n"):
        if start := re.match(r"  (?:    )?((?:--?[A-Za-z][\w-]*(?:\{\w+\})?,?)+)", line):
            found.update(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", start[1]))
    return found


def offers(completion, name, words):
    """What bash would show behind `name words...`."""
    script = ('compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); '
              'COMP_CWORD=$(($# - 1)); '
              'f=$(complete -p "$1"); f=${f#*-F }; "${f%% *}"; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    out, err = run("bash", "-c", script + "; true", "bash", completion, name, *words)
    expect(not err, f"completing {words}: {err}")
    return [word for word in out.split("\n") if word]


def main():
    program, page, completion = map(pathlib.Path, sys.argv[1:])
    name = program.name
    helps = {(): run(program, "--help")[0]}
    if name == "aot-package":
        for command in re.findall(r"^  ([a-z]+) ", helps[()], re.M):
            if rf"aot\-package {command} [" in page.read_text():
                helps[(command,)] = run(program, command, "--help")[0]
        expect(len(helps) == 8, f"subcommands in the page: {sorted(helps)}")

    rendered, warnings = run("groff", "-man", "-Tascii", "-ww", "-P-cbou",
                             "-rLL=1000n", page)
    expect(not warnings, f"groff warns: {warnings}")
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"):
        expect(re.search(rf"^{section}$", rendered, re.M), f"no section {section}")
    version = run(program, "--version")[0].split()[1].rstrip(",")
    expect(f"Fovea {version}" in rendered, f"no 'Fovea {version}' in the page")
    words = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", rendered))
    for command, text in helps.items():
        wanted = options_of(text)
        expect(len(wanted) >= 2, f"{command}: only {wanted} in the help")
        expect(wanted <= words, f"not in the page: {sorted(wanted - words)}")
        offered = {word.rstrip("=")
                   for word in offers(completion, name, [*command, "-"])}
        expect(wanted == offered,
               f"{command}: bash offers {sorted(offered - wanted)} that the help "
               f"does not have, and not {sorted(wanted - offered)}")
    for typed, wanted in OFFERED[name]:
        found = offers(completion, name, typed)
        expect(found == wanted, f"{typed}: {found}, not {wanted}")
    print("\n".join(failures) or "ok")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
