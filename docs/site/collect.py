#!/usr/bin/env python3
"""Collects the pages of the site: collect.py SOURCE PAGES GENERATED

SOURCE is the project, PAGES the folder that MkDocs reads, GENERATED the folder of pages
that TableGen wrote. README.md becomes the first page, docs/ the rest; sources and
folders that pages link to become pages that show them, and a page is made of what
`import fovea` has. A link that leads nowhere is an error, headings included.
"""
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".td": "cpp", ".py": "python",
             ".json": "json", ".sh": "bash", ".mlir": "llvm", ".txt": "cmake"}
TITLES = {"AttnInterfaces": "Interfaces of the attn dialect", "AttnPasses": "Passes of attn",
          "ConversionPasses": "Passes to code"}
CPP_PAGE = """# C and C++

<a href="../cpp/index.html">The headers of the runtime, the simulator, the package library and
the compiler</a>, with who includes whom. The C interface is
<a href="../cpp/fovea_8h.html">fovea.h</a>, its C++17 side
<a href="../cpp/fovea_8hpp.html">fovea.hpp</a>; the manual is [Runtime](../Runtime.md).
"""
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")
FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^(\s*)([*+-]|\d+\.) +\S")


def slug(heading):
    """The identifier of a heading, as those who host repositories make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)", "", text)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def outside_code(text):
    """Lines, each with whether it is prose."""
    fenced = False
    for line in text.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
            yield line, False
        else:
            yield line, not fenced


def with_identifiers(text):
    """Headings with their identifiers, and lists as Python-Markdown knows them."""
    seen, lines, before = {}, [], ""
    for line, prose in outside_code(text):
        heading = HEADING.match(line) if prose else None
        if heading and "{#" not in line:
            name = slug(heading[2])
            seen[name] = seen.get(name, -1) + 1
            name += f"-{seen[name]}" if seen[name] else ""
            line = f"{heading[1]} {heading[2]} {{#{name}}}"
        item = ITEM.match(line) if prose else None
        if item and before.strip() and not ITEM.match(before) and not item[1] \
                and not before.startswith(" "):
            lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines)


class Site:
    def __init__(self, source, pages):
        self.source, self.pages = Path(source), Path(pages)
        tracked = subprocess.run(["git", "-C", source, "ls-files"], text=True,
                                 capture_output=True)
        self.tracked = set(tracked.stdout.split()) if tracked.returncode == 0 else {
            str(f.relative_to(source)) for f in self.source.rglob("*") if f.is_file()}
        self.texts = {}    # page -> text
        self.origins = {}  # page -> path in the project, by which its links go
        self.errors = []

    def page_of(self, path):
        """The page of a path of the project; None if it has no such path."""
        if path == "README.md":
            return "index.md"
        if self.origins.get(path) == path:  # of the project's folder itself
            return path
        if path.startswith("docs/") and path in self.tracked:
            return path[len("docs/"):]
        page = f"source/{path.rstrip('/')}.md"
        if page in self.texts:
            return page
        if path in self.tracked:
            text = (self.source / path).read_text(errors="replace")
            kind = LANGUAGES.get(Path(path).suffix, "")
            fence = "~~~~" if "```" in text else "```"
            self.add(page, path, f"# {path}\n\n{fence}{kind}\n{text}\n{fence}\n", links=False)
            return page
        inside = sorted(f for f in self.tracked if f.startswith(path.rstrip("/") + "/"))
        if not inside:
            return None
        listing = "\n".join(f"* `{f}`" for f in inside)
        self.add(page, path, f"# {path.rstrip('/')}/\n\n{listing}\n", links=False)
        return page

    def add(self, page, origin, text, links=True):
        self.texts[page] = with_identifiers(text)
        self.origins[page] = origin if links else None

    def relinked(self, page, text):
        origin = self.origins[page]

        def link(match):
            target, _, anchor = match[2].partition("#")
            if re.match(r"[a-z]+:", match[2]):
                return match[0]
            path = os.path.normpath(os.path.join(os.path.dirname(origin), target)) \
                if target else origin
            to = self.page_of(path)
            if to is None or (to.endswith(".md") and to not in self.texts):
                self.errors.append(f"{origin}: {match[2]} leads to no file or folder")
                return match[0]
            if anchor and "{#" + anchor + "}" not in self.texts.get(to, ""):
                self.errors.append(f"{origin}: {match[2]} leads to no heading")
            to = os.path.relpath(to, os.path.dirname(page) or ".")
            return f"{match[1]}{to}{'#' + anchor if anchor else ''}{match[3]}"

        return "\n".join(
            re.sub(r"(`+)(?:(?!\1).)*\1|" + LINK.pattern,
                   lambda m: m[0] if m[0].startswith("`") else link(
                       LINK.match(m[0])), line) if prose else line
            for line, prose in outside_code(text))

    def write(self):
        for page in list(self.texts):
            if self.origins[page]:
                self.texts[page] = self.relinked(page, self.texts[page])
        for page, text in self.texts.items():
            file = self.pages / page
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
        known = {self.pages / page for page in self.texts}
        for file in self.pages.rglob("*.md"):
            if file not in known:
                file.unlink()


def signature(node, skip=0):
    arguments = ast.unparse(node.args)
    if skip:
        arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returns}"


def python_page(package):
    """What `import fovea` has, from its sources: nothing of it is imported."""
    init = ast.parse((package / "__init__.py").read_text())
    origin, names = {}, []
    for node in init.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            origin.update({a.asname or a.name: node.module for a in node.names})
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            names = ast.literal_eval(node.value)
    modules = {m: ast.parse((package / f"{m}.py").read_text())
               for m in set(origin.values()) if (package / f"{m}.py").exists()}
    out = ["# Python: `import fovea`", "", ast.get_docstring(init), ""]
    for name in sorted(names, key=str.lower):
        found = [n for n in modules.get(origin.get(name), ast.Module([], [])).body
                 if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name]
        for node in found:
            out += [f"## {name}", "", "```python"]
            if isinstance(node, ast.FunctionDef):
                out += [signature(node)]
            else:
                bases = ", ".join(ast.unparse(b) for b in node.bases)
                out += [f"class {name}({bases}):" if bases else f"class {name}:"]
            out += ["```", ""]
            if ast.get_docstring(node):
                out += ["```text", ast.get_docstring(node), "```", ""]
            for member in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    out += [f"### {name}.{member.name}", "", "```python",
                            signature(member, skip=1), "```", ""]
                    if ast.get_docstring(member):
                        out += ["```text", ast.get_docstring(member), "```", ""]
    return "\n".join(out)


def main():
    source, pages, generated = sys.argv[1:]
    site = Site(source, pages)
    site.add("index.md", "README.md", (Path(source) / "README.md").read_text())
    for path in sorted(site.tracked):
        if path == "CONTRIBUTING.md" or path == "CHANGELOG.md":
            site.add(path, path, (Path(source) / path).read_text())
        if path.startswith("docs/") and path.endswith(".md") and "/site/" not in path:
            site.add(path[len("docs/"):], path, (Path(source) / path).read_text())
    for file in sorted(Path(generated).glob("*.md")):
        text = file.read_text().replace("[TOC]", "")
        if not re.search(r"^# ", text, re.M):
            text = f"# {TITLES[file.stem]}\n\n{text}"
        site.add(f"reference/{file.name}", None, text, links=False)
    site.add("reference/Cpp.md", None, CPP_PAGE, links=False)
    site.add("reference/Python.md", None, python_page(Path(source) / "python/fovea"),
             links=False)
    site.write()
    for path in site.tracked:
        if path.startswith("docs/pictures/") and path.endswith(".svg"):
            to = Path(pages) / path[len("docs/"):]
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes((Path(source) / path).read_bytes())
    for error in site.errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if site.errors else 0


if __name__ == "__main__":
    sys.exit(main())
