"""The typer application of the ``blindmatch`` command: help, version, exit codes. Its commands add themselves to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from blindmatch.cli import options as opt
from blindmatch.cli.console import FAILED, complain, output, write_what_can_be_written

Function = TypeVar("Function", bound=Callable[..., Any])

# The help page in the order in which a new user needs the commands. What is not named here comes last.
PANELS = {
    "Match": ("demo", "match", "classify", "align", "subsets"),
    "Check": ("verify", "assess", "report"),
    "Make embeddings": ("embed", "models"),
    "Research": ("solve", "solvers", "experiment"),
}
EXIT_CODES = {
    0: "done",
    1: "something failed (no package, no memory, a file that cannot be written, a certificate that proves nothing)",
    2: "bad input or options; nothing was written",
    130: "interrupted by Ctrl-C; the best match so far was printed, where there was one",
}
EXAMPLES = """\
Examples:
  [bold]blindmatch demo --report report.html[/bold]                 see it work on real data
  [bold]blindmatch match images.npy texts.npy[/bold]                two files of embeddings, no pairs known
  [bold]blindmatch match a.csv b.csv --json > match.json[/bold]     for other programs
  [bold]blindmatch match a.npz b.npz --certificate c.npz[/bold]     keep the proof ...
  [bold]blindmatch verify a.npz b.npz c.npz[/bold]                  ... and check it without any solver
  [bold]blindmatch solve nug12.dat --time-limit 60[/bold]           a quadratic assignment problem
"""


_USAGE: Any = typer.BadParameter.__mro__[2]  # ClickException: of click, or of the one that typer brings along


def _complain_of_usage(error: Any) -> None:
    message = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    where = "blindmatch" if context is None else context.command_path
    see = " See" if message.endswith("?") else "; see"
    complain(f"{message[:1].lower()}{message[1:]}{see} '{where} --help'")


class _Teaching:
    """Help that ends with its examples, a line each: typer folds or spreads these lines, as its version likes it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page."""
        epilog, self.epilog = self.epilog, None
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""  # some versions show the type of a switch, which takes no value
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self.epilog = epilog
        if epilog:
            output().print(epilog.replace("\n\n  ", "\n  ").rstrip() + "\n", soft_wrap=True)

    epilog: str | None


class Command(_Teaching, TyperCommand):
    """A command whose help ends with examples."""


class Group(_Teaching, TyperGroup):
    """The commands, in the order of `PANELS`."""

    def main(
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command. A wrong option is told in one line, like any other mistake."""
        given = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return super().main(*given, **extra)
        try:
            code = super().main(*given, **extra)
        except typer.Abort:
            complain("aborted")
            code = FAILED
        except _USAGE as error:
            code = error.exit_code
            if type(error).__name__ != "NoArgsIsHelpError":  # then the help was shown
                _complain_of_usage(error)
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help page."""
        names = super().list_commands(ctx)
        known = [name for panel in PANELS.values() for name in panel if name in names]
        return [*known, *(name for name in names if name not in known)]

    def get_command(self, ctx: Any, name: str) -> Any:
        """The command of that name, put into its panel."""
        command = super().get_command(ctx, name)
        panel = next((title for title, names in PANELS.items() if name in names), None)
        if command is not None and panel is not None:
            command.rich_help_panel = panel  # type: ignore[attr-defined]
        return command


class Application(typer.Typer):
    """A typer application whose commands teach by examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": Group, "no_args_is_help": True, "rich_markup_mode": "rich", **options})

    def command(self, *arguments: Any, **options: Any) -> Callable[[Function], Function]:
        """Declare a command."""
        return super().command(*arguments, **{"cls": Command, **options})


app = Application(
    name="blindmatch",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES
    + "\nEvery command has examples of its own: blindmatch match --help\n"
    + "Exit codes:\n"
    + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items()),
)


@app.callback()
def blindmatch(
    version: Annotated[
        bool, typer.Option("--version", callback=opt.show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Match two sets of embeddings with no pairs at all, and prove how good the match is."""
    write_what_can_be_written()
