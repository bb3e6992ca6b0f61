"""What starting costs: nothing heavy is imported for a version, a help text or ``import blindmatch``."""

import signal
import subprocess
import sys
from types import ModuleType

import pytest

import blindmatch as bm

HEAVY = ("numpy", "scipy", "scipy.optimize", "sklearn", "matplotlib", "blindmatch._core")


def loaded_by(code: str) -> list[str]:
    """Which heavy modules are there after some code."""
    tell = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{tell}"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return eval(done.stderr.splitlines()[-1])


def command(*words: str) -> str:
    return (
        f"import sys; sys.argv = ['blindmatch', *{words!r}]\n"
        "from blindmatch.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )


@pytest.mark.parametrize(
    "words", [("--version",), ("--help",), ("match", "--help"), ("classify", "--help")], ids=" ".join
)
def test_version_and_help_import_nothing_heavy(words: tuple[str, ...]) -> None:
    assert loaded_by(command(*words)) == []


def test_commands_are_loaded_when_they_run() -> None:
    tell = "import sys; print([name for name in sys.modules if name.startswith('blindmatch.cli.commands.')])"
    runs = {("--version",): [], ("match", "--help"): [], ("doctor", "--json"): ["blindmatch.cli.commands.about"]}
    for words, loaded in runs.items():
        code = f"{command(*words)}\n{tell}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
        assert done.stdout.splitlines()[-1] == str(loaded), done.stderr


INTERRUPTED = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            signal.raise_signal(number)

module, number = sys.argv[1], int(sys.argv.pop(2))
sys.argv[1:] = ["match", "a.npy", "b.npy"]
sys.meta_path.insert(0, Interrupt())
from blindmatch.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number", "code"),
    [
        ("typer", signal.SIGINT, 130),
        ("blindmatch.cli.options", signal.SIGINT, 130),
        ("blindmatch.cli.commands.match", signal.SIGINT, 130),
        ("blindmatch.cli.commands.match", signal.SIGTERM, 143),
    ],
)
def test_a_signal_while_modules_are_loaded(module: str, number: int, code: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_import_is_light_and_the_test_could_fail() -> None:
    assert loaded_by("import blindmatch") == []
    assert "numpy" in loaded_by("import blindmatch; blindmatch.QAP")


def test_every_public_name_is_there() -> None:
    for name in (*bm.__all__, "__version__"):
        assert name in dir(bm)
        assert getattr(bm, name) is not None
    namespace: dict[str, object] = {}
    exec("from blindmatch import *", namespace)
    assert set(bm.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="module 'blindmatch' has no attribute 'nothing'"):
        bm.nothing  # noqa: B018
    with pytest.raises(ImportError):
        exec("from blindmatch import nothing")


def test_modules_are_there_as_attributes() -> None:
    assert isinstance(bm.problem, ModuleType)
    code = "import blindmatch as bm; bm.problem.__doc__; from blindmatch.problem.distortions import DISTORTIONS"
    assert "numpy" in loaded_by(code)


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "blindmatch", "--version"], capture_output=True, text=True, timeout=600
    )
    assert done.stdout == f"blindmatch {bm.__version__}\n", done.stderr
