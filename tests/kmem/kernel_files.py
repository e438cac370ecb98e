"""Compiles files of the kernel, unchanged, with the headers for programs, links them with the library and runs them.

The files are of Debian's package linux-source-6.1; without it the test is skipped (77). Headers of structures that the kernel's files are
about (linux/btree.h) are the kernel's own, all that ours have is ours: see kmem(7).
"""

import argparse
import os
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARBALL = Path("/usr/src/linux-source-6.1.tar.xz")
TREE = "linux-source-6.1"
SKIPPED = 77
COMMON = ["-std=gnu11", "-O1", "-w", "-D__KERNEL__", "-DCONFIG_ASSOCIATIVE_ARRAY"]

# What runs: a program of ours, or init.c, which runs the module; and the kernel's files.
PROGRAMS = {
    "assoc_array": ("assoc_array.c", ["lib/assoc_array.c"]),
    "btree": ("btree.c", ["lib/btree.c"]),
    "interval_tree": ("init.c", ["lib/interval_tree_test.c", "lib/interval_tree.c"]),
    "list": ("init.c", ["lib/list-test.c"]),
    "list_sort": ("init.c", ["lib/test_list_sort.c", "lib/list_sort.c"]),
    "objagg": ("init.c", ["lib/test_objagg.c", "lib/objagg.c", "lib/rhashtable.c"]),
    "parman": ("init.c", ["lib/test_parman.c", "lib/parman.c"]),
    "rbtree": ("init.c", ["lib/rbtree_test.c"]),
    "rhashtable": ("init.c", ["lib/test_rhashtable.c", "lib/rhashtable.c"]),
    "sort": ("init.c", ["lib/test_sort.c", "lib/sort.c"]),
    "textsearch": ("textsearch.c", ["lib/textsearch.c", "lib/ts_kmp.c"]),
}

# What compiles.
FILES = [
    "lib/bch.c", "lib/generic-radix-tree.c", "lib/kasprintf.c", "lib/klist.c", "lib/lru_cache.c", "lib/parser.c",
    "lib/plist.c", "lib/reed_solomon/reed_solomon.c", "lib/test_meminit.c", "lib/timerqueue.c", "lib/ts_bm.c",
]  # fmt: skip


def unpack(work: Path) -> Path:
    """lib and include of the kernel's source."""
    tree = work / TREE
    if not (tree / "unpacked").exists():
        with tarfile.open(TARBALL) as tar:
            wanted = (member for member in tar if member.name.startswith((f"{TREE}/lib/", f"{TREE}/include/")))
            tar.extractall(work, wanted)
        (tree / "unpacked").touch()
    return tree


def run(argv: list[str], timeout: int = 300) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(argv)}\ntook more than {timeout} s")
    if done.returncode:
        sys.exit(f"{' '.join(argv)}\nended with status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--source", "--library", "--work", "--cc"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    if not TARBALL.exists():
        print(f"skipped: no {TARBALL}: apt install linux-source-6.1")
        sys.exit(SKIPPED)
    source, work = Path(options.source), Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    tree = unpack(work)
    ours = [f"-I{source / 'include/slabyard/kernel'}", "-idirafter", str(tree / "include"), f"-I{source / 'include'}", f"-I{source}"]

    def compiled(file: Path) -> str:
        made = work / (file.relative_to(file.parents[1]).as_posix().replace("/", "_") + ".o")
        run([options.cc, *COMMON, *ours, "-c", str(file), "-o", str(made)])
        return str(made)

    for file in FILES:
        compiled(tree / file)
    for name, (program, files) in PROGRAMS.items():
        objects = [compiled(HERE / "kernel_files" / program), *(compiled(tree / file) for file in files)]
        run([options.cc, *objects, options.library, "-pthread", "-o", str(work / name)])
        os.environ["SLABYARD"] = "slub"
        run([str(work / name)])
        print(f"{name}: {' '.join(files)}")


if __name__ == "__main__":
    main()
