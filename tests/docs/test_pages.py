"""Every code block of the documentation and of the README is run."""

import shlex
import sys
from pathlib import Path

import pytest
import typer

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.cli.options import EXIT_CODES

sys.path.insert(0, str(Path(__file__).parent))
from blocks import PROSE, Block, Reader, blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BY_NAME = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@BY_NAME
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    reader, found = Reader(), list(blocks(page))
    for block in found:
        reader.run(block)
    assert reader.ran == sum(block.language not in PROSE and block.not_run is None for block in found)


@BY_NAME
def test_every_block_says_what_it_is(page: Path) -> None:
    marked = {"demo command", "demo output", "test command"}  # of the README, which have tests of their own
    text = page.read_text(encoding="utf-8").splitlines()
    unnamed = [str(block) for block in blocks(page) if not block.language and text[block.line - 2][5:-4] not in marked]
    assert unnamed == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    skipped = [block for page in PAGES for block in blocks(page) if block.not_run is not None]
    assert len(skipped) <= 12
    assert all(len(block.not_run) > 10 for block in skipped)


def test_the_runner_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(language: str, code: str) -> None:
        Reader().run(Block(Path("page.md"), 1, language, code, None))

    run("python", ">>> 1 + 1\n2\n")
    with pytest.raises(AssertionError, match="Expected"):
        run("python", ">>> 1 + 1\n3\n")
    with pytest.raises(NameError):
        run("python", "undefined\n")
    with pytest.raises(AssertionError, match="exit code 2"):
        run("sh", "blindmatch solve nothing.dat\n")
    with pytest.raises(AssertionError, match="cannot run"):
        run("sh", "rm -rf something\n")
    with pytest.raises(AssertionError, match="expected"):
        run("console", "$ blindmatch --version\nblindmatch 999\n")
    with pytest.raises(KeyError):
        run("fortran", "end\n")


def test_commands_that_are_not_run_parse() -> None:
    root = typer.main.get_command(app)
    skipped = [block for page in PAGES for block in blocks(page) if block.not_run is not None]
    commands = [line for block in skipped for line in block.code.splitlines() if line.startswith("blindmatch ")]
    assert commands
    for line in commands:
        command, words = root, shlex.split(line)[1:]
        while hasattr(command, "get_command"):
            command, words = command.get_command(None, words[0]), words[1:]
        command.make_context("blindmatch", words)  # raises on what the command does not know


def test_the_reference_names_everything_public() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    documented = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert set(bm.__all__) - {"SOLVERS"} <= documented
    assert {solver.__name__ for solver in bm.SOLVERS.values()} <= documented


def test_the_page_on_the_command_line_names_every_command_and_exit_code() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name in typer.main.get_command(app).list_commands(None):
        assert f"| `{name}" in page
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning.partition(' (')[0]}" in page
