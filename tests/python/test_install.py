"""`make install-command`, as packagers call it, and completion of the command's lines in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slabyard.command import completion
from test_cli import complaint, slabyard

ROOT = Path(__file__).parents[2]
# What bash itself has for a TAB at the end of the line $2, as argcomplete's function leaves it.
BASH = 'source "$1"; COMP_LINE=$2; COMP_POINT=${#2}; COMP_TYPE=9; _python_argcomplete slabyard; printf "%s\\n" "${COMPREPLY[@]}"'


def completed(line: str) -> list[str]:
    code = slabyard("completion", "bash").stdout
    function = f'slabyard() {{ "{sys.executable}" -m slabyard "$@"; }}; {BASH}'
    done = subprocess.run(["bash", "-c", function, "bash", "/dev/stdin", line], input=code, capture_output=True, text=True, check=False)
    assert not done.stderr
    return [word.strip() for word in done.stdout.splitlines() if word]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("slabyard re", {"record", "replay"}),
        ("slabyard kernel co", {"compare"}),
        ("slabyard compare t.parquet --all", {"--allocators", "--allow-failures"}),
        ("slabyard compare t.parquet --format ", {"text", "json", "csv", "md"}),
        ("slabyard replay t.parquet --allocator sl", {"slub", "slab", "slob", "slqb"}),
        ("slabyard compare --allocators slub,sl", {f"slub,{name}" for name in ("slub", "slab", "slob", "slqb")}),
        ("slabyard compare --allocators slob:fi", {"fit="}),  # bash begins a word after a colon and after =
        ("slabyard compare --allocators slub,slob:fit=", {"next", "first", "best"}),
        ("slabyard compare --allocators malloc:", {"system"}),
        ("slabyard compare --allocators slub:p", {"paper"}),
        ("slabyard threads --workload hot,pi", {"hot,pipe"}),
        ("slabyard kernel run --workload hack", {"hackbench"}),
        ("slabyard replay t.parquet --allocator nosuch:", set()),
    ],
)
def test_completion(line: str, wanted: set[str]) -> None:
    assert set(completed(line)) == wanted


def test_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "one.parquet").touch()
    assert completed(f"slabyard info {tmp_path}/on") == [f"{tmp_path}/one.parquet"]


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_each_shell_reads_what_is_printed(shell: str, check: str, tmp_path: Path) -> None:
    code = slabyard("completion", shell)
    assert code.returncode == 0 and "slabyard" in code.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "code").write_text(code.stdout)
    done = subprocess.run([shell, check, str(tmp_path / "code")], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr


def test_a_shell_that_is_not_known() -> None:
    assert "tcsh" in complaint(slabyard("completion", "tcsh"), 2)


def test_make_install_command(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "SLABYARD"))}
    where = ["PREFIX=/opt/slabyard", f"DESTDIR={tmp_path}/stage", f"INSTALL_BUILD={tmp_path}/build"]
    (tmp_path / "build").mkdir()
    for built in (ROOT / "build").glob("py3-none-*"):  # by `make venv`: nothing is compiled again
        (tmp_path / "build/wheel").symlink_to(built)
    argv = ["make", "-C", str(ROOT), "install-command", *where]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = tmp_path / "stage/opt/slabyard"
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["opt"]
    assert (prefix / "bin/slabyard").resolve() == prefix / "lib/slabyard/bin/slabyard"
    assert (prefix / "lib/slabyard/bin/slabyard-python").read_text().startswith("#!/opt/slabyard/lib/slabyard/bin/python")
    listed = subprocess.run([prefix / "lib/slabyard/bin/python", "-m", "slabyard", "list"], capture_output=True, text=True, check=True)
    assert "slub" in listed.stdout
    files = ("bash-completion/completions/slabyard", "zsh/site-functions/_slabyard", "fish/vendor_completions.d/slabyard.fish")
    for shell, file in zip(completion.SHELLS, files, strict=True):
        assert (prefix / "share" / file).read_text() == slabyard("completion", shell).stdout
