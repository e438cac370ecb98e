"""Other people's programs on slabyard's malloc, under every policy: they must print what they print without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from slabyard.results import run

POLICIES = ["slub", "slob", "slab", "slqb", "bonwick", "bsd44", "svr4", "sunos4", "slub:classes=linux", "slob:fit=best"]

PYTHON = """
import collections, json, re, threading, zlib
def work(seed):
    items = [{"n": i * seed, "t": "x" * (i % 700), "l": list(range(i % 40))} for i in range(800)]
    text = json.dumps(items)
    assert json.loads(text) == items
    words = collections.Counter(re.findall(r"[0-9]+", text))
    results[seed] = (len(text), words.most_common(3), zlib.crc32(zlib.compress(text.encode())))
results = {}
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(results.items()))
"""
SQL = """
create table t(a integer primary key, b text);
create table n(i); insert into n values (0), (1); insert into n select a.i + 2 * b.i + 4 * c.i + 8 * d.i from n a, n b, n c, n d;
insert into t select null, hex(a.i * 7919) || printf('%0*d', (a.i * 64 + b.i) % 900, c.i) from n a, n b, n c;
create index tb on t(b);
select count(*), sum(length(b)), min(b), max(b) from t;
delete from t where a % 3 = 0;
select count(distinct substr(b, 1, 3)) from t;
"""
PERL = """
my %h; $h{$_ * 7919 % 5000} .= "x" x ($_ % 300) for 1 .. 20000;
my $s = 0; $s += length $h{$_} for sort keys %h; print scalar(keys %h), " $s\\n"
"""
SQLITE = f"""
import sqlite3
base = sqlite3.connect(":memory:")
for line in {SQL.strip()!r}.splitlines():
    base.executescript(line) if line.count(";") > 1 else print(base.execute(line).fetchall())
"""
C = '#include <stdio.h>\n#include <stdlib.h>\nint f(int x) { return printf("%d", x) + abs(x); }\n'
CPLUSPLUS = """
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
struct alignas(128) Wide { char bytes[300]; };
static std::map<std::string, std::vector<int>> early{{"a", {1, 2}}, {"a longer text than fits in place", {3}}};
struct Late { ~Late() { std::string s(1000, 'x'); early[s].push_back(1); if (early.size() != 3) abort(); } } late;
static char *volatile kept;
static void work(int seed, long *result) {
    std::map<int, std::string> texts;
    std::vector<std::unique_ptr<Wide>> wides;
    for (int i = 0; i < 4000; i++) {
        texts[i * seed % 997] += std::to_string(i);
        if (i % 16 == 0) wides.push_back(std::make_unique<Wide>());
        if (reinterpret_cast<uintptr_t>(wides.back().get()) % 128) abort();
    }
    *result = std::accumulate(texts.begin(), texts.end(), 0L, [](long n, auto &t) { return n + long(t.second.size()); });
}
int main() {
    long results[4];
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work, i + 1, &results[i]);
    for (auto &thread : threads) thread.join();
    volatile size_t huge = SIZE_MAX / 4;
    try { kept = new char[huge]; return 1; } catch (const std::bad_alloc &) {}
    if ((kept = new (std::nothrow) char[huge])) return 2;
    std::set_new_handler([] { std::set_new_handler(nullptr); puts("handler"); });
    try { kept = new char[huge]; return 3; } catch (const std::bad_alloc &) {}
    for (long result : results) printf("%ld ", result);
    puts("");
}
"""
PLUGIN = """
#include <stdlib.h>
#include <string.h>
static char *made;
__attribute__((constructor)) static void start(void) { made = strdup("made by the plugin"); }
__attribute__((destructor)) static void end(void) { free(made); }
char *take(void) { return realloc(strdup(made), 100000); }
"""
CPLUSPLUS_PLUGIN = """
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
static int caught, handled;
static char *volatile kept;
extern "C" char *take() {
    volatile size_t huge = SIZE_MAX / 4;
    try { kept = new char[huge]; } catch (const std::bad_alloc &) { caught++; }
    if (!(kept = new (std::nothrow) char[huge])) caught++;
    std::set_new_handler([] { std::set_new_handler(nullptr); handled++; });
    try { kept = new char[huge]; } catch (const std::bad_alloc &) { caught++; }
    return strdup(("caught " + std::to_string(caught) + ", handled " + std::to_string(handled)).c_str());
}
"""
HOST = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef MODE
#define MODE RTLD_NOW
#endif
int main(int count, char **names) {
    for (int i = 0; i < 20; i++) {
        void *plugin = dlopen(names[count - 1], MODE);
        if (!plugin) puts(dlerror());
        char *(*take)(void) = (char *(*)(void))dlsym(plugin, "take");
        char *text = take();
        puts(text);
        dlclose(plugin);
        free(text);
    }
    return 0;
}
"""


