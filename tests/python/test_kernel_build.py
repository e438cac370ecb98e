"""Kernels: sources, configuration, and building, with a sham source (kernel_support)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from kernel_support import make_tarball, make_tree
from slabyard.command import cli, parsers
from slabyard.base import programs
from slabyard.base.errors import UserError
from slabyard.command import kernel_verbs as commands
from slabyard.kernels import build, cache, config, edits, kinds, ports, seed, source, tools, versions

SLUB, SLOB = kinds.KINDS["slub"], kinds.KINDS["slob"]
NEEDS = Path(__file__).parents[1] / "kernel" / "needs.py"
ORIGINAL = "obj-y := filemap.o\nobj-$(CONFIG_SLOB) += slob.o\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tools.Tool, "there", lambda tool: True)
    source._ident.cache_clear()
    return tmp_path / "cache/slabyard/kernels"


def prepare(found: source.Source, kind: kinds.Kind = SLUB) -> Path:
    with source.prepared(found, kind, source.own_files(kind)) as (copy, _):
        return copy


def key(request: build.Request) -> str:
    wanted = config.fragment(request.arch, request.kind, request.debug, request.source.linux, request.small)
    return build._key(request, source.own_files(request.kind), wanted)


def copy_of(tree: Path) -> Path:
    return prepare(source.find(tree))


# ---- Kinds and configuration -------------------------------------------------------------------------------------------------


def test_a_spec_gives_kernel_parameters() -> None:
    spec = kinds.parse("slub:max_order=0,nomerge=1")
    assert (spec.kind.name, spec.parameters) == ("slub", ("slub_max_order=0", "slab_nomerge"))
    assert kinds.parse("slab:nomerge=0").parameters == ()
    assert kinds.parse("slob").parameters == ()
    assert kinds.parse("slabyard").parameters == ()
    assert kinds.parse("slabyard:slqb").parameters == ("slabyard=slqb",)
    ours = kinds.parse("slabyard:slub:cpu_partial=8,min_partial=2")
    assert (ours.kind.name, ours.parameters) == ("slabyard", ("slabyard=slub:cpu_partial=8,min_partial=2",))


def parsed(allocators: str, *words: str) -> list[str]:
    """The specs of a command line."""
    options = parsers.parser().parse_args(["kernel", "compare", *(["--allocators", allocators] if allocators else []), *words])
    return [spec.text for spec in commands._specs(options)]


def test_everything_is_every_allocator() -> None:
    found = kinds.everything()
    assert found[:3] == ["slub", "slab", "slob"] and {"slabyard:slub", "slabyard:slob:fit=best", "slabyard:sunos4"} <= set(found)
    texts = parsed("slub,slabyard:slub:cpu_partial=8,min_partial=2,slabyard:slqb,slob")
    assert texts == ["slub", "slabyard:slub:cpu_partial=8,min_partial=2", "slabyard:slqb", "slob"]


def test_the_slow_functions_of_slabyard_are_there() -> None:
    texts = b"\n".join(content for path, content in ports.slabyard().items() if path.endswith(".c")).decode()
    missing = [name for name in kinds.KINDS["slabyard"].slow if not re.search(rf"(?m)^\w.*\b{name}\(", texts)]
    assert missing == []


def test_a_kernel_on_slabyard_is_built_from_core_and_port() -> None:
    found = ports.slabyard()
    for path in ("mm/slabyard/linux/adapter.c", "mm/slabyard/linux/mm.mk", "mm/slabyard/core/policies/slqb/slqb.c"):
        assert path in found
    assert not {"mm/slabyard/linux/bench.c", "mm/slabyard/linux/fill.c"} & set(found) and "mm/slabyard/include/slabyard/slabyard.h" in found
    assert found["mm/slabyard/linux/Makefile"].endswith(b"$(SLABYARD_OUTLINED)\n")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("slqb9", "no kernel has the allocator 'slqb9'; there are slub, slab, slob, slabyard"),
        ("slub:", "no tunable behind the colon"),
        ("slabyard:slqb9", "no policy is named 'slqb9'; there are yard, slub, slab, slqb, slob, bonwick, bsd44, svr4, sunos4"),
        ("slabyard:malloc:system", "no policy is named 'malloc'"),
        ("slabyard:slub:cpu_partial= 8", "cannot have a space"),
        ("slub:fit=1", "has no tunable 'fit'; it has nomerge, max_order"),
        ("slob:fit=best", "it has none"),
        ("slub:max_order", "needs a number"),
        ("slub:max_order=x", "needs a number"),
        ("slub:max_order=²", "needs a number"),
        ("slab:nomerge=2", "nomerge cannot be 2: it can be 0 to 1"),
        ("slub:max_order=11", "max_order cannot be 11: it can be 0 to 10"),
        ("slub:min_objects=99999999999999999999", "it can be 0 to 32767"),
        ("slabyard:slub:fit=best", "fit"),
    ],
)
def test_a_wrong_spec_is_refused(spec: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        kinds.parse(spec)


@pytest.mark.parametrize("arch", config.ARCHITECTURES)
@pytest.mark.parametrize("debug", [False, True])
def test_fragments_name_every_option_once_and_alike(arch: str, debug: bool) -> None:
    lines = config.wanted(config.fragment(arch, SLUB, debug))
    names = {line: line.removeprefix("# ").replace(" is not set", "=n").partition("=")[0] for line in lines}
    assert len(set(names.values())) == len(names)
    assert "CONFIG_SLUB=y" in lines and ("CONFIG_DEBUG_LIST=y" in lines) is debug


def test_what_a_source_does_not_grant_is_told() -> None:
    config.check("CONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_A=y\n")
    with pytest.raises(UserError, match="refuses CONFIG_A=y, # CONFIG_B is not set"):
        config.check("CONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_B=y\n")


# ---- Sources -----------------------------------------------------------------------------------------------------------------


def test_a_tree_and_a_tarball_become_changed_copies(tmp_path: Path) -> None:
    tarball = make_tarball(tmp_path)
    tree = tmp_path / "linux-6.1.7"
    copies = [copy_of(tarball), copy_of(tree)]
    assert copies[0] != copies[1]
    for copy in copies:
        assert "have_xstate_support = 0;" in (copy / edits.FLOATING_POINT.path).read_text()
        assert "int have_xstate_support;" in (copy / edits.FLOATING_POINT.path).read_text()
        assert (copy / "mm/Makefile").read_text() == ORIGINAL + edits.MEASURING.text + edits.OUTLINED.text
        assert 'early_param("slabyard_timer"' in (copy / edits.KNOWN_TIMER.path).read_text()
        assert all(f"slabyard.{name}".encode() in (copy / place).read_bytes() for name, place in ports.MEASURING.items())
    assert "have_xstate_support = 1;" in (tree / edits.FLOATING_POINT.path).read_text()


def test_changes_are_made_to_what_the_source_was(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    changes = {"6.1": (edits.Edit("Makefile", "SUBLEVEL = 7", "SUBLEVEL = 8"),)}
    own = kinds.Kind("own", "", SLOB.config, {}, (), edits=changes)
    copy = prepare(source.find(tree), own)
    stamps = [(copy / path).stat().st_mtime_ns for path in ("Makefile", "mm/Makefile")]
    assert "SUBLEVEL = 8" in (copy / "Makefile").read_text()
    assert prepare(source.find(tree), own) == copy
    assert [(copy / path).stat().st_mtime_ns for path in ("Makefile", "mm/Makefile")] == stamps
    edits.apply(copy, edits.ALWAYS)
    assert "SUBLEVEL = 7" in (copy / "Makefile").read_text() and "slabyard_bench" in (copy / "mm/Makefile").read_text()


def test_a_changed_tree_is_another_source(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    before = source.find(tree).ident
    source._ident.cache_clear()
    assert source.find(tree).ident == before
    (tree / "Makefile").write_text((tree / "Makefile").read_text() + "\n")
    source._ident.cache_clear()
    assert source.find(tree).ident != before


def test_what_is_built_in_a_tree_is_not_copied(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / "include/config").mkdir(parents=True)
    for name in (".config", "left.o", ".left.o.cmd", "include/config/auto.conf"):
        (tree / name).write_text("")
    copy = copy_of(tree)
    assert not any((copy / name).exists() for name in (".config", "left.o", ".left.o.cmd", "include/config"))


def test_a_copy_that_is_built_from_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = source.find(make_tree(tmp_path / "tree"))
    contents = {"mm/own.c": b"first"}
    kind = kinds.Kind("own", "", SLOB.config, {}, (), files=lambda: dict(contents))
    changed = threading.Event()

    def change() -> None:
        contents["mm/own.c"] = b"second"
        prepare(found, kind)
        changed.set()

    own = source.own_files(kind)
    with source.prepared(found, kind, own) as (copy, _), source.prepared(found, kind, own):  # two builds of the same files
        thread = threading.Thread(target=change)
        thread.start()
        assert not changed.wait(0.5) and (copy / "mm/own.c").read_bytes() == b"first"
    assert changed.wait(20) and (copy / "mm/own.c").read_bytes() == b"second"
    thread.join()
    assert "waiting for the copy of the kernel source, which is in use" in capsys.readouterr().err


def test_a_copy_of_a_kind_begins_as_links_and_changes_alone(tmp_path: Path) -> None:
    found = source.find(make_tree(tmp_path / "tree"))
    plain = prepare(found)
    before = {path.relative_to(plain): path.read_bytes() for path in plain.rglob("*") if path.is_file()}
    own = kinds.Kind("own", "", SLOB.config, {}, (), files=lambda: {"mm/slob.c": b"ours"}, edits=kinds.KINDS["slabyard"].edits)
    copy = prepare(found, own)
    assert copy != plain and (copy / "mm/slob.c").read_bytes() == b"ours" and ports.OURS in (copy / "mm/Makefile").read_text()
    assert {path.relative_to(plain): path.read_bytes() for path in plain.rglob("*") if path.is_file()} == before
    assert (copy / "Makefile").samefile(plain / "Makefile"), "what is the same in both is there once"
    shutil.rmtree(plain)
    shutil.rmtree(copy)
    assert prepare(found, own) == copy and not plain.exists(), "where there is no plain copy the source is read"


def test_what_a_killed_compiler_left_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    for number, name in enumerate(("whole.o", "half.o", "gone.o")):
        record = tmp_path / f"mm/.{name}.cmd"
        record.touch()
        os.utime(record, ns=(0, 10**9))
        if name != "gone.o":
            (tmp_path / "mm" / name).touch()
            os.utime(tmp_path / "mm" / name, ns=(0, 10**9 + number))
    seed.drop_half_written(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*.o")) == ["whole.o"]


def test_no_source_tells_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"apt install linux-source-6\.1") as caught:
        source.find(None, places=[str(tmp_path / "none")])
    assert caught.value.status == 4
    with pytest.raises(UserError, match="no such source tree"):
        source.find(tmp_path / "none")
    with pytest.raises(UserError, match="is no kernel source"):
        source.find(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="no such source tree"):
        source.find(tmp_path / "pipe")


def test_a_cache_whose_name_has_a_blank_is_refused_before_anything_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    with pytest.raises(UserError, match="blank or colon; XDG_CACHE_HOME names another"):
        build.build(request(make_tree(tmp_path / "linux")))
    assert not list((tmp_path / "my cache/slabyard/kernels").glob("sources/*"))


def test_a_tarball_that_is_none_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    (tmp_path / "linux.tar").write_bytes(b"no tar" * 1000)
    found = source.find(tmp_path / "linux.tar")
    with pytest.raises(UserError, match="cannot be unpacked"), source.prepared(found, SLUB, {}):
        pass
    assert [path.suffix for path in source.copy_of(found, SLUB).parent.iterdir()] == [".lock"]


def test_another_linux_is_refused(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 8\nSUBLEVEL = 0\n")
    with pytest.raises(UserError, match=r"is Linux 6\.8, the lab's kernels are Linux 6\.1 and 6\.12"):
        source.find(tree)


# ---- Versions ----------------------------------------------------------------------------------------------------------------


def test_a_tree_tells_its_version_and_a_tarball_is_asked_for(tmp_path: Path) -> None:
    old, new = make_tree(tmp_path / "old"), make_tree(tmp_path / "new", "6.12")
    assert [source.find(tree).linux for tree in (old, new)] == ["6.1", "6.12"]
    with pytest.raises(UserError, match=r"new: is Linux 6\.12, not 6\.1; --linux 6\.12 builds it"):
        source.find(new, "6.1")
    tarball = make_tarball(tmp_path, "6.12")
    with pytest.raises(UserError, match=r"is Linux 6\.12, not 6\.1; --linux 6\.12 builds it"):
        prepare(source.find(tarball))
    assert source.tree_version(prepare(source.find(tarball, "6.12"))) == (6, 12, 7)


def test_each_version_has_its_usual_places(tmp_path: Path) -> None:
    trees = {linux: make_tree(tmp_path / f"linux-{linux}", linux) for linux in versions.VERSIONS}
    for linux, tree in trees.items():
        assert source.find(None, linux, [str(one) for one in trees.values()]).path == tree
        with pytest.raises(UserError, match=rf"no source of Linux {linux} here; get it \(Debian 12: apt install linux-source-{linux};"):
            source.find(None, linux, [])
        assert versions.VERSIONS[linux].places[0] == f"/usr/src/linux-source-{linux}.tar.xz"


def test_versions_have_allocators_of_their_own() -> None:
    own = {linux: [kind.name for kind in kinds.of(linux)] for linux in versions.VERSIONS}
    assert own == {"6.1": ["slub", "slab", "slob", "slabyard"], "6.12": ["slub", "slub_tiny", "slabyard"]}
    assert parsed("", "--linux", "6.12")[:3] == ["slub", "slub_tiny", "slabyard:yard"]
    with pytest.raises(UserError, match=r"Linux 6\.12 has no slob; there are slub, slub_tiny, slabyard; --linux 6\.1 has it"):
        parsed("slob", "--linux", "6.12")
    with pytest.raises(UserError, match=r"--linux 6\.12 has it"):
        parsed("slub_tiny")
    tiny = config.wanted(config.fragment("um", kinds.KINDS["slub_tiny"], False, "6.12"))
    debug = config.fragment("um", kinds.KINDS["slub_tiny"], True, "6.12").splitlines()
    assert "CONFIG_MEMCG=y" in debug and "# CONFIG_SLAB_BUCKETS is not set" in debug and "CONFIG_SLAB_BUCKETS=y" not in debug
    assert "CONFIG_SLUB_TINY=y" in tiny and "# CONFIG_SLUB_TINY is not set" in config.wanted(config.fragment("um", SLUB, False, "6.12"))


def test_a_version_has_the_changes_that_it_needs(tmp_path: Path) -> None:
    found = source.find(make_tree(tmp_path / "tree", "6.12"))
    stock, ours = (prepare(found, kinds.KINDS[name]) for name in ("slub", "slabyard"))
    assert (stock / "mm/Makefile").read_text().startswith("obj-y := filemap.o\nobj-y += slub.o\nobj-y += slabyard_bench.o")
    assert (ours / "mm/Makefile").read_text().startswith("obj-y := filemap.o\ninclude $(srctree)/mm/slabyard/linux/mm.mk\nobj-y +=")
    kernel = build.build(build.Request(found, "um", SLUB))
    assert kernel.about["release"] == "6.12.7"


@pytest.mark.parametrize(("content", "count"), [("nothing here\n", 0), ("have_xstate_support = 1;\nhave_xstate_support = 1;\n", 2)])
def test_an_edit_must_find_its_place_once(tmp_path: Path, content: str, count: int) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / edits.FLOATING_POINT.path).write_text(content)
    with pytest.raises(UserError, match=f"{count} places to change"):
        copy_of(tree)
    assert not [path for path in cache.folder("sources").iterdir() if path.is_dir() and path.suffix != ".part"]
    (tree / edits.FLOATING_POINT.path).unlink()
    source._ident.cache_clear()
    with pytest.raises(UserError, match="has no arch/x86/um"):
        copy_of(tree)


@pytest.mark.parametrize("packed", [False, True])
def test_a_copy_has_no_file_that_no_kernel_is_made_from(tmp_path: Path, packed: bool) -> None:
    tree = make_tree(tmp_path / "linux-6.1.7")
    left_out = {"arch/arm/mach-a/a.c", "arch/arm64/boot/a.dts", "drivers/gpu/drm/a.h", "drivers/net/ethernet/a.c", "Documentation/a/b.rst"}
    kept = {"arch/arm64/a.S", "drivers/net/loopback.c", "drivers/gpu/drm/Kconfig", "drivers/net/ethernet/Makefile", "Documentation/Kconfig",
            "drivers/usbx/a.c"}  # fmt: skip
    for path in left_out | kept:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).touch()
    given = tmp_path / "linux.tar.gz"
    with tarfile.open(given, "w:gz") as tar:
        tar.add(tree, tree.name)
    copy = prepare(source.find(given if packed else tree))
    assert {path for path in left_out | kept if (copy / path).is_file()} == kept


def test_a_kind_brings_files_of_its_own(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    contents = {"mm/own.c": b"first"}
    changes = {"6.1": (edits.Edit("Makefile", "SUBLEVEL = 7", "SUBLEVEL = 8"),)}
    kind = kinds.Kind("own", "", SLOB.config, {}, (), files=lambda: contents, edits=changes)
    found = source.find(tree)
    copy = prepare(found, kind)
    assert copy != prepare(found)
    assert (copy / "mm/own.c").read_bytes() == b"first" and "SUBLEVEL = 8" in (copy / "Makefile").read_text()
    first = key(build.Request(found, "um", kind))
    stamp = (copy / "mm/own.c").stat().st_mtime_ns
    prepare(found, kind)
    assert (copy / "mm/own.c").stat().st_mtime_ns == stamp  # make has nothing to do
    contents["mm/own.c"] = b"second"
    assert prepare(found, kind) == copy and (copy / "mm/own.c").read_bytes() == b"second"
    assert key(build.Request(found, "um", kind)) != first


def test_a_file_that_is_ours_no_more_is_removed(tmp_path: Path) -> None:
    contents = {f"{ports.OURS}/core/policies/kept.c": b"1", f"{ports.OURS}/core/policies/gone.c": b"2"}
    kind = kinds.Kind("own", "", SLOB.config, {}, (), files=lambda: dict(contents))
    found = source.find(make_tree(tmp_path / "tree"))
    policies = prepare(found, kind) / ports.OURS / "core/policies"
    stamp = (policies / "kept.c").stat().st_mtime_ns
    del contents[f"{ports.OURS}/core/policies/gone.c"]
    (policies / ".kept.c.part").write_bytes(b"of an interruption")
    prepare(found, kind)
    assert [path.name for path in policies.iterdir()] == ["kept.c"] and (policies / "kept.c").stat().st_mtime_ns == stamp


# ---- Building ----------------------------------------------------------------------------------------------------------------


def request(tree: Path) -> build.Request:
    return build.Request(source.find(tree), "um", SLUB)


def built_objects(tree: Path) -> list[str]:
    log = copy_of(tree) / "built"
    return log.read_text().split() if log.exists() else []


def test_a_kernel_is_built_once(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    kernel = build.build(request(tree))
    assert kernel.image.read_text().startswith("#!/bin/sh") and kernel.about["release"] == "6.1.7"
    assert sorted(built_objects(tree)) == ["one", "three", "two"]
    assert "CONFIG_HOSTFS=y" in (kernel.folder / "config").read_text()
    assert (copy_of(tree) / "flags").read_text() == f"{build.FLAGS['um']} {build.QUICKLY}\n"
    assert build.build(request(tree)) == kernel and len(built_objects(tree)) == 3
    assert build.built() == [kernel]


def test_debug_and_outlined_kernels_are_others(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    found = source.find(tree)
    flags = ((False, False), (True, False), (False, True))
    keys = {key(build.Request(found, arch, SLUB, *these)) for arch in config.ARCHITECTURES for these in flags}
    keys |= {key(build.Request(found, arch, SLUB, small=True)) for arch in config.SMALL}
    assert len(keys) == 3 * len(config.ARCHITECTURES) + len(config.SMALL)


def test_a_small_kernel_has_what_allocators_are_watched_by() -> None:
    for arch in config.SMALL:
        plain, small = (set(config.fragment(arch, SLUB, False, small=there).splitlines()) for there in (False, True))
        assert "# CONFIG_INET is not set" in small - plain and "CONFIG_INET=y" in plain - small
        kept = ("SMP", "NUMA", "EXT4_FS", "COMPACTION", "TRANSPARENT_HUGEPAGE", "ENABLE_DEFAULT_TRACERS", "SLUB_DEBUG")
        assert {f"CONFIG_{name}=y" for name in kept if f"CONFIG_{name}=y" in plain} <= small
        assert ("CONFIG_UNIX=y" in small) is (arch == "x86_64"), "hackbench has sockets, and is of x86-64 alone"


def test_an_outlined_kernel_starts_from_the_plain_one(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    build.build(request(tree))
    (plain,) = (path for path in cache.folder("builds").iterdir() if path.is_dir())
    (plain / "tools").mkdir()
    (plain / "tools/.objtool.o.cmd").write_text(f"cmd_a := gcc -o {plain}/tools/objtool.o")
    kernel = build.build(build.Request(source.find(tree), "um", SLUB, outlined=True))
    assert kernel.about["outlined"] and len(built_objects(tree)) == 3
    copy = plain.with_name(f"{plain.name}-outlined")
    assert (copy / "tools/.objtool.o.cmd").read_text() == f"cmd_a := gcc -o {copy}/tools/objtool.o"


def test_of_two_kinds_with_one_configuration_the_second_starts_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = source.find(make_tree(tmp_path / "tree"))
    own = kinds.Kind("own", "", kinds.KINDS["slob"].config, {}, (), files=lambda: {"mm/slob.c": b"ours"})
    monkeypatch.setitem(kinds.KINDS, "own", own)
    first = build.Request(found, "um", kinds.KINDS["slob"])
    build.build(first)
    (folder,) = (path for path in cache.folder("builds").iterdir() if path.is_dir())
    (folder / "mm").mkdir()
    for name in ("slob", "filemap"):
        (folder / f"mm/{name}.o").touch()
        copy = source.copy_of(found, first.kind)
        (folder / f"mm/.{name}.o.cmd").write_text(f"cmd_a := gcc -I{copy}/include -o mm/{name}.o {copy}/mm/{name}.c")
    build.build(build.Request(found, "um", own))
    mine, copy = folder.with_name(folder.name.replace("slob", "own")), source.copy_of(found, own)
    assert not (mine / "mm/slob.o").exists() and (mine / "mm/filemap.o").exists()
    assert (mine / "mm/.filemap.o.cmd").read_text() == f"cmd_a := gcc -I{copy}/include -o mm/filemap.o {copy}/mm/filemap.c"
    assert len(built_objects(tmp_path / "tree")) == 3, "nothing is compiled again that is the same in both"


def test_a_kernel_is_built_from_the_files_of_its_key(tmp_path: Path) -> None:
    contents = iter([b"first", *[b"changed meanwhile"] * 9])
    kind = kinds.Kind("own", "", SLOB.config, {}, (), files=lambda: {"mm/own.c": next(contents)})
    wanted = build.Request(source.find(make_tree(tmp_path / "tree")), "um", kind)
    kernel = build.build(wanted)
    own = {**ports.common(), "mm/own.c": b"first"}
    assert kernel.key == build._key(wanted, own, config.fragment("um", kind, False))
    assert (source.copy_of(wanted.source, kind) / "mm/own.c").read_bytes() == b"first"


def test_a_copy_that_finds_no_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree(tmp_path / "tree")
    build.build(request(tree))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cp").write_text("#!/bin/sh\nmkdir $4; echo 'cp: No space left on device' >&2; exit 1\n")
    (tmp_path / "bin/cp").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(UserError, match="cannot be copied: cp: No space left on device; XDG_CACHE_HOME names another"):
        build.build(build.Request(source.find(tree), "um", SLUB, outlined=True))
    assert not list(cache.folder("builds").glob("*.part"))


def test_a_source_that_finds_no_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tarball = make_tarball(tmp_path)
    (tmp_path / "bin").mkdir()
    told = "tar: x: Wrote only 2 of 3 bytes\ntar: x: Cannot write: No space left on device"
    (tmp_path / "bin/tar").write_text(f"#!/bin/sh\necho '{told}' >&2; exit 2\n")
    (tmp_path / "bin/tar").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(UserError, match="Cannot write: No space left on device; XDG_CACHE_HOME names another"):
        build.build(request(tarball))


def test_a_kernel_that_was_half_removed_is_built_again(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    kernel = build.build(request(tree))
    (kernel.folder / "kernel.json").unlink()
    assert build.built() == []
    assert build.build(request(tree)).image.exists() and len(build.built()) == 1


def test_clean_removes_what_interruptions_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = build.build(request(make_tree(tmp_path / "tree")))
    copy = next(path for path in cache.folder("sources").iterdir() if path.is_dir())
    for left in (copy.with_name("half.part"), copy.with_name(f"{copy.name}.part"), cache.folder("builds") / "half.part"):
        left.mkdir()
        (left / "file").touch()
    kernels = cache.folder("kernels")
    (kernels / "half.part").mkdir()

    def interrupted(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(cache.shutil, "rmtree", interrupted)
        cache.remove(kernel.folder)
    assert build.built() == [] and not kernel.folder.exists()  # what is left has another name
    kernel.folder.with_name(f"{kernel.key}.part").rename(kernel.folder)
    assert cli.main(["kernel", "clean"]) == 0
    assert {path.suffix for part in ("builds", "sources") for path in cache.folder(part).iterdir()} == {".lock"}
    assert build.built() == [kernel]
    assert cli.main(["kernel", "clean", "--all"]) == 0
    assert {path.suffix for path in kernels.iterdir()} == {".lock"}


def test_a_failed_build_says_why_and_goes_on_later(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    copy = copy_of(tree)
    (copy / "fail").touch()
    with pytest.raises(UserError, match=r"Linux 6.1 on slub for um failed: mm/slub.c:7: error: no such thing; all of it: .*\.log"):
        build.build(request(tree))
    assert build.built() == []
    (copy / "fail").unlink()
    build.build(request(tree))
    assert len(built_objects(tree)) == 3  # what was compiled before the failure is not compiled again


def test_a_source_without_an_option_is_refused(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    (copy_of(tree) / "refuse").touch()
    with pytest.raises(UserError, match="refuses CONFIG_HOSTFS=y"):
        build.build(request(tree))


SCRIPT = """
import sys
from pathlib import Path
from slabyard.command import cli
from slabyard.kernels import tools
tools.Tool.there = lambda tool: True
sys.exit(cli.main(["kernel", "build", "--allocator", "slub", "--source", sys.argv[1]]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    tree = make_tree(tmp_path / "tree")
    copy = copy_of(tree)
    (copy / "slow").touch()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tree)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (copy / "built").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(timeout=20) == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    lock = next(cache.folder("builds").glob("*.lock"))
    with lock.open() as file:
        if number == signal.SIGKILL:  # nobody could end make, and its lock keeps others away from the folder
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end_makes(copy)
            fcntl.flock(file, fcntl.LOCK_EX)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not makes(copy)
    (copy / "slow").unlink()
    assert build.build(request(tree)).image.exists()


def makes(copy: Path) -> list[int]:
    """The processes of a build in a copy."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == copy:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end_makes(copy: Path) -> None:
    while pids := makes(copy):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def test_two_invocations_build_once(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    argv = [sys.executable, "-c", SCRIPT, str(tree)]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=60)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0] and len(paths) == 1
    assert sorted(built_objects(tree)) == ["one", "three", "two"]


def test_missing_tools_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.Tool, "there", lambda tool: tool.name not in ("flex", "gelf.h"))
    told = r"needs flex, gelf\.h, which are missing \(Debian, Ubuntu: apt install flex libelf-dev; Fedora"
    with pytest.raises(UserError, match=told) as caught:
        tools.require((*tools.BUILD, *tools.ARCHITECTURES["x86_64"]), "building a kernel for x86_64")
    assert caught.value.status == 4


def needs(tmp_path: Path, present: tuple[str, ...], *words: str, arches: str = "um,x86_64") -> subprocess.CompletedProcess[str]:
    """What the kernel tests say on a machine that has only these programs."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in present:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(shutil.which(name) or "/bin/true")
    code = "import runpy; from slabyard.kernels import tools; tools._MORE_PATHS = (); "
    code += f"runpy.run_path({str(NEEDS)!r}, run_name='__main__')"
    environment = {**os.environ, "PATH": str(folder), "SLABYARD_KERNEL_ARCHES": arches}
    return subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=False)


