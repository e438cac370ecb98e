"""Debugging in programs: each kind of bug under every policy, settings, and real programs that stay silent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from preloaded import POLICIES, environment

BUGGY = """
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

__attribute__((noinline)) char *allocate_it(size_t size)
{
    char *volatile object = malloc(size);
    return object;
}

static void *lose(void *size)
{
    allocate_it((size_t)size);
    return NULL;
}

static char *volatile kept;

int main(int argc, char **argv)
{
    const char *what = argv[1];
    char *object = allocate_it(100);

    kept = object;
    if (!strcmp(what, "past"))
        object[100] = 1;
    else if (!strcmp(what, "freed")) {
        free(object);
        object[3] = 1;
    } else if (!strcmp(what, "leak")) {
        pthread_t thread;
        for (int i = 0; i < 3; i++) {
            pthread_create(&thread, NULL, lose, (void *)77);
            pthread_join(thread, NULL);
        }
    }
    return argc > 2 ? 3 : 0;
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder = tmp_path_factory.mktemp("debugging")

    def make(name: str, source: str) -> Path:
        program = folder / name
        if not program.exists():
            (folder / f"{name}.c").write_text(source, encoding="utf-8")
            subprocess.run(["cc", "-g", "-O1", "-pthread", "-o", str(program), str(folder / f"{name}.c")], check=True)
        return program

    return make


def run(program: Path | str, *arguments: str, debug: str = "all", allocator: str = "yard") -> subprocess.CompletedProcess[str]:
    variables = environment(allocator, SLABYARD_DEBUG=debug)
    return subprocess.run([str(program), *arguments], env=variables, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("allocator", POLICIES)
def test_each_kind_is_named_under_every_policy(build: Callable[[str, str], Path], allocator: str) -> None:
    program = build("buggy", BUGGY)
    for what, kind in (("past", "write past the end"), ("freed", "write after free")):
        done = run(program, what, allocator=allocator)
        assert done.returncode == -6
        assert re.match(rf"slabyard: {kind}: 0x[0-9a-f]+\n", done.stderr), done.stderr
        assert "allocate_it (buggy.c:8)" in done.stderr
    done = run(program, "leak", "x", allocator=allocator)
    assert done.returncode == 3
    assert "3 objects of 231 bytes together" in done.stderr and "lose (buggy.c" in done.stderr
    done = run(program, "right", allocator=allocator)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_is_a_line_of_json_on_request(build: Callable[[str, str], Path]) -> None:
    done = run(build("buggy", BUGGY), "past", debug="FZU,json")
    (line,) = done.stderr.splitlines()
    report = json.loads(line)
    assert report["slabyard"] == "write past the end" and report["offset"] == 100 and report["size"] == 100
    assert [one["what"] for one in report["transactions"]] == ["allocated", "called"]
    assert report["transactions"][0]["stack"][0].startswith("allocate_it")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("X", "asks for no check"),
        ("dentry", "asks for no check"),
        ("FZ,quarantine", "needs a number"),
        ("FZ,audit=many", "write a number"),
        ("F" + ",x" * 100, "longer than"),
        ("FZ;", ""),
    ],
)
def test_settings_that_make_no_sense_are_refused(text: str, told: str) -> None:
    done = run("true", debug=text)
    if told:
        assert done.returncode == 2 and told in done.stderr
        assert done.stderr.startswith("slabyard: SLABYARD_DEBUG=") and done.stderr.count("\n") == 1
    else:
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("debug", ["FZPUC", "FG", "G,low", "FZPUC,firewall=4096", "quarantine=64K,ZP"])
def test_real_programs_stay_silent(debug: str) -> None:
    script = "import json, threading\nt = [threading.Thread(target=lambda: json.dumps(list(range(9999)))) for _ in range(4)]\n"
    script += "[x.start() for x in t]\n[x.join() for x in t]\nprint(len(json.dumps({str(i): [i] * 5 for i in range(3000)})))"
    done = run(sys.executable, "-c", script, debug=debug)
    assert (done.returncode, done.stderr) == (0, "") and int(done.stdout) > 10000
    done = run("sh", "-c", "ls -la / | sort | wc -l; echo $(date)", debug=debug)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("code", "told"), [("delete (int *)malloc(4)", "malloc, and is freed as by new"), ("free(new int)", "new, and is freed as by malloc")]
)
def test_malloc_and_new_may_be_mixed_on_request(tmp_path: Path, code: str, told: str) -> None:
    """A library may be linked with its own operator new, which calls malloc, while the program's delete is ours."""
    (tmp_path / "mixed.cc").write_text(f"#include <cstdlib>\nint main() {{ {code}; }}\n")
    subprocess.run(["c++", "-O0", "-o", "mixed", "mixed.cc"], cwd=tmp_path, check=True)
    done = run(tmp_path / "mixed", debug="F")
    assert (
        done.returncode == -6 and done.stderr.startswith("slabyard: wrong cache: 0x") and told in done.stderr and "add mixed" in done.stderr
    )
    done = run(tmp_path / "mixed", debug="all,mixed")
    assert (done.returncode, done.stderr) == (0, "")


