"""Holds the type stubs of pyaotriton to the module: each name of one is in the
other, of modules and classes, and each function has the same parameters.

test_stubs.py FOLDER, which has the stubs as a package pyaotriton.
"""
import ast
import importlib
import inspect
import pathlib
import re
import sys
import types
import unittest

import pyaotriton

FOLDER = pathlib.Path(sys.argv.pop(1)) / "pyaotriton"
# What classes of pybind11 have, enumerations first of all, beside their own.
IMPLIED = {"__members__", "__init__", "__bool__", "__int__", "__index__",
           "__hash__", "__eq__", "__ne__"}


def stub_names(body):
    """The names that statements define, with the statement or, of functions
    and methods, their parameters."""
    names = {}
    for node in body:
        if isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
        elif isinstance(node, ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.FunctionDef):
            isProperty = any(getattr(d, "id", "") == "property"
                             for d in node.decorator_list)
            names[node.name] = (None if isProperty else
                                [arg.arg for arg in node.args.args])
        elif isinstance(node, ast.ImportFrom) and not node.module:
            names.update((alias.name, None) for alias in node.names
                         if alias.asname == alias.name)
    return names


def own_names(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def parameters(function):
    """Of each signature that pybind11 gives a function."""
    name = function.__name__
    for line in (function.__doc__ or "").splitlines():
        found = re.match(rf"(?:\d+\. )?({name}\(.*)$", line)
        if found and "*args" not in line:
            tree = ast.parse(f"def {found[1]}: ...")
            yield [arg.arg for arg in tree.body[0].args.args]


def differences(stub, thing, where):
    """What the statements of a stub and a module or class do not share."""
    names = stub_names(stub)
    for name in sorted(own_names(thing) - set(names)):
        yield f"{where}.{name} is not in the stub"
    for name, known in names.items():
        if not hasattr(thing, name):
            yield f"{where}.{name} is not in the module"
            continue
        value = getattr(thing, name)
        if inspect.isclass(value) != isinstance(known, ast.ClassDef):
            yield f"{where}.{name} is a class in one alone"
        elif isinstance(known, ast.ClassDef):
            yield from differences(known.body, value, f"{where}.{name}")
        elif isinstance(known, list) and name not in IMPLIED:
            # Members of enumerations have no signatures of their own.
            for given in parameters(value):
                if given != known:
                    yield f"{where}.{name}({given}) has {known} in the stub"


def modules():
    for file in sorted(FOLDER.rglob("*.pyi")):
        parts = ("pyaotriton", *file.relative_to(FOLDER).with_suffix("").parts)
        name = ".".join(part for part in parts if part != "__init__")
        yield name, ast.parse(file.read_text()).body


class Stubs(unittest.TestCase):
    def test_agree(self):
        found = [difference for name, body in modules()
                 for difference in differences(
                     body, importlib.import_module(name), name)]
        self.assertEqual(found, [])

    def test_all_modules_have_one(self):
        there = {"pyaotriton"}
        waiting = [pyaotriton]
        for module in waiting:
            for value in vars(module).values():
                if isinstance(value, types.ModuleType):
                    there.add(value.__name__)
                    waiting.append(value)
        self.assertEqual({name for name, _ in modules()}, there)
        # 0.10 has no lazy_tensor.
        self.assertEqual(len(there), 5 + hasattr(pyaotriton, "lazy_tensor"))

    def test_faults_are_seen(self):
        """Every name that is taken out of a stub, and out of a class, is."""
        taken = 0
        for name, body in modules():
            module = importlib.import_module(name)
            for at, node in enumerate(body):
                if not stub_names([node]):
                    continue
                taken += 1
                self.assertTrue(list(differences(
                    body[:at] + body[at + 1:], module, name)), ast.dump(node))
                for inner, member in enumerate(getattr(node, "body", [])):
                    names = stub_names([member]).keys() - IMPLIED
                    if isinstance(node, ast.ClassDef) and names:
                        taken += 1
                        cut = ast.ClassDef(node.name, [], [], node.body[:inner] +
                                           node.body[inner + 1:], [])
                        self.assertTrue(list(differences(
                            [cut], types.SimpleNamespace(
                                **{node.name: getattr(module, node.name)}),
                            name)), names)
        self.assertGreater(taken, 250)

    def test_parameters_are_seen(self):
        body = ast.parse("def attn_fwd(params, version, stream, options): ...")
        flash = importlib.import_module("pyaotriton.v3.flash")
        only = types.SimpleNamespace(attn_fwd=flash.attn_fwd)
        self.assertEqual(
            list(differences(body.body, only, "v3")),
            ["v3.attn_fwd(['params', 'params_version', 'stream', 'options']) "
             "has ['params', 'version', 'stream', 'options'] in the stub"])


if __name__ == "__main__":
    unittest.main()
