"""The allocators that are compared: found where packages put them, or built of the sources that the cargo registry has.

Each is a shared library for LD_PRELOAD, glibc's too: a program may be linked to another malloc (Debian's redis is, to jemalloc), and
preloading the C library puts its malloc first. Those from crates are compiled from the C and C++ sources in them as their authors'
own build files do it for a library to preload; the crates' Rust side is not used. Ours is one library with a choice of specs.
"""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from slabyard.base.programs import last_line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Allocator:
    """One way to serve malloc. `library` is None where it is missing; `hint` then says how to get it."""

    name: str
    library: Path | None
    version: str = ""
    hint: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.name.startswith("slabyard")


# name: (file, Debian package)
PACKAGED = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc-deb": ("libmimalloc.so.2", "libmimalloc2.0"),
}
CRATES = {"mimalloc": "libmimalloc-sys", "snmalloc": "snmalloc-sys", "rpmalloc": "rpmalloc-sys"}
HARDENED = {"mimalloc-secure": "libmimalloc-sys", "hardened_malloc": "hardened-malloc-sys"}  # compared where they are named


def find(work: Path, ours: Path | None, specs: list[str], wanted: Collection[str] | None = None) -> list[Allocator]:
    """Every allocator that there could be, those that are missing included. `work`: a folder for what is built, which takes minutes, so
    only of those `wanted` (None: of all)."""
    glibc = _in_folders(ctypes.util.find_library("c") or "libc.so.6")
    found = [Allocator("glibc", glibc, platform.libc_ver()[1], "this needs a system with glibc")]
    found += [_packaged(name, *of) for name, of in PACKAGED.items()]
    found += _crates(work, CRATES, wanted)
    hint = "build it: make bench-malloc does, or name it with --ours PATH"
    for spec in specs:
        library = ours if ours is not None and ours.is_file() else None
        found.append(Allocator(f"slabyard:{spec}", library, "this tree", hint, {"SLABYARD": spec}))
    return found


def hardened(work: Path) -> list[Allocator]:
    """Peers that are hardened, built as their authors say for that. They are slower on purpose."""
    return _crates(work, HARDENED)


def also(text: str) -> Allocator:
    """Another library of ours, by NAME=PATH."""
    name, _, path = text.partition("=")
    return Allocator(f"slabyard:{name}", Path(path).resolve() if Path(path).is_file() else None, path, f"{path} is no file")


def _in_folders(name: str) -> Path | None:
    """The file that the dynamic linker finds under this name."""
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    if ldconfig is None:
        return None
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        match = re.match(rf"\s+{re.escape(name)} \(([^)]*)\) => (\S+)", line)
        if match and ("x86-64" in match[1] or os.uname().machine != "x86_64"):
            return Path(match[2]).resolve()
    return None


def _packaged(name: str, file: str, package: str) -> Allocator:
    path = _in_folders(file)
    version = ""
    if path and shutil.which("dpkg-query"):
        version = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True).stdout
    return Allocator(name, path, version, f"Debian: apt install {package}")


# ---- From crates -------------------------------------------------------------------------------------------------


def _crates(work: Path, crates: dict[str, str], wanted: Collection[str] | None = None) -> list[Allocator]:
    if wanted is not None and not set(crates) & set(wanted):
        return [Allocator(name, None, "", "it was not built, as nobody asked for it") for name in crates]
    vendor = work / "crates" / "vendor"
    missing = next((tool for tool in ("cargo", "cc", "c++", "cmake") if shutil.which(tool) is None), None)
    if missing is None and not vendor.is_dir():
        missing = _fetch(vendor)
    if missing is not None:
        return [Allocator(name, None, "", f"built from the cargo registry: {missing} is missing") for name in crates]
    return [_built(name, crates[name], vendor) for name in crates]


