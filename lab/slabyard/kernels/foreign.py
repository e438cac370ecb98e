"""Programs for guests whose processor is not this machine's: out of Debian's packages for that processor.

A guest's programs are this machine's, with their libraries. For another processor they are taken from packages, which apt fetches, as
any user, and which nobody installs: they are unpacked into a folder of the cache that is laid out as that other machine's root,

    guests/arm64/    bin/busybox, usr/bin/sysbench, usr/lib/aarch64-linux-gnu/libaio.so.1, ...

so a program that no package has can be put there by hand. Of what a package depends on, packages of libraries are taken alone: a guest
has no use for their scripts. They are unpacked before the program, which is therefore there with all of them or not at all. Which of
the libraries a program needs is read from it, as the loader would.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import MISSING, UserError
from ..base.programs import complete, last_line
from ..base.terminal import note
from . import cache, tools
from .tools import Tool


@dataclass(frozen=True)
class Machine:
    """A processor in Debian's words: its name for packages, and that of its folders of libraries."""

    debian: str
    triplet: str


MACHINES = {"arm64": Machine("arm64", "aarch64-linux-gnu")}
_PROGRAMS = ("bin", "usr/bin", "sbin", "usr/sbin")
# A package of libraries, by its section and name.
_LIBRARY = re.compile(r"(?:.*/)?(?:old)?libs .*|\S* lib(?!python|perl)(?!\S*-(?:dev|bin|data|common)$)\S+")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]|interpreter: /(\S+)\]")
_STANZA = re.compile(r"(?m)^(Package|Section|Depends): (.*)$")


def root(arch: str) -> Path:
    """The folder that is laid out as a machine of that architecture."""
    return cache.folder("guests", arch)


def program(tool: Tool, arch: str, purpose: str) -> Path:
    """A program for that architecture. UserError where there is none, and it cannot be fetched."""
    return programs([tool], arch, purpose)[0]


def programs(wanted: Iterable[Tool], arch: str, purpose: str) -> list[Path]:
    """Programs for that architecture, fetched with their packages where they are not there yet."""
    named = list(wanted)
    missing = [tool for tool in named if find(tool.name, arch) is None]
    if missing:
        with cache.locked(root(arch), f"programs for {arch}"):
            _fetch([tool for tool in missing if find(tool.name, arch) is None], arch, purpose)
    found = {tool: find(tool.name, arch) for tool in named}
    gone = [tool.name for tool, path in found.items() if path is None]
    if gone:
        raise UserError(f"{purpose} needs {', '.join(gone)} for {arch}, which no package had; unpack it into {root(arch)}", MISSING)
    return [path for path in found.values() if path]


def find(name: str, arch: str) -> Path | None:
    """A program that is there by its name or path."""
    top = root(arch)
    places = [top / name.lstrip("/")] if "/" in name else [top / folder / name for folder in _PROGRAMS]
    return next((path for path in places if path.is_file()), None)


def libraries(given: Path, arch: str) -> list[Path]:
    """The libraries and the loader that a program asks for, and those that these ask for. UserError where one is missing."""
    top, found, wanted = root(arch), dict[str, Path](), _asked_for(given)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        triplet = MACHINES[arch].triplet
        places = [top / name, *(top / folder / name for folder in (f"lib/{triplet}", f"usr/lib/{triplet}", "lib", "usr/lib"))]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise UserError(f"{given}: its library {name} is missing; unpack the package that has it for {arch} into {top}", MISSING)
        found[name] = path
        wanted += _asked_for(path)
    return sorted(set(found.values()))


def _asked_for(path: Path) -> list[str]:
    """Names of libraries, and the path of the loader without its first slash; nothing for what is no program of a processor."""
    argv = [tools.path_of(tools.READELF, "a guest"), "-ldW", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"LC_ALL": "C"})
    return [match[1] or match[2] for match in _NEEDED.finditer(done.stdout)]


# ---- Packages --------------------------------------------------------------------------------------------------------------------


def _fetch(missing: list[Tool], arch: str, purpose: str) -> None:
    if not missing:
        return
    top, packages = root(arch), list(dict.fromkeys(tool.debian for tool in missing))
    names = ", ".join(tool.name for tool in missing)
    advice = (
        f"{purpose} needs {names} for {arch}, which apt does not have here (Debian: dpkg --add-architecture {MACHINES[arch].debian} && "
        f"apt update, and they are fetched; elsewhere: unpack Debian's {' '.join(packages)} for {arch}, and their libraries, into {top})"
    )
    if tools.which("apt-get") is None or tools.which("dpkg-deb") is None:
        raise UserError(advice, MISSING)
    everything = _with_libraries(packages, arch)
    if not set(packages) <= everything:
        raise UserError(advice, MISSING)
    note(f"fetching {' '.join(packages)} for {arch} and {len(everything) - len(packages)} packages of libraries, once")
    with tempfile.TemporaryDirectory(prefix="slabyard-packages-") as folder:
        argv = ["apt-get", "-qq", "download", *(f"{name}:{MACHINES[arch].debian}" for name in sorted(everything))]
        fetched = complete(argv, cwd=folder)
        if fetched.returncode:
            said = fetched.stderr.decode(errors="replace").splitlines()
            lines = [line for line in said if line.startswith("E:")] or ["apt-get download failed"]
            raise UserError(f"{purpose} needs {names} for {arch}, and apt cannot fetch them: {lines[0]}", MISSING)
        for package in sorted(Path(folder).glob("*.deb"), key=lambda path: path.name.partition("_")[0] in packages):
            done = complete(["dpkg-deb", "-x", str(package), str(top)])
            if done.returncode:
                told = last_line(done.stderr.decode(errors="replace"), "dpkg-deb failed")
                raise UserError(f"{package.name} cannot be unpacked: {told}{cache.advice(told)}")


def _with_libraries(packages: list[str], arch: str) -> set[str]:
    """These packages, as far as apt knows them, those of libraries that they depend on, and their own for the architecture."""
    found: set[str] = set()
    own = {*packages, *(f"{name}-{MACHINES[arch].triplet}" for name in packages)}  # as binutils has its programs in one
    level = packages
    while level:
        stanzas = _described(level, arch)
        wanted = [name for name, (section, _) in stanzas.items() if name in own or _LIBRARY.fullmatch(f"{section} {name}")]
        found |= set(wanted)
        asked = {name for one in wanted for name in stanzas[one][1]}
        level = sorted(asked - found)
        if not wanted:
            break
    return found


def _described(packages: list[str], arch: str) -> dict[str, tuple[str, list[str]]]:
    """Section and dependencies (the first of alternatives) by package, as apt knows them for that architecture."""
    argv = ["apt-cache", "show", "--no-all-versions", *(f"{name}:{MACHINES[arch].debian}" for name in packages)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found = {}
    for stanza in done.stdout.split("\n\n"):
        fields = dict(_STANZA.findall(stanza))
        if "Package" in fields:
            depends = [re.split(r"[\s:(|]", one.strip())[0] for one in fields.get("Depends", "").split(",")]
            found[fields["Package"]] = (fields.get("Section", ""), [name for name in depends if name])
    return found
