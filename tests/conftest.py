"""What all tests share: the folder of helpers on the path, and hypothesis without deadlines (cores are shared)."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["BLINDMATCH_PROGRESS"] = "0"  # no lines on stderr if this machine is slow

# Not a test: it takes functions of the operating system away from the process that imports it.
collect_ignore = ["project/bare_system/sitecustomize.py"]

# pytest's importlib mode leaves sys.path alone; the helpers in strategies.py are meant to be imported.
sys.path.insert(0, str(Path(__file__).parent))

# Shells start background jobs with SIGINT ignored, and Python keeps it so: tests of Ctrl-C need it as it usually is.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "blindmatch",
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("blindmatch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long are left to CI: BLINDMATCH_SLOW=1 runs them."""
    if os.environ.get("BLINDMATCH_SLOW"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="takes long; BLINDMATCH_SLOW=1 runs it, as CI does"))
