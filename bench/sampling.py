"""What sampling costs: instructions of whole programs with and without it, counted by callgrind. Makes a table of docs/debugging.md.

    python bench/sampling.py LIBRARY          libslabyard-malloc.so; writes the table

The kernel's work for a sampled object, mapping its pages and unmapping them, is not counted. So a sample's time is told apart, and the
memory that so many take, both of small programs all of whose allocations are sampled.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from slabyard.base.errors import UserError
from slabyard.base.files import write_text
from slabyard.base.table import Cell, between, document

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "debugging.md"
BEGIN, END = "<!-- sampling: made by bench/sampling.py -->", "<!-- end of sampling -->"
RATES = ("on", "10000", "1000")
SPLIT = (
    'my %h; for my $r (1..2) { for my $i (1..40000) { $h{"k".($i*7919%100003)} .= "v$i" x ($i%5+1); delete $h{"k".($i*31%100003)} } }'
    " my @a = map {[split //, $_]} (sort keys %h)[0..10000];"
)
JSON = "import json; d = [{f'a{i}': [str(j) * 40 for j in range(20)]} for i in range(1000)]; json.loads(json.dumps(d))"
QUERY = (
    "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t(a, b)');"
    "c.executemany('insert into t values(?, ?)', ((i, 'x' * (i % 90)) for i in range(10000)));"
    "sum(len(r[1]) for r in c.execute('select * from t order by b'))"
)
SOURCE = "#include <stdio.h>\n#include <stdlib.h>\n#include <pthread.h>\nint f(int n) { return n * n; }\n"
SAMPLES = 20000
LIVE = 900


def programs(folder: Path) -> dict[str, list[str]]:
    source = folder / "source.c"
    source.write_text(SOURCE)
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "perl: hashes and strings": ["perl", "-e", SPLIT],
        "Python: JSON, there and back": [sys.executable, "-c", JSON],
        "SQLite: a table, sorted": [sys.executable, "-c", QUERY],
        "gcc's compiler": [compiler, "-quiet", "-O2", "-imultiarch", machine, str(source), "-o", os.devnull],
    }


def instructions(argv: list[str], library: str, rate: str, folder: Path) -> int:
    """Of a whole program. UserError where it failed."""
    environment = {**os.environ, "LD_PRELOAD": library, "SLABYARD_SAMPLE": rate, "PYTHONHASHSEED": "0"}
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}", *argv],
                          env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise UserError(f"{argv[0]} failed under valgrind: {done.stderr.strip().splitlines()[-1]}")
    return int(found[1])


def build(folder: Path, body: str) -> Path:
    """A program that runs these statements."""
    source, program = folder / "program.c", folder / "program"
    source.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void)\n{{\n{body}\n}}\n")
    subprocess.run(["gcc", "-O0", str(source), "-o", str(program)], check=True)
    return program


def microseconds(library: str, folder: Path) -> float:
    """Of one sample, from its allocation to its free. Processor time, the kernel's too."""
    program = build(folder, f"for (int i = 0; i < {SAMPLES}; i++) free(malloc(100));")
    before = os.times()
    subprocess.run([program], env={**os.environ, "LD_PRELOAD": library, "SLABYARD_SAMPLE": "1"}, check=True)
    after = os.times()
    return (after.children_user + after.children_system - before.children_user - before.children_system) / SAMPLES * 1e6


def mebibytes(library: str, folder: Path) -> float:
    """That LIVE objects of 100 bytes take more when they are sampled, after many were freed."""
    program = build(folder, f"""
        char *kept[{LIVE}], line[256];
        for (int round = 0; round < 30; round++) {{
            for (int i = 0; i < {LIVE}; i++) memset(kept[i] = malloc(100), 1, 100);
            for (int i = 0; i < {LIVE} && round < 29; i++) free(kept[i]);
        }}
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof(line), status)) if (!strncmp(line, "RssAnon", 7)) puts(line + 8);""")  # fmt: skip
    held = {}
    for rate in ("off", "1"):
        environment = {**os.environ, "LD_PRELOAD": library, "SLABYARD_SAMPLE": rate}
        held[rate] = int(subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout.split()[0])
    return (held["1"] - held["off"]) / 1024


def main() -> int:
    library = str(Path(sys.argv[1]).resolve())
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, argv in programs(folder).items():
            off = instructions(argv, library, "off", folder)
            rows.append([title, f"{off / 1e6:.0f} million"])
            for rate in RATES:
                rows[-1].append(f"{instructions(argv, library, rate, folder) / off - 1:+.2%}")
            print(*rows[-1], sep="\t", flush=True)
        print(f"a sample takes {microseconds(library, folder):.0f} µs; {LIVE} live ones {mebibytes(library, folder):.1f} MiB")
    table = document(("program", "instructions", "one in 100,000", "one in 10,000", "one in 1,000"), rows)
    write_text(DOCUMENT, between(DOCUMENT.read_text(), BEGIN, END, f"\n{table}\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
