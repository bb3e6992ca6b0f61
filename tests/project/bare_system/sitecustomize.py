"""Take away what macOS or Windows lack, from this process and from those that it starts.

Python imports this file at its start if its folder is in PYTHONPATH.
"""

import os
import sys

import numpy  # noqa: F401 (on Linux it asks os.uname() when it is imported)

for module in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[module] = None  # importing it raises ImportError
for function in ("sched_getaffinity", "sysconf", "uname", "process_cpu_count"):
    if hasattr(os, function):
        delattr(os, function)


def hide_proc(event: str, arguments: tuple[object, ...]) -> None:
    path = str(arguments[0]) if event in ("open", "os.listdir", "os.scandir") else ""
    if path.startswith(("/proc", "/sys")) and path != "/proc/self/maps":  # threadpoolctl reads this on Linux alone
        raise FileNotFoundError(f"{path} is hidden")


sys.addaudithook(hide_proc)