MAPPED = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *volatile held;

int main(int argc, char **argv)
{
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    void **shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void **memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("m", 0), 0);

    held = malloc(20);
    if (!strcmp(argv[1], "shared"))
        shared[3] = malloc(100);
    else if (!strcmp(argv[1], "beyond")) {
        ftruncate(file, 10);
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    } else {
        for (int i = 3; i < 100; i++)
            close(i);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, 3 });
    }
    return memory == MAP_FAILED;
}
"""


def test_what_is_mapped_is_searched_for_pointers_as_far_as_it_can_be(build: Callable[[str, str], Path], tmp_path: Path) -> None:
    """A pointer in shared memory holds an object; pages behind the end of a file are not touched; without /proc nothing is told."""
    program = build("mapped", MAPPED)
    for what in ("shared", "beyond"):
        done = run(program, what, str(tmp_path / "file"), debug="L")
        assert (done.returncode, done.stderr) == (0, ""), what
    done = run(program, "closed", str(tmp_path / "file"), debug="L")
    assert (done.returncode, done.stderr) == (0, "slabyard: leaks are not looked for: /proc/self/maps cannot be read\n")


NO_LEAK = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ready;

__attribute__((noinline)) static void wipe(void)
{
    volatile char below[8192];

    for (size_t i = 0; i < sizeof(below); i++)
        below[i] = 0;
}

/* Only the thread's registers have the object. */
static void *hold(void *nothing)
{
    register void *object = malloc(77);

    wipe();
    ready = 1;
    for (;;)
        __asm__ volatile("" : "+r"(object));
    return nothing;
}

static void *leave(void *nothing)
{
    sleep(1);
    puts("the buffer of this stream is no leak");
    exit(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int status;

    if (!strcmp(argv[1], "left")) {
        pthread_create(&thread, NULL, leave, NULL);
        pthread_exit(NULL);
    }
    pthread_create(&thread, NULL, hold, NULL);
    while (!ready)
        usleep(1000);
    if (!fork()) {
        if (argc > 2)
            *(void *volatile *)&argv[2] = malloc(55), argv[2] = NULL;
        exit(7);
    }
    wait(&status);
    return WEXITSTATUS(status);
}
"""


def test_no_leak_is_told_of_what_another_thread_had(build: Callable[[str, str], Path]) -> None:
    """After a fork, which leaves its registers behind; after the end of the main thread, when the process's list of mappings is empty."""
    program = build("no_leak", NO_LEAK)
    assert (run(program, "left", debug="L").stderr, run(program, "left", debug="L").returncode) == ("", 0)
    done = run(program, "forked", debug="L")
    assert (done.returncode, done.stderr) == (7, "")
    done = run(program, "forked", "lose", debug="L")
    assert done.returncode == 7 and done.stderr.count("slabyard: leak: 0x") == 1 and "size=55" in done.stderr, done.stderr


def test_a_fault_in_a_guarded_object_names_it(build: Callable[[str, str], Path]) -> None:
    source = BUGGY.replace("object[100] = 1;", "object[200] = 1;")
    done = run(build("guarded", source), "past", debug="GU")
    assert done.returncode == -6 and done.stderr.startswith("slabyard: write past the end: 0x") and "allocate_it" in done.stderr
    done = run(build("guarded", source), "freed", debug="GU")
    assert done.returncode == -6 and done.stderr.startswith("slabyard: write after free: 0x")


HANDLED = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static char *volatile object;

__attribute__((noinline)) void allocate_it(int signal)
{
    object = malloc((size_t)signal + 100);
    __asm__ volatile("");
}

__attribute__((noinline)) void spin(void)
{
    alarm(1);
    while (!object)
        ;
    __asm__ volatile("");
}

/* Its first instruction is the fault. */
__attribute__((noinline)) void touch(char *at)
{
    *at = 1;
}

int main(void)
{
    signal(SIGALRM, allocate_it);
    spin();
    touch(object + 300);
    return 0;
}
"""


def test_stacks_lead_through_signal_handlers(build: Callable[[str, str], Path]) -> None:
    """To the function that the signal has interrupted, and nothing else between."""
    done = run(build("handled", HANDLED), debug="GU")
    assert done.returncode == -6, done.stderr
    stacks: list[list[str]] = []
    for line in done.stderr.splitlines():
        if " by thread=" in line:
            stacks.append([])
        elif stacks and line.startswith("    "):
            stacks[-1].append(line.split()[0])
    assert [stack[: stack.index("main") + 1] for stack in stacks] == [["allocate_it", "spin", "main"], ["touch", "main"]]
