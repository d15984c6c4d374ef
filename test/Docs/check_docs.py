#!/usr/bin/env python3
"""Holds the pages to what the commands say of themselves.

    check_docs.py ROOT BIN

* Every option of a command in a sample is one that the command has, with a value
  that it lists, where it lists all.
* A command's manual names every option that its --help does, and no other.
* What a page lists of an option's values is what --help lists.
* Samples of output have the lines that the command prints, in their order, where
  numbers may be others.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT, BIN = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(ROOT / "tools/pages"))
import tool_pages  # noqa: E402

COMMANDS = ("aot-compile", "aot-launch", "aot-opt", "aot-package", "aot-run",
            "aot-qualify", "aot-time", "aot-tune", "fovea-sim")
# The page that is a command's manual; aot-opt's options are MLIR's, and what is to
# be said of aot-run and aot-launch is in several pages.
MANUALS = {"aot-compile": "docs/AotCompile.md", "aot-time": "docs/AotTime.md",
           "aot-package": "docs/AotPackage.md", "aot-tune": "docs/AotTune.md",
           "aot-qualify": "docs/Qualify.md", "fovea-sim": "docs/FoveaSim.md"}
GENERIC = {"--help", "--help-list", "--version", "-h"}  # of all commands alike
# Open lists: what --help shows are the usual ones.
OPEN = {"--hip", "--dtype", "--load"}
failures = []


def expect(condition, where, message):
    if not condition:
        failures.append(f"{where}: {message}")


def options_of(name):
    """The options of a command, of its subcommands too, by name."""
    text = tool_pages.read_help(str(BIN / name))
    found = {}
    for part in [text, *(inner for _, inner in text.commands)]:
        for _, options in part.groups:
            for option in options:
                for spelt in option.names:
                    found[spelt] = option
    return found


def hidden_options(name):
    """LLVM's and MLIR's own, which --help leaves out."""
    if name not in ("aot-compile", "aot-opt"):
        return set()
    return set(re.findall(r"^ +(--?[\w-]+)", "\n".join(
        tool_pages.run(str(BIN / name), "--help-hidden")), re.M))


def samples(page):
    """The command lines of a page's code blocks: (line number, words)."""
    inside, whole, begun = False, "", 0
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            inside = not inside and line.strip("`") in ("", "sh")
            continue
        if not inside:
            continue
        begun = begun if whole else number
        whole += line.removesuffix("\\") + " "
        if line.endswith("\\"):
            continue
        try:
            words = shlex.split(whole, comments=True)
        except ValueError:  # a sample of output
            words = []
        whole = ""
        if words and pathlib.PurePath(words[0]).name in COMMANDS:
            yield begun, words


def check_samples(pages, options, hidden):
    count = 0
    for page in pages:
        for number, words in samples(page):
            count += 1
            where = f"{page.relative_to(ROOT)}:{number}"
            name = pathlib.PurePath(words[0]).name
            for word in words[1:]:
                if not re.match(r"--?[A-Za-z]", word):
                    continue
                spelt, _, value = word.partition("=")
                option = options[name].get(spelt) or options[name].get(spelt[:2])
                expect(option or spelt in hidden[name], where,
                       f"{name} has no option {spelt}")
                if not option or not value or spelt in OPEN:
                    continue
                for one in value.split(",") if option.choices else ():
                    expect(one in option.choices, where,
                           f"{spelt} takes {option.choices}, not '{one}'")
    expect(count >= 30, "samples", f"only {count} commands found")


def check_manuals(options, hidden):
    everything = set.union(*(set(o) for o in options.values()), *hidden.values())
    for name, path in MANUALS.items():
        text = (ROOT / path).read_text()
        named = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", " ".join(
            re.findall(r"`[^`\n]+`", text) + re.findall(r"```.*?```", text, re.S))))
        wanted = set(options[name]) - GENERIC
        # `-o,--output` needs one of its names.
        missing = {spelt for spelt in wanted
                   if not named & set(options[name][spelt].names)}
        expect(not missing, path, f"says nothing of {sorted(missing)}")
        unknown = {spelt for spelt in named if spelt.startswith("--")} - everything
        expect(not unknown, path, f"no command has {sorted(unknown)}")


