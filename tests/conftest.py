"""Of all tests: signals do what they do from a terminal, even where a script started them in the background; output is buffered."""

import os
import signal

os.environ.pop("PYTHONUNBUFFERED", None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
