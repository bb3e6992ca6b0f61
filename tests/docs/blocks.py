"""Run the code blocks of a Markdown page in order, in one namespace and the present folder, as a reader would.

    ```python     run; with >>> prompts, as a doctest
    ```sh         each line that starts with 'blindmatch' is run and has to end well
    ```console    the same for lines that start with '$ blindmatch'; the lines below are what it prints, '...' for any;
                  '# exit code 2' after a command says that it fails, and then its errors are compared too
    ```text, json, toml, yaml     not code

A block may stand in an HTML comment, if readers need not see how its page prepares its files. A block that cannot be
run has a comment before it that says why: <!-- not run: needs a network -->.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from blindmatch.cli import main

FENCE = re.compile(r"^(?P<indent>[ ]*)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: (?P<why>[^\n]+?) -->\s*\Z")
PROSE = {"", "text", "json", "toml", "yaml"}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    code: str
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        reason = NOT_RUN.search(text[: found.start()])
        indent = len(found["indent"])
        code = "".join(line[indent:] for line in found["code"].splitlines(keepends=True))
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"].strip(), code, reason and reason["why"])


@dataclass
class Reader:
    """Runs blocks one after the other."""

    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    ran: int = 0

    def run(self, block: Block) -> None:
        if block.not_run is not None or block.language in PROSE:
            return
        {"python": self.python, "sh": self.shell, "console": self.console}[block.language](block)
        self.ran += 1

    def python(self, block: Block) -> None:
        if ">>>" not in block.code:
            source = "\n" * block.line + block.code  # so that a traceback names the line of the page
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, str(block.page), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(block.code, self.names, str(block), str(block.page), block.line)
        report = io.StringIO()
        failed, _ = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.write, clear_globs=False)
        self.names.update(test.globs)
        assert not failed, report.getvalue()

    def shell(self, block: Block) -> None:
        for line in block.code.replace("\\\n", " ").splitlines():
            command = line.split("#")[0].strip()
            assert not command or command.startswith("blindmatch "), f"{block}: cannot run {line!r}"
            if command:
                run_command(command, block)

    def console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.code, flags=re.M)[1:]:
            line, _, expected = part.partition("\n")
            command, _, code = line.partition("# exit code")
            got = run_command(command, block, int(code or 0))
            if expected.strip():
                right = doctest.OutputChecker().check_output(expected.strip() + "\n", got.strip() + "\n", OPTIONS)
                assert right, f"{block}: {command}\nexpected:\n{expected}\ngot:\n{got}"


def run_command(command: str, block: Block, expected_code: int = 0) -> str:
    """What the command prints on stdout, which may also go to a file; if it is meant to fail, on stderr."""
    command, _, file = command.partition(" > ")
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", shlex.split(command)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    assert code == expected_code, f"{block}: {command}: exit code {code}\n{err.getvalue()}"
    if file:
        Path(file.strip()).write_text(out.getvalue(), encoding="utf-8")
    return out.getvalue() or err.getvalue()
