"""A small process that starts the command of a recording, and nothing before it is told to.

    python -I -S launcher.py GO TELL CGROUP COMMAND [ARGUMENT...]

The recorder starts this before its first snapshot. So what the process itself costs is behind both, and what is traced is what any shell
does: start the command, wait for it. GO and TELL are descriptors of pipes. A line goes to TELL for each step: `ready`, `started PID` or
`failed ERRNO`, `ended STATUS`, negative where a signal ended the command. A byte from GO starts the command; when GO is closed, this
process ends. CGROUP is a file that takes the process's number, so that the command is born in that control group; empty: none.

Signals of the terminal go to the command, which shares our process group; this process lives on, as it has the status to tell.
Only the standard library is imported, and little of that.
"""

import os
import signal
import sys

OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # it ignores these for itself


def main() -> None:
    go, tell = int(sys.argv[1]), int(sys.argv[2])
    cgroup, command = sys.argv[3], sys.argv[4:]
    for descriptor in (go, tell):
        os.set_inheritable(descriptor, False)
    restored = [*OF_PYTHON, *(number for number in OF_THE_TERMINAL if signal.getsignal(number) != signal.SIG_IGN)]
    for number in OF_THE_TERMINAL:
        signal.signal(number, signal.SIG_IGN)

    def say(line: str) -> None:
        os.write(tell, line.encode() + b"\n")

    try:
        if cgroup:
            with open(cgroup, "w") as file:  # noqa: PTH123
                file.write(str(os.getpid()))
        say("ready")
        if not os.read(go, 1):
            return
        process = os.posix_spawnp(command[0], command, os.environ, setsigdef=restored)
        say(f"started {process}")
    except OSError as error:
        say(f"failed {error.errno}")
        return
    say(f"ended {os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}")
    os.read(go, 1)


if __name__ == "__main__":
    main()
