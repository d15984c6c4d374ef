#!/usr/bin/env python3
"""Writes the manual page and the bash completion of a command from its --help.

    tool_pages.py PROGRAM --man FILE --completion FILE

Reads what CLI11 and LLVM's CommandLine print, and with CLI11 the help of each
subcommand, so that neither file says anything that --help does not.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

CLI11_COLUMN = 30  # where its descriptions begin
PASS_INDENT = 4  # of MLIR's passes; what is further in belongs to a pass


@dataclasses.dataclass
class Option:
    spec: str  # as printed: "--dtype NAME", "--emit=<form>"
    text: str
    values: list  # (name, text), where the help lists them one a line
    indent: int = 0

    @property
    def names(self):
        return re.findall(r"(?<![\w<\[-])--?[A-Za-z][\w-]*", self.spec)

    @property
    def takes_value(self):
        rest = self.spec
        for name in self.names:
            rest = rest.replace(name, "", 1)
        return bool(re.sub(r"\{\w+\}|[, ]", "", rest))

    @property
    def choices(self):
        """The values that the option has, as far as its help lists them."""
        if self.values:
            return [name for name, _ in self.values]
        named = re.search(r"[ <]([a-z]+(?:\|[a-z]+)+)>?$", self.spec)
        if named:
            return named.group(1).split("|")
        if self.spec.endswith("=<string>"):
            return []
        word = r"[a-z][\w-]*(?: \(default\))?"
        listed = re.search(
            rf"(?:^|: )({word}(?:, {word})+)(?:,? or a path)?"
            r"(?: \((?:default: )?[^():]*\))?$",
            self.text)
        if not listed:
            return []
        return listed.group(1).replace(" (default)", "").split(", ")


@dataclasses.dataclass
class Help:
    description: list  # lines
    usage: str
    groups: list  # (title, [Option])
    commands: list  # (name, Help)
    footer: list  # lines


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": "80"})
    if done.returncode:
        sys.exit(f"{program} {' '.join(arguments)} ended with {done.returncode}: "
                 f"{done.stderr}")
    return done.stdout.rstrip().split("\n")


def read_cli11(program, command=()):
    lines = run(program, *command, "--help")
    at = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    result = Help(lines[:at], lines[at].split(": ", 1)[1], [], [], [])
    at += 1
    while at < len(lines):
        title = lines[at]
        first = lines[at + 1] if at + 1 < len(lines) else ""
        is_group = title.endswith(":") and (
            title in ("Positionals:", "Subcommands:") or first.startswith("  -"))
        if not title:
            at += 1
            continue
        if not is_group:
            result.footer = lines[at:]
            break
        at += 1
        options = []
        while at < len(lines) and lines[at].startswith("  "):
            line = lines[at]
            if not line[2].isspace():
                fits = len(line) > CLI11_COLUMN and line[CLI11_COLUMN - 1] == " "
                spec = line[:CLI11_COLUMN] if fits else line
                options.append(Option(spec.strip(), line[CLI11_COLUMN:].strip()
                                      if fits else "", []))
            else:
                options[-1].text = f"{options[-1].text} {line.strip()}".strip()
            at += 1
        if title == "Subcommands:":
            result.commands = [(o.spec, read_cli11(program, (o.spec,)))
                               for o in options]
        else:
            result.groups.append((title[:-1], options))
    for _, inner in result.commands:
        inner.footer = []  # the program's own once more
    return result


def read_llvm(lines):
    lines[0] = lines[0].removeprefix("OVERVIEW: ")
    usage = next(i for i, line in enumerate(lines) if line.startswith("USAGE: "))
    result = Help(lines[:usage], lines[usage].split(": ", 1)[1], [], [], [])
    at = lines.index("OPTIONS:", usage) + 1
    options = None
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line:
            continue
        if not line[0].isspace():
            following = next((l for l in lines[at:] if l), "")
            if not line.endswith(":") and not (
                    result.groups and not options and
                    following.startswith("  -")):  # what the group is
                if not following.startswith(" ") or not result.groups:
                    result.footer = lines[at - 1:]
                    break
            if line.endswith(":"):
                options = []
                result.groups.append((line[:-1], options))
            continue
        option = re.match(r"( +)(-\S.*?) +- *(.*)$", line)
        value = re.match(r" +=(\S+) +- *(.*)$", line)
        if option:
            options.append(Option(option[2], option[3], [], len(option[1]) - 2))
        elif value and options:
            options[-1].values.append((value[1], value[2]))
        elif options and options[-1].text.endswith(":"):
            name, _, text = line.strip().partition(" ")
            options[-1].values.append((name, text.strip()))
        elif options is not None:  # "Compiler passes to run"
            options.append(Option("", line.strip(), []))
    return result


def read_help(program):
    lines = run(program, "--help")
    if any(line.startswith("USAGE: ") for line in lines):
        return read_llvm(lines)
    return read_cli11(program)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def paragraphs(lines):
    """Text that fills lines, and what is indented as it stands."""
    out, as_it_stands, begun = [], False, False
    for line in lines:
        indented = line.startswith("  ") or (not line and as_it_stands)
        if indented and not as_it_stands:
            out += [".PP", ".nf"] if begun else [".nf"]
        elif as_it_stands and not indented:
            out += [".fi"]
        elif not line and begun:
            out += [".PP"]
        as_it_stands = indented
        if line or as_it_stands:
            out.append(roff(line))
            begun = True
    if as_it_stands:
        out.append(".fi")
    while out and out[-1] == ".PP":
        out.pop()
    return out


def option_list(options):
    out = []
    for option in options:
        if not option.spec:
            out += [".PP", roff(option.text)]
            continue
        if option.indent:
            out.append(f".RS {option.indent}n")
        out += [".TP", f"\\fB{roff(option.spec)}\\fR", roff(option.text) or "\\&"]
        if option.values:
            out.append(".RS")
            for name, text in option.values:
                out += [".TP 12n", f"\\fB{roff(name)}\\fR", roff(text) or "\\&"]
            out.append(".RE")
        if option.indent:
            out.append(".RE")
    return out


def man_page(name, version, text):
    summary = " ".join(" ".join(text.description).split(". ")[0].split())
    summary = summary.rstrip(".:")
    if not summary.startswith("Fovea"):
        summary = summary[0].lower() + summary[1:]
    out = [f'.\\" Made from `{name} --help`.',
           f'.TH {name.upper()} 1 "" "{version}" "Fovea"',
           ".ad l", ".SH NAME", f"{roff(name)} \\- {roff(summary)}",
           ".SH SYNOPSIS", f".B {roff(text.usage)}",
           ".SH DESCRIPTION", *paragraphs(text.description)]
    if text.groups:
        out.append(".SH OPTIONS")
    for title, options in text.groups:
        out += [f".SS {roff(title)}", *option_list(options)]
    if text.commands:
        out.append(".SH COMMANDS")
    for command, inner in text.commands:
        out += [f".SS {roff(inner.usage)}", *paragraphs(inner.description)]
        for _, options in inner.groups:
            out += option_list(options)
    sections = [("NOTES", [])]
    for line in text.footer:
        if line == "Examples:":
            sections.append(("EXAMPLES", []))
        elif re.match(r"Exit (codes|status):? ", line):
            sections.append(("EXIT STATUS", [line]))
        elif line or sections[-1][1]:
            sections[-1][1].append(line)
    for title, lines in sections:
        if lines:
            out += [f".SH {title}", *paragraphs(lines)]
    return "\n".join(out) + "\n"


def completion_case(options):
    """Branches by option, and the words that are offered in place of one."""
    words, cases = [], []
    for option in options:
        for name in option.names:
            long_value = option.takes_value and name.startswith("--")
            words.append(name + "=" if long_value else name)
        if option.takes_value and option.choices and option.names:
            cases.append(f"    {'|'.join(option.names)}) "
                         f"values='{' '.join(option.choices)}' ;;")
    return words, cases


def completion(name, text):
    function = "_fovea_" + name.replace("-", "_")
    own = [o for _, options in text.groups for o in options
           if o.indent <= PASS_INDENT]
    words, cases = completion_case(own)
    commands = [command for command, _ in text.commands]
    lines = [f"# bash completion of {name}; made from `{name} --help`.",
             f"{function}() {{",
             "  local cur=${COMP_WORDS[COMP_CWORD]} option= command= values= word",
             f"  local words='{' '.join(words + commands)}'",
             "  # The shell takes '=' for a word of its own.",
             "  if [[ $cur == = ]]; then",
             "    option=${COMP_WORDS[COMP_CWORD-1]} cur=",
             "  elif [[ $COMP_CWORD -gt 2 && ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then",
             "    option=${COMP_WORDS[COMP_CWORD-2]}",
             "  elif [[ $cur != -* ]]; then",
             "    option=${COMP_WORDS[COMP_CWORD-1]}",
             "  fi"]
    if commands:
        lines += ["  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
                  "    case $word in",
                  f"    {'|'.join(commands)}) command=$word; break ;;",
                  "    esac",
                  "  done"]
    if cases:
        lines += ["  case $option in", *cases, "  esac"]
    if commands:
        lines.append("  case $command in")
        for command, inner in text.commands:
            inner_words, inner_cases = completion_case(
                [o for _, options in inner.groups for o in options])
            lines += [f"  {command})", f"    words='{' '.join(inner_words)}'"]
            if inner_cases:
                lines += ["    case $option in", *inner_cases, "    esac"]
            lines.append("    ;;")
        lines.append("  esac")
    first = "$cur != -*" if not commands else "$cur != -* && -n $command"
    lines += ["  COMPREPLY=()",
              "  if [[ -n $values ]]; then",
              "    local head=",
              "    [[ $cur == *,* ]] && head=${cur%,*},",
              "    COMPREPLY=($(compgen -P \"$head\" -W \"$values\" -- \"${cur##*,}\"))",
              f"  elif [[ {first} ]]; then",
              "    return # files, by -o default",
              "  else",
              "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))",
              "  fi",
              "  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace",
              "}",
              f"complete -o default -F {function} {name}", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--man", type=pathlib.Path, required=True)
    parser.add_argument("--completion", type=pathlib.Path, required=True)
    options = parser.parse_args()
    name = options.program.name
    version = re.match(rf"{name} ([\d.]+)", run(options.program, "--version")[0])
    if not version:
        sys.exit(f"{name} --version does not begin with '{name}' and a version")
    text = read_help(options.program)
    if not any(found for _, found in text.groups):
        sys.exit(f"{name} --help lists no option that this script can read")
    for path, content in (
            (options.man, man_page(name, "Fovea " + version[1], text)),
            (options.completion, completion(name, text))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    main()
