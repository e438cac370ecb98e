"""What a kernel takes over from another one's folder, told by objects and notes of Kbuild as they are left there."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from kernel_support import make_tree
from slabyard.base.errors import UserError
from slabyard.kernels import build, cache, kinds, seed, source, tools

SLUB, SLAB = kinds.KINDS["slub"], kinds.KINDS["slab"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tools.Tool, "there", lambda tool: True)
    source._ident.cache_clear()


def remember(folder: Path, copy: Path, name: str, content: bytes, text: str = "", more: str = "") -> Path:
    """An object as Kbuild notes it, compiled from a source that includes <linux/slab.h>."""
    (folder / f"{name}.o").write_bytes(content)
    (copy / f"{name}.c").write_text(text)
    remembered = folder / f".{name}.o.cmd"
    option = "    $(wildcard include/config/SLUB) \\\n"
    remembered.write_text(f"source_{name}.o := {copy}/{name}.c\n\ndeps_{name}.o := \\\n{option}  {copy}/include/linux/slab.h \\\n{more}")
    return remembered


def test_a_kernel_on_another_allocator_starts_from_what_does_not_depend_on_it(tmp_path: Path) -> None:
    found = source.find(make_tree(tmp_path / "tree"))
    build.build(build.Request(found, "um", SLUB))
    (folder,) = (path for path in cache.folder("builds").iterdir() if path.is_dir())
    copy = source.copy_of(found, SLUB)
    remember(folder, copy, "frees", b"\0kfree\0")
    remember(folder, copy, "calls", b"\0__kmalloc\0")
    remember(folder, copy, "inlines", b"\0kmalloc_caches\0")
    remember(folder, copy, "asks", b"\0kfree\0", "int least = KMALLOC_MIN_SIZE;")
    remember(folder, copy, "debugs", b"\0kfree\0", "int early = stack_depot_early_init();")
    killed = remember(folder, copy, "killed", b"\0kf")
    os.utime(killed, ns=(1, 1))
    remember(folder, copy, "inside", b"\0kfree\0", more=f"  {copy}/mm/slab.h \\\n")
    (folder / "include/config").mkdir(parents=True)
    (folder / "include/config/SLUB").touch()
    build.build(build.Request(found, "um", SLAB))
    assert (copy / "configured").read_text() == "tinyconfig\n", "made once, and copied with the rest"
    other = folder.with_name(folder.name.replace("slub", "slab"))
    dependent = {path.name.split(".")[1] for path in other.glob(".*.cmd") if "config/SLUB" in path.read_text()}
    assert dependent == {"calls", "inlines", "asks", "debugs", "inside", "killed"}
    assert (other / "frees.o").exists() and not (other / "killed.o").exists(), "a compiler had been killed at it"
    assert (other / "include/config/SLUB").exists(), "what make knows of the options that it has built with"
    assert "CONFIG_SLAB=y" in (other / ".config").read_text() and not (copy / "built").read_text().split()[3:]


def takes_caches(*places: tuple[int, int]) -> bytes:
    """An object for x86-64 that takes caches of kmalloc: where from, each by the type of a relocation and its addend."""
    names = b"\0other\0kmalloc_caches\0"
    symbols = b"".join(struct.pack("<IBBHQQ", name, 16, 0, 0, 0, 0) for name in (0, 1, 7))
    wanted = [(1, 11, 24), *((2, kind, addend) for kind, addend in places)]
    relocations = b"".join(struct.pack("<QQq", 0, number << 32 | kind, addend) for number, kind, addend in wanted)
    parts, where, table = (b"", symbols, names, relocations), 64, b""
    for kind, link, part in zip((0, 2, 3, 4), (0, 2, 0, 1), parts, strict=True):
        table += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, where, len(part), link, 0, 0, 0)
        where += len(part)
    head = bytearray(64)
    struct.pack_into("<Q", head, 0x28, where)
    struct.pack_into("<H", head, 0x3C, len(parts))
    return bytes(head) + b"".join(parts) + table


@pytest.mark.parametrize(("places", "of_slub", "of_slab"), [
    ([(11, 8 * 3)], True, False),  # 8 bytes
    ([(2, 8 * (14 + 4) - 4)], True, False),  # 16 bytes that can be reclaimed, relative to the next instruction
    ([(11, 8 * 5), (2, 8 * 7 - 4)], False, True),  # 32 bytes or fewer, 128
    ([(11, 8 * 7), (11, 8)], False, False),  # 128, 96
    ([(11, 0)], True, True),  # the table itself
    ([(2, 8 * 7 - 5)], True, True),  # relative to something else
    ([(9, 8 * 7)], True, True),  # a relocation of another type
    ([], False, False),
])  # fmt: skip
def test_slub_and_slab_differ_below_32_bytes(tmp_path: Path, places: list[tuple[int, int]], of_slub: bool, of_slab: bool) -> None:
    asks = remember(tmp_path, tmp_path, "asks", takes_caches(*places))
    for old, new, wanted in (("slub", "slab", of_slub), ("slab", "slub", of_slab)):
        assert seed.depends("x86_64", old, new)(asks, asks.read_text()) == wanted
        assert seed.depends("x86_64", old.replace("slub", "slob"), new.replace("slub", "slob"))(asks, asks.read_text()) == wanted
    for arch, old, new, wanted in (
        ("um", "slub", "slab", True), ("um", "slub", "slob", False), ("um", "slub", "slub_tiny", True), ("arm64", "slub", "slab", False),
        ("x86_64", "slub", "slob", False), ("x86_64", "slob", "slabyard", False),
    ):  # fmt: skip
        assert seed.depends(arch, old, new)(asks, asks.read_text()) == wanted, (arch, old, new)


def test_where_kmalloc_is_alike_its_callers_are_too(tmp_path: Path) -> None:
    calls, asks = (remember(tmp_path, tmp_path, name, b"__kmalloc\0", text) for name, text in (("a", ""), ("b", "kmalloc_index(1)")))
    assert seed.calls_kmalloc(calls, calls.read_text()) and not seed.takes_more(calls, calls.read_text())
    assert seed.takes_more(asks, asks.read_text())
    (tmp_path / "a.o").unlink()
    assert seed.takes_more(calls, calls.read_text())


def test_slob_has_kmalloc_as_the_others_have_it(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    found = source.find(tree)
    with source.prepared(found, SLUB, source.own_files(SLUB)) as (copy, _):
        pass
    header, slob = ((copy / path).read_text() for path in ("include/linux/slab.h", "mm/slob.c"))
    assert header == "#define KMALLOC_SHIFT_HIGH\t(PAGE_SHIFT + 1)\n" + "#if 1\n#endif\n" * 4
    assert "kmalloc_caches[NR_KMALLOC_TYPES]" in slob and "kmalloc_trace(" in slob and "kmalloc_node_trace(" in slob
    (tree / "include/linux/slab.h").write_text(header.replace("#if 1", "#ifndef CONFIG_SLOB", 3).replace("(PAGE_SHIFT + 1)", "PAGE_SHIFT"))
    source._ident.cache_clear()
    found = source.find(tree)
    told = pytest.raises(UserError, match=r"slab\.h of the kernel source is not as in .*: 3 places to change, not 4")
    with told, source.prepared(found, SLUB, source.own_files(SLUB)):
        pass
