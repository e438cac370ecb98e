"""Runs the example of docs/kernel-code.md on a kernel's source: its program and its commands, as they stand there.

The kernel is that of Debian's package linux-source-6.1. Without it the test is skipped (77), but fails under CI, which installs it.
A pkg-config of our own answers for the library as it was built, since nothing is installed here.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

TARBALL = Path("/usr/src/linux-source-6.1.tar.xz")
TREE = "linux-source-6.1"
SKIPPED = 77
EXPECTED = "cache\ndepot\nmagazine\npage\nslab\n"


def unpack(work: Path) -> Path:
    """The part of the kernel's source that the example uses."""
    tree = work / TREE
    if not (tree / "unpacked").exists():
        wanted = tuple(f"{TREE}/{part}" for part in ("tools/lib/rbtree.c", "tools/include/"))
        with tarfile.open(TARBALL) as tar:
            tar.extractall(work, (member for member in tar if member.name.startswith(wanted)))
        (tree / "unpacked").touch()
    return tree


def make_tools(work: Path, source: Path, library: str, compiler: str) -> Path:
    """A folder with the commands `cc` and `pkg-config`."""
    tools = work / "tools"
    tools.mkdir(exist_ok=True)
    scripts = {
        "cc": f'exec {compiler} "$@"',
        "pkg-config": f"""case "$1" in
--variable=kernelincludedir) echo {source}/include/slabyard/kernel;;
--cflags) echo -I{source}/include -I{source};;
--libs) echo {library} -pthread;;
esac""",
    }
    for name, text in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    return tools


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--source", "--library", "--work", "--cc"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    if not TARBALL.exists():
        print(f"no {TARBALL}: apt install linux-source-6.1")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    source, work = Path(options.source), Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    page = (source / "docs/kernel-code.md").read_text()
    blocks = dict(re.findall(r"^```(c|sh)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (work / "words.c").write_text(blocks["c"])
    tools = make_tools(work, source, options.library, options.cc)
    environment = {**os.environ, "LINUX": str(unpack(work)), "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", blocks["sh"]], cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode or done.stdout != EXPECTED:
        sys.exit(f"ended with status {done.returncode}, printed {done.stdout!r}\n{done.stderr[-4000:]}")


if __name__ == "__main__":
    main()
