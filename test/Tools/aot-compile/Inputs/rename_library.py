"""rename_library.py PROGRAM NAME FOLDER: a copy in FOLDER of the shared library
NAME* that PROGRAM loads, with another build id: what another build of it is to
those who ask for the id."""

import os
import re
import subprocess
import sys

program, name, folder = sys.argv[1:]
loaded = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True,
                        check=True).stdout
path = re.search(rf"=> (\S*/{name}\S*)", loaded).group(1)
with open(path, "rb") as library:
    code = bytearray(library.read())
# Sizes of name and id, the note's type, the name; then the id.
note = re.search(rb"\x04\0\0\0[\x08-\x20]\0\0\0\x03\0\0\0GNU\0", code)
code[note.end()] ^= 0xff
os.makedirs(folder)
with open(os.path.join(folder, os.path.basename(path)), "wb") as copy:
    copy.write(code)
