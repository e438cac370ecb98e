"""Faults at guarded objects, in malloc and in heaps of the library: told at once, with the kind of access."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import planted
import pytest
from preloaded import POLICIES, environment

CASES = Path(__file__).resolve().parents[1] / "cases"
KINDS = {
    "write": "write past the end", "read": "read past the end", "write-freed": "write after free", "read-freed": "read after free",
}  # fmt: skip
PLACES = ("malloc", "aligned", "heap", "kmem")


@pytest.fixture(scope="module")
def program() -> Path:
    planted.build_libraries()
    made = planted.BUILD / "guarded"
    planted.compile_program(CASES / "guarded.c", made, True)
    return made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("where", PLACES)
def test_an_access_that_the_processor_refuses_is_told(program: Path, where: str, policy: str) -> None:
    checks = {"SLABYARD_DEBUG": "G", **planted.NO_NAMES}
    preloads = where in ("malloc", "aligned")
    variables = environment(policy, **checks) if preloads else {**os.environ, "SLABYARD": policy, **checks}
    for what, kind in KINDS.items():
        done = subprocess.run([program, where, what], env=variables, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -6, done.stderr
        told = re.match(r"slabyard: (.+): (0x[0-9a-f]+)\n", done.stderr)
        assert told and told[1] == kind and told[2] == done.stdout.split()[1], (what, done.stderr)


def test_a_cache_with_checks_of_its_own_is_looked_at_at_the_end(tmp_path: Path) -> None:
    """Its heap had none when it was opened."""
    planted.build_libraries()
    lines = ["#include <slabyard/kmem.h>", "int main(void)", "{"]
    lines += ['struct kmem_cache *cache = kmem_cache_create("poisoned", 80, 0, SLAB_POISON, NULL);']
    lines += ["volatile char *object = kmem_cache_alloc(cache, GFP_KERNEL);", "kmem_cache_free(cache, (void *)object);"]
    lines += ["object[5] = 1;", "return 0;", "}"]
    (tmp_path / "flags.c").write_text("\n".join(lines), encoding="utf-8")
    planted.compile_program(tmp_path / "flags.c", tmp_path / "flags", True)
    done = subprocess.run([tmp_path / "flags"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -6 and done.stderr.startswith("slabyard: write after free: 0x"), done.stderr


@pytest.mark.parametrize("call", ["kfree(outside)", "ksize(outside)", "krealloc(outside, 90, GFP_KERNEL)", "kfree((void *)-12L)"])
def test_a_foreign_address_is_told_before_the_first_allocation(tmp_path: Path, call: str) -> None:
    planted.build_libraries()
    lines = ["#include <slabyard/kmem.h>", "static long outside[20];", "static void *volatile made;", "static volatile size_t size;"]
    kept = "made = " if "krealloc" in call else "size = " if "ksize" in call else ""
    lines += ["int main(void)", "{", "(void)outside;", f"{kept}{call};"]
    lines += ["(void)made;", "(void)size;", "return 0;", "}"]
    (tmp_path / "early.c").write_text("\n".join(lines), encoding="utf-8")
    planted.compile_program(tmp_path / "early.c", tmp_path / "early", True)
    for checks in ("", "all"):
        variables = {**os.environ, "SLABYARD_DEBUG": checks}
        done = subprocess.run([tmp_path / "early"], env=variables, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -6 and done.stderr.startswith("slabyard: foreign free: 0x"), (checks, done.stderr)
