"""Counting a kernel's instructions: QEMU's plugin with a guest of one sector, and what the lab makes of its counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slabyard.base.errors import UserError
from slabyard.kernels import cost, flame, kinds, tools

GUEST = Path(__file__).parents[1] / "kernel" / "counted_guest.S"
BASE, TURNS = 0xFFFFFFFF80000000, 10
SLUB = kinds.KINDS["slub"]
_SLOW = ("serve", "kmem_cache_alloc", "___slab_alloc")
STACKS = {
    ("serve",): 6, ("serve", "_raw_spin_lock"): 2, ("serve", "kfree_later"): 1, ("serve", "kfree"): 5,
    _SLOW[:2]: 4, (*_SLOW[:2], "asm_exc_test"): 2, _SLOW: 3, (*_SLOW, "kfree"): 5,
    (*_SLOW, "__alloc_pages"): 3, (*_SLOW, "__alloc_pages", "_raw_spin_lock"): 2,
}  # fmt: skip
needs_qemu = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("qemu-system-x86_64", "gcc", "ld", "objcopy", "nm")), reason="needs QEMU, gcc and binutils"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*argv: str | Path) -> str:
    return subprocess.run([*map(str, argv)], capture_output=True, text=True, check=True).stdout


def make_guest(folder: Path) -> tuple[Path, str]:
    """The sector, and a System.map of what it has at a kernel's addresses."""
    run("gcc", "-c", "-o", folder / "guest.o", GUEST)
    run("ld", "-Ttext=0x7c00", "-o", folder / "guest.elf", folder / "guest.o")
    run("objcopy", "-O", "binary", "-j", ".text", folder / "guest.elf", folder / "guest.img")
    symbols = [line.split() for line in run("nm", folder / "guest.elf").splitlines()]
    lines = [f"{BASE + int(address, 16):x} {of} {name}" for address, of, name in symbols if of == "T" and name not in ("_start", "end")]
    end = next(int(address, 16) for address, _, name in symbols if name == "end")
    return folder / "guest.img", "\n".join([*sorted(lines), f"{BASE + end:x} D _end"])


