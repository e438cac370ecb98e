"""The program makes the report that docs/debugging.md shows, except for addresses, threads and times. Run by ctest.

test_snode.py PROGRAM DOCUMENT
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def plain(text: str) -> list[str]:
    """Without what differs from run to run, and without the C library's frames around main."""
    text = re.sub(r"thread=\d+", "thread=N", re.sub(r"T-\d+\.\d+", "T", re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", text)))
    return [line for line in text.strip().splitlines() if not line.startswith(" ") or "(snode.c:" in line]


def main() -> int:
    program, document = sys.argv[1:]
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    shown = re.search(r"```\n(slabyard: write after free.*?)```", Path(document).read_text(encoding="utf-8"), re.DOTALL)
    should, is_now = plain(shown.group(1)) if shown else [], plain(done.stderr)
    if done.returncode == -6 and should == is_now:
        return 0
    print(f"status {done.returncode}", *(f"- {line}" for line in should), *(f"+ {line}" for line in is_now), sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
