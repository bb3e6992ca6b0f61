"""How long a command takes to answer Ctrl-C, in CPU seconds: a real SIGINT, once the command has used so many of them.

python tests/faults/press_commands.py [NAME] [SECONDS]...     one command or all, pressed after each of the SECONDS

CPU seconds and not the clock: on a machine that others use too, the clock goes on while the command waits for a core.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Unrelated points or noisy copies, so that nothing ends early. `A` and `B` are files of the given shapes.
COMMANDS = {
    "match-100": ("match A B", (100, 32), (100, 24)),
    "match-300": ("match A B", (300, 32), (300, 24)),
    "match-2000": ("match A B", (2000, 32), (2000, 24)),
    "match-assess-60": ("match A B --assess -t 5", (60, 32), (60, 24)),
    "assess-200": ("assess A B -t 20", (200, 32), (200, 24)),
    "classify-20": ("classify A B", (20_000, 64), (20, 24)),
    "classify-100": ("classify A B", (20_000, 64), (100, 24)),
    "align-2000": ("align A B", (2000, 32), (2500, 24)),
    "align-20000": ("align A B", (20_000, 64), (20_000, 48)),
}
MOMENTS = (1.5, 4.0, 10.0)
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Answer:
    """What came of a press: the exit code, and the CPU seconds and seconds from the signal to the end."""

    code: int
    cpu: float | None
    waited: float | None
    output: str


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process so far, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def press(arguments: list[str], seconds: float) -> Answer:
    """Run a command, and interrupt it when it has used so many CPU seconds."""
    command = [sys.executable, "-m", "blindmatch", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        used = pressed = None
        while process.poll() is None:
            now = _cpu_of(process.pid)
            if used is None and now >= seconds:
                used, pressed = now, time.perf_counter()
                process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        ended = time.perf_counter()
        output.seek(0)
        text = output.read().decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if used is None or pressed is None:
        return Answer(process.returncode, None, None, text)
    return Answer(process.returncode, total - used, ended - pressed, text)


def arguments_of(name: str, folder: Path) -> list[str]:
    """The words of a command, with its files written."""
    words, *shapes = COMMANDS[name]
    files = {letter: folder / f"{name}-{letter}.npy" for letter in "AB"}
    for seed, (file, shape) in enumerate(zip(files.values(), shapes, strict=True)):
        np.save(file, np.random.default_rng(seed).standard_normal(shape))
    return [str(files.get(word, word)) for word in words.split()]


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored, and the commands with it
    names = arguments[:1] or list(COMMANDS)
    moments = [float(word) for word in arguments[1:]] or MOMENTS
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for moment in moments:
                answer = press(arguments_of(name, Path(folder)), moment)
                took = "done before" if answer.cpu is None else f"{answer.cpu:.2f} | {answer.waited:.2f}"
                last = (answer.output.strip().splitlines() or [""])[-1][:70]
                sys.stdout.write(f"| `{name}` | {moment:g} | {answer.code} | {took} | {last}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
