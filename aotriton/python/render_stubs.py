#!/usr/bin/env python3
"""Writes the type stubs of pyaotriton for one version of AOTriton's interface.

render_stubs.py MINOR FROM TO: copies the .pyi files of a folder, of which the
lines between `#if EXPRESSION` and `#else` or `#endif` are for versions for which
the expression in MINOR is true.
"""
import pathlib
import sys


def render(text, minor):
    kept = [True]
    lines = []
    for line in text.splitlines(keepends=True):
        word, _, rest = line.strip().partition(" ")
        if word == "#if":
            kept.append(bool(eval(rest, {"MINOR": minor})))
        elif word == "#else":
            kept[-1] = not kept[-1]
        elif word == "#endif":
            kept.pop()
        elif all(kept):
            lines.append(line)
    if len(kept) != 1:
        raise SyntaxError("an #if without #endif")
    return "".join(lines)


def main(minor, source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    for file in source.rglob("*.pyi"):
        text = render(file.read_text(), int(minor))
        if not text:  # of a module that the version does not have
            continue
        to = target / file.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