def count(folder: Path, image: Path, kernel_map: str, turn: int = 0) -> dict[str, object]:
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-m", "16M", "-nodefaults"]
    argv += ["-display", "none", "-device", "isa-debug-exit,iobase=0xf4"]
    argv += ["-drive", f"file={image},format=raw", *cost.options(folder, kernel_map, SLUB, 1, turn)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode & 1 and done.stderr == "", done.stderr
    return cost.group((folder / "counts").read_text(), cost.Symbols.of(kernel_map, SLUB).names)


@needs_qemu
def test_every_instruction_of_a_guest_counts_for_its_part(tmp_path: Path) -> None:
    image, kernel_map = make_guest(tmp_path)
    found = count(tmp_path, image, kernel_map)
    assert (found["allocations"], found["frees"], found["operations"]) == (TURNS, TURNS, 2 * TURNS)
    executed = {name: part["instructions"] * 2 for name, part in found["parts"].items()}
    assert executed == {"fast": 4 + 5, "slow": 3 + 5, "pages": 3, "locks": 2}
    assert found["instructions"] * 2 == 22
    assert found["kernel"]["instructions"] == (22 + 11) * TURNS, "and 11 beside the allocator, an interrupt among them"
    functions = {(one["name"], one["part"]): (one["calls"] * 2, one["instructions"] * 2) for one in found["functions"]}
    assert functions == {
        ("kmem_cache_alloc", "fast"): (1, 4),
        ("kfree", "fast"): (1, 5),
        ("kfree", "slow"): (1, 5),
        ("___slab_alloc", "slow"): (1, 3),
        ("__alloc_pages", "pages"): (1, 3),
        ("_raw_spin_lock", "locks"): (1, 2),
    }
    assert 0 < found["kernel"]["ll_misses"] == found["kernel"]["l1_misses"] < 16, "each line is missed once"
    assert found == count(tmp_path, image, kernel_map)


@needs_qemu
def test_every_instruction_of_a_guest_counts_for_its_stack(tmp_path: Path) -> None:
    image, kernel_map = make_guest(tmp_path)
    found = count(tmp_path, image, kernel_map, turn=50)
    profile = flame.name_nodes((tmp_path / "stacks").read_text(), cost.Symbols.of(kernel_map, SLUB).names)
    assert profile.samples == found["kernel"]["instructions"] == (22 + 11) * TURNS and profile.of_programs > TURNS
    assert {stack: executed // TURNS for stack, executed in profile.stacks.items()} == STACKS


@needs_qemu
def test_the_plugin_is_compiled_once_and_without_a_warning(tmp_path: Path) -> None:
    made = cost.plugin()
    assert made.is_file() and cost.plugin() == made
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
    run("gcc", "-std=gnu11", "-O2", "-fPIC", *strict, "-c", "-o", tmp_path / "count.o", cost._FOLDER / "count.c")


def test_functions_have_roles() -> None:
    text = "\n".join(
        (
            "0000000000000000 A per_cpu_start",
            "ffffffff81000000 T _stext",
            "ffffffff81000100 T kfree",
            "ffffffff81000100 t an_alias",
            "ffffffff81000200 t ___slab_alloc.isra.0",
            "ffffffff81000300 T __alloc_pages",
            "ffffffff81000400 T _raw_spin_lock_irqsave",
            "ffffffff81000500 T asm_sysvec_apic_timer_interrupt",
            "ffffffff81000600 T irq_entries_start",
            "ffffffff81000700 T __switch_to_asm",
            "ffffffff81000800 t rcu_free_slab",
            "ffffffff81000900 T kmem_cache_alloc_lru",
            "ffffffff81000a00 T asm_load_gs_index",
            "ffffffff81000b00 D data",
            "ffffffff81000c00 B _end",
        )
    )
    found = cost.Symbols.of(text, SLUB)
    roles = dict(zip(found.names, (line.split()[1] for line in found.text.splitlines()), strict=True))
    assert roles == {
        "[unknown]": "-", "_stext": "-", "kfree": "f", "___slab_alloc": "s", "__alloc_pages": "p", "_raw_spin_lock_irqsave": "l",
        "asm_sysvec_apic_timer_interrupt": "i", "irq_entries_start": "I", "__switch_to_asm": "w", "rcu_free_slab": "u",
        "kmem_cache_alloc_lru": "a", "asm_load_gs_index": "-", "_end": "-",
    }  # fmt: skip
    assert found.text.splitlines()[0] == "0 -" and found.text.splitlines()[2] == "ffffffff81000100 f"


def test_functions_of_ours_with_a_role_are_there() -> None:
    top = Path(__file__).parents[2]
    sources = "".join(path.read_text() for folder in ("core", "ports/linux") for path in sorted((top / folder).rglob("*.[ch]")))
    upkeep = {"tick", "give_on_this_cpu", "grace_passed"}
    assert upkeep <= cost.UPKEEP
    missing = [name for name in (*kinds.KINDS["slabyard"].slow, *upkeep) if not re.search(rf"\b{name}\(", sources)]
    assert missing == []


def test_counts_become_figures_of_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "qemu_version", lambda arch: "7.2.22")
    text = "operations 3 1\n0 0 9 100 5 1\n1 1 4 40 2 1\n1 2 0 8 1 0\n2 1 1 4 0 0\nend\n"
    found = cost.group(text, ["[unknown]", "kfree", "kfree"])
    assert (found["operations"], found["instructions"], found["l1_misses"], found["ll_misses"]) == (4, 13, 0.75, 0.25)
    assert found["parts"]["fast"] == {"instructions": 11, "l1_misses": 0.5, "ll_misses": 0.25}
    assert found["parts"]["locks"] == {"instructions": 0, "l1_misses": 0, "ll_misses": 0}
    figures = {"calls": 1.25, "instructions": 11, "l1_misses": 0.5, "ll_misses": 0.25}
    assert found["functions"][0] == {"name": "kfree", "part": "fast", **figures}
    assert found["kernel"] == {"instructions": 152, "l1_misses": 8, "ll_misses": 2}
    for cut in ("", "operations 1 1\n", text.removesuffix("end\n")):
        with pytest.raises(UserError, match="has counted nothing"):
            cost.group(cut, ["x", "y", "z"])


def test_what_counts_is_looked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: None)
    with pytest.raises(UserError, match="counting instructions needs gcc, qemu-system-x86_64, which are missing") as told:
        cost.check()
    assert told.value.status == 4
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(tools, "first_line", lambda argv: "QEMU emulator version 9.1.0")
    with pytest.raises(UserError, match=r"loads plugins of its first interface, up to 8.2; this is 9.1.0") as told:
        cost.check()
    assert told.value.status == 4