def test_the_kernel_tests_tell_what_is_missing_before_they_build(tmp_path: Path) -> None:
    there = ("make", "ld", "flex", "bison", "bc", "tar", "xz", "busybox", "hackbench", "file")
    done = needs(tmp_path, there)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.startswith("slabyard: make test-kernel needs gcc, qemu-system-x86_64, sysbench, perf, which are missing (Debian")
    assert done.stderr.count("\n") == 1 and "apt install gcc qemu-system-x86 sysbench linux-perf;" in done.stderr
    assert "needs gcc, sysbench, perf, which" in needs(tmp_path, there, arches="um").stderr
    assert "make test-kernel-smoke needs gcc, which is missing" in needs(tmp_path, there, "smoke").stderr


def test_a_static_library_is_looked_for() -> None:
    assert tools._links("gcc", "libgcc.a") and not tools._links("gcc", "libnone-of-that-name.a")


@pytest.mark.parametrize("held", [False, True])
def test_a_thread_that_is_not_wanted_ends(held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after Ctrl-C in a study: it waits no more for tar or for another slabyard's lock, and begins nothing else."""
    found = source.find(make_tarball(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tar").write_text(f"#!/bin/sh\necho >>{tmp_path}/begun; exec sleep 30\n")
    (tmp_path / "bin/tar").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    lock = os.open(f"{source.copy_of(found, SLUB)}.lock", os.O_RDWR | os.O_CREAT)
    if held:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Thread(target=lambda: (time.sleep(30), os.close(lock)), daemon=True).start()
    heard: list[str] = []
    monkeypatch.setattr(cache, "note", heard.append)

    def work() -> None:
        for _ in range(3):
            with contextlib.suppress(UserError):
                prepare(found)

    with pytest.raises(ZeroDivisionError), programs.side_by_side(1) as pool:
        working = pool.submit(work)
        while not (heard if held else (tmp_path / "begun").exists() or working.done()):
            time.sleep(0.01)
        raise ZeroDivisionError
    assert isinstance(working.exception(), KeyboardInterrupt)
    assert heard == ["waiting for the copy of the kernel source, which is in use"] * held
