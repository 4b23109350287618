"""The command line without the seconds that a new interpreter spends on imports."""

import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess

from gbdgc.cli import main


def run_gbdgc(*arguments: object, folder: Path) -> CompletedProcess[str]:
    """Run `gbdgc` in a folder and return what a process of its own would have; a bug is raised as it is."""
    command = list(map(str, arguments))
    output, errors = (TextIOWrapper(BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before, handlers = Path.cwd(), {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    os.chdir(folder)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            main(command)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        os.chdir(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for stream in (output, errors):
        stream.flush()
    said = (stream.buffer.getvalue().decode(errors="surrogateescape") for stream in (output, errors))
    return CompletedProcess([sys.executable, "-m", "gbdgc", *command], code, *said)
