"""What hardening keeps beside stopping attacks (test_attacks.py): threads hold little, and what was never handed out is not taken."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from preloaded import environment

CASES = Path(__file__).resolve().parents[1] / "cases"
HARDENED = ["yard:harden=links", "yard:harden=all", "slub:harden=all"]
THREADS = 600

# An object that will be, but was not yet: of a slab with a slot, or of one whose thread has ended.
NEVER = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SLAB 16384
#define SIZE 64

static char *volatile kept;

static void *allocate(void *nothing)
{
    kept = malloc(SIZE);
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char *never;

    if (argc > 1) {
        pthread_create(&thread, NULL, allocate, NULL);
        pthread_join(thread, NULL);
    } else
        allocate(NULL);
    never = (char *)((uintptr_t)kept / SLAB * SLAB + SLAB - SIZE);
    printf("%p\\n", never);
    fflush(stdout);
    free(never);
    for (int i = 0; i < 1000; i++)
        if (malloc(SIZE) == never)
            puts("handed out");
    return 0;
}
"""


def _built(folder: Path, source: Path) -> str:
    made = str(folder / source.stem)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-pthread", str(source), "-o", made], check=True)
    return made


def _peak(program: list[str], spec: str) -> int:
    """Most KiB that it had in memory."""
    with subprocess.Popen(program, env=environment(spec), stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


@pytest.mark.parametrize("spec", HARDENED)
def test_threads_that_end_touch_no_memory_that_they_had_not_used(spec: str, tmp_path: Path) -> None:
    program = [_built(tmp_path, CASES / "at_once.c"), str(THREADS), "20"]
    assert _peak(program, spec) < 1.5 * _peak(program, spec.split(":", maxsplit=1)[0])


@pytest.mark.parametrize("spec", HARDENED)
@pytest.mark.parametrize("ended", [False, True])
def test_an_address_that_was_never_handed_out_cannot_be_freed(spec: str, ended: bool, tmp_path: Path) -> None:
    source = tmp_path / "never.c"
    source.write_text(NEVER, encoding="utf-8")
    words = ["ended"] if ended else []
    done = subprocess.run([_built(tmp_path, source), *words], env=environment(spec), capture_output=True, text=True, check=False)
    told = re.fullmatch(r"slabyard: (foreign|double) free: (0x[0-9a-f]+)\n", done.stderr)
    assert done.returncode == -6 and told and told[2] == done.stdout.strip(), (done.stdout, done.stderr)
