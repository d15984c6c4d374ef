#!/usr/bin/env python3
"""What cpack makes: archives of components, and Debian packages.

    test_packages.py CPACK BUILD VERSION FOLDER COMPONENT=FILE...

Packs each COMPONENT alone; its archive has FILE, and so has its Debian package,
under /usr.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

CPACK, BUILD, VERSION, FOLDER = sys.argv[1:5]
WANTED = dict(argument.split("=") for argument in sys.argv[5:])
FOLDER = pathlib.Path(FOLDER)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=BUILD)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, message):
    if not condition:
        sys.exit(message)


def pack(generator):
    folder = FOLDER / generator
    run(CPACK, "-G", generator, "-B", folder,
        "-D", f"CPACK_COMPONENTS_ALL={';'.join(WANTED)}")
    return sorted(p for p in folder.iterdir() if p.is_file())


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    archives = pack("TGZ")
    expect(len(archives) == len(WANTED), f"archives: {archives}")
    for component, file in WANTED.items():
        name = component.removeprefix("fovea_")
        match = [a for a in archives if re.fullmatch(
            rf"fovea-{re.escape(VERSION)}-(linux_[\w]+-)?{name}\.tar\.gz", a.name)]
        expect(len(match) == 1, f"{component}: {[a.name for a in archives]}")
        with tarfile.open(match[0]) as archive:
            names = archive.getnames()
        expect(f"fovea-{VERSION}/{file}" in names, f"{match[0].name} has {names}")
        expect(all(n.split("/")[0] == f"fovea-{VERSION}" for n in names),
               f"{match[0].name} has other trees: {names}")
    if not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps"):
        print("Debian packages: not run, there is no dpkg-deb or dpkg-shlibdeps")
        return
    packages = pack("DEB")
    expect(len(packages) == len(WANTED), f"packages: {packages}")
    for component, file in WANTED.items():
        name = component.replace("_", "-")
        match = [p for p in packages
                 if re.fullmatch(rf"{name}_{re.escape(VERSION)}_\w+\.deb", p.name)]
        expect(len(match) == 1, f"{component}: {[p.name for p in packages]}")
        names = run("dpkg-deb", "--contents", match[0])
        expect(re.search(rf" \./usr/{re.escape(file)}( |$)", names, re.M), names)
        control = run("dpkg-deb", "--field", match[0])
        expect(f"Version: {VERSION}\n" in control, control)
        anywhere = match[0].name.endswith("_all.deb")
        expect(anywhere == ("Depends:" not in control), control)
        # dpkg-shlibdeps alone does not find it.
        if component == "fovea_simulator":
            expect(re.search(r"^Depends:.*\blibllvm\d+\b", control, re.M), control)
    print(f"ok: {[p.name for p in archives + packages]}")


if __name__ == "__main__":
    main()
