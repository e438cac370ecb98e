"""Makes lab/slabyard/replay/scratch_form.py of the programs' scratch.h and the library's slabyard.h: `make scratch-form`.

scratch.h is the one description of the scratch file, slabyard.h that of flags and page sizes. Structs and kinds of events are found by
their declarations; a small C program that includes the header then tells where each member lies and how many bytes it has: padding and
array bounds are the compiler's own. tests/python/test_scratch.py refuses a committed file that is not as this makes it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORM = ROOT / "lab" / "slabyard" / "replay" / "scratch_form.py"
CONSTANTS = ("SCRATCH_VERSION", "SCRATCH_ALIGN", "NO_HANDLE", "VACATED", "NO_CACHE", "EVENT_IMPLIED")
WIDTH = 118  # of a line of names
SHARED = ("SY_PAGE_SHIFT", "SY_MAX_ORDER", "SY_NO_SHEAVES")
ENUMS = ("sy_flags", "sy_cache_flags")
LIBRARY = ROOT / "include" / "slabyard" / "slabyard.h"
TYPES = {"uint64_t": "<u8", "uint32_t": "<u4", "uint16_t": "<u2", "uint8_t": "u1", "int8_t": "i1", "char": "S"}
HEAD = '''"""The scratch file's records and numbers, made by lab/scratch_form.py of the programs' scratch.h: do not edit."""

from __future__ import annotations

import numpy as np

'''


def members(body: str) -> list[tuple[str, str, bool]]:
    """Type, name and whether it is an array, of each member of a struct."""
    found = []
    for line in re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";"):
        kind, _, names = line.strip().partition(" ")
        found += [(kind, name.strip().partition("[")[0], "[" in name) for name in names.split(",") if name.strip()]
    return found


def names_of(text: str, enum: str) -> list[str]:
    """The enumerators that a header declares, in order."""
    return re.findall(r"^\t([A-Z]\w+)", text[text.index(f"enum {enum} {{") :].partition("};")[0], re.MULTILINE)


def ask(header: Path, lines: list[str]) -> list[str]:
    """What a C program that includes the header prints for each line, an expression."""
    program = "".join(f'\tprintf("%llu\\n", (unsigned long long)({line}));\n' for line in lines)
    with tempfile.TemporaryDirectory(prefix="slabyard-") as folder:
        source, binary = Path(folder) / "ask.c", Path(folder) / "ask"
        source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n{program}}}\n')
        places = [f"-I{place}" for place in (ROOT, ROOT / "include", header.parent)]
        subprocess.run(["cc", "-std=gnu11", *places, str(source), "-o", str(binary)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.split()


def form(header: Path) -> str:
    """The text of the Python module."""
    text = header.read_text()
    structs = {name: members(body) for name, body in re.findall(r"^struct scratch_(\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)}
    kinds = names_of(text, "event_kind")
    flags = [name for enum in ENUMS for name in names_of(LIBRARY.read_text(), enum)]
    numbers = [*CONSTANTS, *SHARED, *flags, *kinds]
    out = [*(f"{name} = {value}\n" for name, value in zip(numbers, ask(header, numbers), strict=True)), "\nRECORDS = {\n"]
    for struct, fields in structs.items():
        of = [f"((struct scratch_{struct} *)0)->{name}" for _, name, _ in fields]
        offsets = ask(header, [f"offsetof(struct scratch_{struct}, {name})" for _, name, _ in fields])
        sizes = ask(header, [f"sizeof({one})" for one in of])
        rows = ask(header, [f"sizeof(*{one})" if array else f"sizeof({one})" for one, (_, _, array) in zip(of, fields, strict=True)])
        size = ask(header, [f"sizeof(struct scratch_{struct})"])[0]
        names = ("\n" + " " * 18).join(textwrap.wrap(", ".join(f"'{name}'" for _, name, _ in fields), WIDTH))
        out.append(f'    "{struct}": np.dtype({{\n        "names": [{names}],\n')
        formats = [one_format(kind, int(whole), int(row)) for (kind, _, _), whole, row in zip(fields, sizes, rows, strict=True)]
        out.append(f'        "formats": {formats},\n        "offsets": [{", ".join(offsets)}], "itemsize": {size},\n    }}),\n')
    return HEAD + "".join([*out, "}  # fmt: skip\n"]).replace("'", '"')


def one_format(kind: str, whole: int, row: int) -> str:
    """A member as numpy writes it: `<u4`, `(4,)<u8`, `(4,11)<u8`; a text as bytes."""
    if kind == "char":
        return f"S{whole}"
    width = int(TYPES[kind][-1])
    bounds = [whole // row, row // width] if row > width else [whole // width]
    return TYPES[kind] if whole == width else f"({','.join(map(str, bounds))}{',' if len(bounds) == 1 else ''}){TYPES[kind]}"


def scratch_header() -> Path:
    """Where the programs have it."""
    return next(path for path in ROOT.glob("*/scratch.h"))


def main(words: list[str]) -> int:
    """Writes the module; with --check, status 1 where it is not as it would be written."""
    text = form(scratch_header())
    if "--check" in words:
        return int(FORM.read_text() != text)
    FORM.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