def _output(command: list[str], allocator: str | None, **options: object) -> bytes:
    variables = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    if allocator is not None:
        variables |= {"LD_PRELOAD": str(run.library()), "SLABYARD": allocator}
    done = subprocess.run(command, env=variables, capture_output=True, timeout=120, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr[-2000:]
    return bytes(done.stdout)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _built(folder: Path, name: str, source: str, *options: str) -> str:
    compiler = _tool("c++" if name.endswith(".cc") else "cc")
    (folder / name).write_text(source)
    made = folder / name.partition(".")[0]
    subprocess.run([compiler, "-O1", str(folder / name), "-o", str(made), *options], check=True, timeout=120)
    return str(made)


@pytest.fixture(scope="module", params=["python", "sqlite3", "perl", "git", "cc", "c++", "plugin", "deepbind", "c++ plugin"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command with a result that depends on nothing but its input."""
    folder = tmp_path_factory.mktemp(str(request.param).replace("+", "p").replace(" ", "-"))
    match request.param:
        case "python":
            return [sys.executable, "-c", PYTHON]
        case "sqlite3":
            return [sys.executable, "-c", SQLITE]
        case "perl":
            return [_tool("perl"), "-e", PERL]
        case "git":
            git = _tool("git")
            shutil.copytree(sysconfig.get_path("stdlib") + "/json", folder / "tree")
            subprocess.run([git, "init", "-q", str(folder)], check=True)
            subprocess.run([git, "-C", str(folder), "add", "tree"], check=True)
            return [git, "-C", str(folder), "diff", "--cached", "--stat", "--summary"]
        case "cc":
            (folder / "source.c").write_text(C)
            return [_tool("cc"), "-O2", "-S", str(folder / "source.c"), "-o", "-"]
        case "c++":
            return [_built(folder, "program.cc", CPLUSPLUS, "-std=c++17", "-pthread")]
        case "deepbind":  # the program's own search path has it, so the C library must see that the program called dlopen
            plugin = _built(folder, "plugin.c", PLUGIN, "-shared", "-fPIC")
            options = ["-D_GNU_SOURCE", "-DMODE=RTLD_NOW|RTLD_DEEPBIND", "-Wl,--enable-new-dtags,-rpath,$ORIGIN", "-ldl"]
            return [_built(folder, "host.c", HOST, *options), Path(plugin).name]
        case "c++ plugin":  # brings the C++ runtime into a C program, for itself alone
            plugin = _built(folder, "plugin.cc", CPLUSPLUS_PLUGIN, "-shared", "-fPIC")
            return [_built(folder, "host.c", HOST, "-ldl"), plugin]
        case _:
            plugin = _built(folder, "plugin.c", PLUGIN, "-shared", "-fPIC")
            return [_built(folder, "host.c", HOST, "-ldl"), plugin]


@pytest.mark.parametrize("policy", POLICIES)
def test_programs_say_the_same(program: list[str], policy: str) -> None:
    assert _output(program, policy) == _output(program, None)
