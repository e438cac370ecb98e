"""Compiles the kernel's headers for programs: each alone, and all of them in two orders, so that each stands before and
behind every other.

Most of these headers say that they are system headers, and the compiler does not warn of what such headers define twice. So
it gets copies that don't say so."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

STANDARDS = ["gnu89", "gnu11", "gnu2x"]
PRAGMA = "#pragma GCC system_header\n"
PROGRAM = "int main(void) { return 0; }\n"


def copy(source: Path, work: Path) -> Path:
    """The public headers, as everybody's own."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source / "include", work)
    for header in work.rglob("*.h"):
        header.write_text(header.read_text().replace(PRAGMA, ""))
    return work / "slabyard" / "kernel"


def compile_with(argv: list[str], headers: list[str], rest: str) -> None:
    text = "".join(f"#include <{header}>\n" for header in headers) + rest
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(argv)} of {len(headers)} headers\n{done.stderr[:5000]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cc", required=True)
    arguments = parser.parse_args()
    kernel = copy(arguments.source, arguments.work)
    argv = [arguments.cc, "-Wall", "-Wextra", "-Werror", f"-I{kernel}", f"-I{arguments.work}", f"-I{arguments.source}"]
    argv += ["-fsyntax-only", "-x", "c", "-"]
    headers = sorted(str(header.relative_to(kernel)) for header in kernel.rglob("*.h"))
    for standard in STANDARDS:
        for order in (headers, headers[::-1]):
            compile_with([*argv, f"-std={standard}"], order, PROGRAM)
    for header in headers:
        compile_with([*argv, "-std=gnu89"], [header], PROGRAM)


if __name__ == "__main__":
    main()