def listed(path, heading):
    """The values that a page lists in a row of a table, or below a heading."""
    text = (ROOT / path).read_text()
    rows = re.search(rf"^\| `{heading}` \|.*?\n\n", text, re.M | re.S)
    expect(rows, path, f"no table of {heading}")
    return re.findall(r"^\| `([\w-]+)` \|", rows[0], re.M)[1:] if rows else []


def check_values(options):
    path = "docs/AotCompile.md"
    expect([v for v in listed(path, "--emit")]
           == options["aot-compile"]["--emit"].choices, path,
           f"--emit takes {options['aot-compile']['--emit'].choices}")
    row = re.search(r"^\| `mlir` \|[^:\n]*: (.*?) \|", (ROOT / path).read_text(), re.M)
    expect(re.findall(r"`([\w-]+)`", row[1])
           == options["aot-compile"]["--stage"].choices, path,
           f"--stage takes {options['aot-compile']['--stage'].choices}")
    # What --help numbers is what the compiler takes, and nothing beyond it.
    stages = re.findall(r"(\d): ", options["aot-compile"]["--stages"].text)
    for value in (*map(int, stages), len(stages) + 1):
        done = run_tool("aot-compile", "--target=gfx950", "--op=forward",
                        "--dtype=bf16", "--head-dim=64", "--emit=mlir",
                        "--stage=scheduled", f"--stages={value}",
                        f"--direct-copy={int(value != 4)}")
        expect((done.returncode == 0) == (str(value) in stages), "--stages",
               f"--help lists {stages}; {value} gives: {done.stderr}")


def run_tool(name, *arguments):
    return subprocess.run([BIN / name, *arguments], capture_output=True, text=True)


def shape(line):
    """A line whose numbers may be others: bars and units with them."""
    line = re.sub(r"\[[#.]+\]", "[#]", line)
    line = re.sub(r"\+0x[0-9a-f]+", "+0x", line)
    line = re.sub(r"\b(?:[um]?s|[KMG]iB)\b", "unit", line)
    line = re.sub(r"-?\d+(?:\.\d+)?", "0", line)
    return " ".join(line.split())


def check_output():
    """docs/AotTime.md shows a report from top to bottom, with gaps."""
    page = ROOT / "docs/AotTime.md"
    text = page.read_text()
    begin = text.index("## The report, from top to bottom")
    end = text.index("\n## ", begin + 3)
    blocks = re.findall(r"```\n(.*?)```", text[begin:end], re.S)
    shown = [line for block in blocks for line in block.split("\n") if line]
    expect(len(shown) >= 15, page.name, "the sample of a report is gone")
    with tempfile.TemporaryDirectory() as folder:
        run_tool("aot-compile", "-q", "--target=gfx942", "--op=forward",
                 "--dtype=bf16", "--head-dim=128", "--emit=package", "-o", folder)
        done = run_tool("aot-time", f"--package={folder}", "--head-dim=128",
                        "--seqlen=4096", "--batch=4", "--samples=1")
    expect(done.returncode == 0, "aot-time", done.stderr)
    printed = iter(shape(line) for line in done.stdout.split("\n"))
    for line in shown:
        if not any(shape(line) == other for other in printed):
            expect(False, page.name,
                   f"aot-time prints no such line, or not here: {line}\n"
                   f"it prints:\n{done.stdout}")
            return


def main():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    options = {name: options_of(name) for name in COMMANDS}
    hidden = {name: hidden_options(name) for name in COMMANDS}
    check_samples(pages, options, hidden)
    check_manuals(options, hidden)
    check_values(options)
    check_output()
    print("\n".join(failures) or "ok")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
