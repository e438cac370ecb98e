"""The programs and headers of this machine that a kernel needs: looked for before the work, all that are missing told at once.

What is asked for is what the configurations of this package really use. (A kernel with signed modules needs OpenSSL's headers,
one with its own tools more; these have neither.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..base.errors import MISSING, UserError


@dataclass(frozen=True)
class Tool:
    """A program, or what the C compiler takes where `kind` says so, and the package that has it under Debian and under Fedora."""

    name: str
    debian: str
    fedora: str
    kind: Literal["program", "header", "library"] = "program"
    compiler: str = "gcc"  # of a header or library

    def there(self) -> bool:
        """Whether this machine has it."""
        match self.kind:
            case "header":
                return _compiles(self.compiler, self.name)
            case "library":
                return _links(self.compiler, self.name)
        return which(self.name) is not None


MAKE = Tool("make", "make", "make")
COMPILER = Tool("gcc", "gcc", "gcc")
CROSS = "aarch64-linux-gnu-"  # before the names of the tools for arm64
COMPILERS = {"um": COMPILER, "x86_64": COMPILER, "arm64": Tool(f"{CROSS}gcc", "gcc-aarch64-linux-gnu", "gcc-aarch64-linux-gnu")}
STATIC_LIBC = Tool("libc.a", "libc6-dev", "glibc-static", "library")
STATIC_LIBCS = {
    "um": STATIC_LIBC, "x86_64": STATIC_LIBC,
    "arm64": Tool("libc.a", "libc6-dev-arm64-cross", "sysroot-aarch64-fc42-glibc", "library", f"{CROSS}gcc"),
}  # fmt: skip
ASSEMBLER = Tool("as", "binutils", "binutils")
LINKER = Tool("ld", "binutils", "binutils")
BUILD = (
    MAKE,
    COMPILER,
    LINKER,
    Tool("flex", "flex", "flex"),
    Tool("bison", "bison", "bison"),
    Tool("bc", "bc", "bc"),
    Tool("tar", "tar", "tar"),
)
ARCHITECTURES: dict[str, tuple[Tool, ...]] = {
    "um": (Tool("sys/ptrace.h", "libc6-dev", "glibc-devel", "header"),),
    "x86_64": (Tool("gelf.h", "libelf-dev", "elfutils-libelf-devel", "header"),),
    "arm64": (COMPILERS["arm64"], Tool(f"{CROSS}ld", "binutils-aarch64-linux-gnu", "binutils-aarch64-linux-gnu")),
}
XZ = Tool("xz", "xz-utils", "xz")
BUSYBOX = Tool("busybox", "busybox-static", "busybox")
HACKBENCH = Tool("hackbench", "rt-tests", "realtime-tests")
SYSBENCH = Tool("sysbench", "sysbench", "sysbench")
FILE = Tool("file", "file", "file")
SQLITE = Tool("sqlite3", "sqlite3", "sqlite")
QEMU = Tool("qemu-system-x86_64", "qemu-system-x86", "qemu-system-x86")
QEMUS = {"x86_64": QEMU, "arm64": Tool("qemu-system-aarch64", "qemu-system-arm", "qemu-system-aarch64")}
READELF = Tool("readelf", "binutils", "binutils")
PERF = Tool("perf", "linux-perf", "perf")

_MORE_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not on every user's PATH


def which(name: str) -> str | None:
    """The path of a program, also where only root's PATH has it."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_MORE_PATHS))


def require(tools: Iterable[Tool], purpose: str) -> None:
    """UserError (status 4) that names everything missing, and how to get it."""
    missing = [tool for tool in tools if not tool.there()]
    if not missing:
        return
    names = ", ".join(tool.name for tool in missing)
    debian = " ".join(dict.fromkeys(tool.debian for tool in missing))
    fedora = " ".join(dict.fromkeys(tool.fedora for tool in missing))
    raise UserError(
        f"{purpose} needs {names}, which {'is' if len(missing) == 1 else 'are'} missing "
        f"(Debian, Ubuntu: apt install {debian}; Fedora: dnf install {fedora})",
        MISSING,
    )


def path_of(tool: Tool, purpose: str) -> str:
    """The path of a program. UserError when it is missing."""
    require([tool], purpose)
    found = which(tool.name)
    assert found is not None
    return found


def guests(arch: str) -> tuple[Tool, ...]:
    """What a guest is made of and what boots it: its programs of ours are linked with a static C library."""
    emulator = (QEMUS[arch],) if arch in QEMUS else ()
    own = (COMPILERS[arch], READELF) if arch == "arm64" else (BUSYBOX,)  # of arm64, busybox is a package (foreign.py)
    return (*own, STATIC_LIBCS[arch], *emulator)


def boot(arch: str) -> None:
    """UserError where this machine lacks what boots a kernel with a guest, or its busybox needs libraries."""
    from . import foreign

    purpose = f"booting a kernel for {arch}"
    require(guests(arch), purpose)
    busybox = foreign.program(BUSYBOX, arch, purpose) if arch in foreign.MACHINES else Path(path_of(BUSYBOX, purpose))
    if not is_static(busybox):
        raise UserError(f"{purpose} needs a static busybox, and {busybox} is none (Debian: apt install busybox-static)", MISSING)


def _compiles(compiler_name: str, header: str) -> bool:
    compiler = which(compiler_name)
    if compiler is None:
        return True  # the compiler is what is told to be missing
    check = subprocess.run(
        [compiler, "-E", "-x", "c", "-o", os.devnull, "-"], input=f"#include <{header}>\n".encode(), capture_output=True, check=False
    )
    return check.returncode == 0


def _links(compiler_name: str, library: str) -> bool:
    """Whether the compiler finds a library; a name that it does not find it repeats."""
    compiler = which(compiler_name)
    if compiler is None:
        return True
    found = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=False)
    return found.stdout.strip() != library


def compiler_version(arch: str = "um") -> str:
    """What the compiler says that it is, on one line: another compiler makes another kernel."""
    name = COMPILERS[arch].name
    return first_line([which(name) or name, "--version"])


def first_line(argv: Sequence[str]) -> str:
    """The first line that a program prints; `unknown` where it fails."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def is_static(program: Path) -> bool:
    """Whether an ELF program asks for no dynamic loader."""
    return b"ld-linux" not in program.read_bytes()[:8192]