def _fetch(vendor: Path) -> str | None:
    """Has cargo bring the sources, at the versions of crates/Cargo.toml. What went wrong, or None."""
    shutil.rmtree(vendor.parent, ignore_errors=True)
    (vendor.parent / "src").mkdir(parents=True)
    (vendor.parent / "src" / "lib.rs").touch()
    shutil.copy(HERE / "crates" / "Cargo.toml", vendor.parent)
    done = subprocess.run(["cargo", "vendor", "--quiet", "--versioned-dirs", "vendor"], cwd=vendor.parent, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    shutil.rmtree(vendor, ignore_errors=True)
    return f"a registry that cargo can reach ({last_line(done.stderr, 'cargo failed')})"


def _built(name: str, crate: str, vendor: Path) -> Allocator:
    source = next(iter(sorted(vendor.glob(f"{crate}-[0-9]*"))), None)
    library = vendor.parent / f"lib{name}.so"
    if source is None:
        return Allocator(name, None, "", f"crate {crate} is not in {vendor}; remove that folder to have it fetched again")
    version = _mimalloc_version(source) if crate == "libmimalloc-sys" else source.name.rpartition("sys-")[2]
    if not library.is_file():
        done = _BUILDERS[name](source, library)
        if done.returncode or not library.is_file():
            return Allocator(name, None, version, f"does not compile here: {last_line(done.stderr, '?')}")
    return Allocator(name, library, version)


def _run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True)


def _build_mimalloc(source: Path, library: Path, *options: str) -> subprocess.CompletedProcess[str]:
    top = source / "c_src" / "mimalloc" / "v3"
    return _run(
        "cc", "-O3", "-DNDEBUG", "-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-fPIC", "-shared",
        "-ftls-model=initial-exec", "-fno-builtin-malloc", "-fvisibility=hidden", *options, f"-I{top / 'include'}",
        top / "src" / "static.c", "-o", library, "-lpthread",
    )  # fmt: skip


def _mimalloc_version(source: Path) -> str:
    text = (source / "c_src/mimalloc/v3/include/mimalloc.h").read_text()
    number = re.search(r"MI_MALLOC_VERSION\s+(\d)(\d\d)(\d\d)", text)
    return ".".join(str(int(part)) for part in number.groups()) if number else "?"


def _build_snmalloc(source: Path, library: Path) -> subprocess.CompletedProcess[str]:
    build = library.parent / "snmalloc"
    done = _run("cmake", "-S", source / "upstream", "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DSNMALLOC_BUILD_TESTING=OFF")
    if done.returncode == 0:
        done = _run("cmake", "--build", build, "--target", "snmallocshim")
    if done.returncode == 0:
        shutil.copy(build / "libsnmallocshim.so", library)
    return done


def _build_rpmalloc(source: Path, library: Path) -> subprocess.CompletedProcess[str]:
    top = source / "rpmalloc" / "rpmalloc"
    return _run(
        "cc", "-O3", "-DNDEBUG", "-DENABLE_OVERRIDE=1", "-DENABLE_PRELOAD=1", "-D_GNU_SOURCE", "-std=c11", "-fPIC", "-shared", f"-I{top}",
        top / "rpmalloc.c", "-o", library, "-lpthread", "-ldl",
    )  # fmt: skip


def _build_mimalloc_secure(source: Path, library: Path) -> subprocess.CompletedProcess[str]:
    return _build_mimalloc(source, library, "-DMI_SECURE=4")


def _build_hardened_malloc(source: Path, library: Path) -> subprocess.CompletedProcess[str]:
    """With its default configuration. stdalign.h: compilers of C2x from before 2023 have no keyword alignas."""
    top = source / "vendor" / "hardened-malloc"
    lines = (source / "config-default.conf").read_text().splitlines()
    settings = [f"-D{line}" for line in lines if "=" in line and not line.startswith("#")]
    files = [top / f"{name}.c" for name in ("chacha", "h_malloc", "memory", "pages", "random", "util")]
    return _run(
        "cc", "-std=gnu2x", "-O3", "-DNDEBUG", "-D_GNU_SOURCE", "-include", "stdalign.h", *settings, "-fPIC", "-shared",
        "-fvisibility=hidden", "-fno-builtin", f"-I{top}",
        f"-I{top / 'include'}", f"-I{top / 'third_party'}", *files, "-o", library, "-lpthread",
    )  # fmt: skip


_BUILDERS = {
    "mimalloc": _build_mimalloc, "snmalloc": _build_snmalloc, "rpmalloc": _build_rpmalloc,
    "mimalloc-secure": _build_mimalloc_secure, "hardened_malloc": _build_hardened_malloc,
}  # fmt: skip
