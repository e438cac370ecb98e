"""Makes what the program prints in docs/allocators/*.md, docs/reproduction.md and docs/sheaves.md, and pictures: `make docs`.

A block there begins with a line that says how it is made, and ends with another:

    <!-- layout SPEC SCRIPT -->            what `slabyard layout --allocator SPEC scripts/SCRIPT.txt` prints
    <!-- memory TRACE... -->               the exact memory figures of every allocator on bundled traces
    <!-- end -->

    docs/draw.py [--check] [FILE.md...]    writes them; with --check, says which are not what the program prints now (status 1)
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import architecture
import reproduction
import sheaves

from slabyard.base.table import Cell, document

FOLDER = Path(__file__).resolve().parent / "allocators"
TRACES = FOLDER.parent.parent / "traces"
BLOCK = re.compile(r"^<!-- (layout|memory) ([^\n]+?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
PAGE = 4096  # bytes, as the replay has them
ALLOCATORS = "yard,slub,slab,slob,slob:fit=first,slob:fit=best,slqb,bonwick,bonwick:percpu=16,bsd44,svr4,sunos4"


def slabyard(*words: str) -> str:
    """What the command prints; the program's own complaint where it fails."""
    done = subprocess.run([sys.executable, "-m", "slabyard", *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip() or f"slabyard {' '.join(words)} failed")
    return done.stdout


def layout(words: str) -> str:
    """The script, and the drawing."""
    spec, script = words.split()
    path = FOLDER / "scripts" / f"{script}.txt"
    return f"```text\n{slabyard('layout', '--allocator', spec, str(path))}```"


def memory(words: str) -> str:
    """Peak and end of each allocator on each trace, in KiB: deterministic figures alone."""
    traces = words.split()
    rows: dict[str, list[Cell]] = {}
    for trace in traces:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            slabyard("compare", str(TRACES / f"{trace}.parquet"), "--allocators", ALLOCATORS, "--runs", "1", "--export-json", file.name)
            for record in json.loads(Path(file.name).read_text()):
                pages = [record["exact"][name] for name in ("held_pages_peak", "held_pages_end")]
                rows.setdefault(record["run"]["allocator"], []).extend(count * PAGE // 1024 for count in pages)
    heads = [f"{trace}: peak KiB" if first else "end KiB" for trace in traces for first in (True, False)]
    return document(["allocator", *heads], [[f"`{name}`", *cells] for name, cells in rows.items()])


MAKERS = {"layout": layout, "memory": memory}


def made(text: str) -> str:
    """A document with its blocks as the program makes them now."""
    return BLOCK.sub(lambda found: f"<!-- {found[1]} {found[2]} -->\n{MAKERS[found[1]](found[2])}\n<!-- end -->", text)


def main(words: list[str]) -> int:
    """Status 1 where a document is not as the program makes it, and was only to be checked."""
    check = "--check" in words
    named = [Path(word) for word in words if word != "--check"]
    texts = {path: made(path.read_text()) for path in named or sorted(FOLDER.glob("*.md"))}
    if not named:
        texts[architecture.FILE] = architecture.drawn()
        texts[reproduction.FILE] = reproduction.written(reproduction.FILE.read_text("utf-8"))
        texts[sheaves.FILE] = sheaves.written(sheaves.FILE.read_text("utf-8"))
        texts |= sheaves.pictures()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.name} {'is not as the program makes it now: make docs' if check else 'written'}")
        if not check:
            path.write_text(texts[path])
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
