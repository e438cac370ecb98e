"""Programs of another architecture for guests: fetching them as packages, finding them, and their libraries."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from slabyard.base.errors import UserError
from slabyard.kernels import foreign, guest, tools, workloads

needs_readelf = pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
PACKAGES = {  # by name: section, dependencies
    "sysbench": ("misc", "libc6 (>= 2.34), libaio1 | libaio1t64 (>= 0.3), zlib1g:any, python3"),
    "libc6": ("libs", "libgcc-s1"),
    "libgcc-s1": ("libs", "libc6"),
    "libaio1": ("interpreters", ""),
    "zlib1g": ("contrib/libs", ""),
    "python3": ("python", "libpython3"),
}
SHOW = "".join(
    f"Package: {name}\nVersion: 1\nSection: {section}\n{f'Depends: {depends}' if depends else 'Priority: optional'}\n\n"
    for name, (section, depends) in PACKAGES.items()
)
APT_CACHE = """#!{python}
import sys
for stanza in {show!r}.split("\\n\\n"):
    if any(stanza.startswith("Package: " + word.removesuffix(":arm64") + "\\n") for word in sys.argv):
        print(stanza + "\\n")
"""
APT_GET = """#!/bin/sh
for word; do case $word in *:arm64) echo "$word" >>{folder}/asked; touch "${{word%%:*}}.deb" ;; esac; done
"""
DPKG = """#!/bin/sh
case $2 in *sysbench.deb) mkdir -p "$3/usr/bin"; echo program >"$3/usr/bin/sysbench" ;; esac
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make_apt(folder: Path, monkeypatch: pytest.MonkeyPatch, show: str = SHOW) -> None:
    """Programs that stand for Debian's, and know the packages above."""
    programs = folder / "bin"
    programs.mkdir()
    python = shutil.which("python3")
    texts = {"apt-cache": APT_CACHE.format(python=python, show=show), "apt-get": APT_GET.format(folder=folder), "dpkg-deb": DPKG}
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def test_a_program_is_fetched_with_its_libraries_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_apt(tmp_path, monkeypatch)
    found = foreign.program(tools.SYSBENCH, "arm64", "a test")
    assert found == foreign.root("arm64") / "usr/bin/sysbench" == foreign.find("sysbench", "arm64")
    asked = (tmp_path / "asked").read_text().split()
    assert sorted(asked) == [f"{name}:arm64" for name in ("libaio1", "libc6", "libgcc-s1", "sysbench", "zlib1g")]
    assert foreign.program(tools.SYSBENCH, "arm64", "a test") == found and len((tmp_path / "asked").read_text().split()) == len(asked)
    job = workloads.parse("memory", "arm64")
    assert (job.foreign, job.programs) == ("arm64", [found])


def test_what_apt_does_not_know_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_apt(tmp_path, monkeypatch, show="")
    told = r"a test needs sysbench for arm64, which apt does not have here \(Debian: dpkg --add-architecture arm64 && apt update"
    with pytest.raises(UserError, match=told) as caught:
        foreign.program(tools.SYSBENCH, "arm64", "a test")
    assert caught.value.status == 4 and "\n" not in caught.value.message and str(foreign.root("arm64")) in caught.value.message
    assert not (tmp_path / "asked").exists()


def test_a_program_that_lies_there_is_taken(tmp_path: Path) -> None:
    place = foreign.root("arm64") / "usr/sbin/own"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine")
    job = workloads.parse("own -x", "arm64")
    assert (job.programs, job.command) == ([place], ["own", "-x"])
    assert workloads.parse("ls /usr", "arm64").programs == [], "busybox has it"
    with pytest.raises(UserError, match="there is no such program for arm64; unpack one"):
        workloads.parse("no-such-thing", "arm64")


@needs_readelf
def test_libraries_are_those_that_the_program_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = foreign.root("arm64")
    names = {"usr/bin/own": ["libb.so.1", "lib/ld.so"], "usr/lib/aarch64-linux-gnu/libb.so.1": ["libc.so.6"], "lib/ld.so": []}
    names["lib/aarch64-linux-gnu/libc.so.6"] = ["lib/ld.so"]
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(name.encode())
    monkeypatch.setattr(foreign, "_asked_for", lambda path: list(names[str(path.relative_to(top))]))
    found = foreign.libraries(top / "usr/bin/own", "arm64")
    assert [str(path.relative_to(top)) for path in found] == sorted(name for name in names if name != "usr/bin/own")
    monkeypatch.setattr(guest, "compiled", lambda name, arch: top / "lib/ld.so")
    monkeypatch.setattr(foreign, "program", lambda tool, arch, purpose: top / "lib/ld.so")
    archive = guest.archive(workloads.parse("own", "arm64"), {"OUT": "disk"})
    assert b"usr/lib/aarch64-linux-gnu/libb.so.1\0" in archive and b"usr/bin/own\0" in archive and str(top).encode() not in archive
    names["usr/bin/own"].append("libgone.so.1")
    with pytest.raises(UserError, match=r"its library libgone\.so\.1 is missing; unpack"):
        foreign.libraries(top / "usr/bin/own", "arm64")


@needs_readelf
def test_a_program_names_its_libraries_and_its_loader() -> None:
    asked = foreign._asked_for(Path(shutil.which("readelf") or ""))
    assert any(name.startswith("libc.so") for name in asked) and any("/ld-" in name for name in asked)
    assert foreign._asked_for(Path(__file__)) == []
