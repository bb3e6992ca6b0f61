"""The typer application of the ``blindmatch`` command: help, version and exit codes."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from blindmatch.cli.console import FAILED, INTERRUPTED, complain, interruption, output, write_what_can_be_written
from blindmatch.cli.options import COMMANDS, EPILOG, EXIT_CODES, RARE, as_typer_function

# The panel of each command on the help page, in the order in which a new user needs the commands.
PANELS: dict[str, str] = {name: entry["panel"] for name, entry in COMMANDS.items() if "panel" in entry}
_MANY = 20  # options of a command whose rarely used ones are not shown at first
_USAGE: Any = typer.BadParameter.__mro__[2]  # ClickException: of click, or of the copy that typer brings along


class _HelpWithExamples:
    """For commands and groups whose help ends with examples."""

    epilog: Any

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Print the help page, then its examples, one per line: typer would join or spread these lines."""
        epilog, self.epilog = self.epilog, None
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""  # some versions of typer show the type of a switch, which takes no value
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self.epilog = epilog
        if epilog:
            output().print(epilog.replace("\n\n  ", "\n  ").rstrip() + "\n", soft_wrap=True)


class Command(_HelpWithExamples, TyperCommand):
    """A single command; the help of one with many options shows the rarely used ones only if it is asked to."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rare: list[Any] = [one for one in self.params if one.name in RARE] if len(self.params) > _MANY else []

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page, without what is rarely used unless all of it is wanted."""
        hidden = [] if ctx.meta.get("all options") else [one for one in self._rare if not getattr(one, "hidden", False)]
        for one in hidden:
            one.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for one in hidden:
                one.hidden = False
        if hidden:
            output().print(f"{len(hidden)} more options: {ctx.command_path} --help-all\n", highlight=False)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; ``--log`` may stand without a file, and ``--help-all`` shows the whole help."""
        if self._rare and "--help-all" in args:
            ctx.meta["all options"] = True
            self.format_help(ctx, ctx.make_formatter())
            ctx.exit()
        return super().parse_args(ctx, with_bare_log(args))


class Group(_HelpWithExamples, TyperGroup):
    """A group of commands."""


class Commands(Group):
    """The commands of `PANELS`, in their order, each declared on first use."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command. A wrong option is reported in one line, like any other mistake."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
            if code == INTERRUPTED:  # typer does not tell SIGTERM from Ctrl-C
                code = interruption().exit_code
        except typer.Abort:
            complain("aborted")
            code = FAILED
        except _USAGE as error:
            code = error.exit_code
            if type(error).__name__ != "NoArgsIsHelpError":  # then the help was shown
                message = error.format_message().strip().rstrip(".")
                pattern = r"Input should be a valid (\w+)(?:, unable to parse .*)?$"
                message = re.sub(pattern, r"expected a valid \1", message)
                where = error.ctx.command_path if getattr(error, "ctx", None) else "blindmatch"
                see = " See" if message.endswith("?") else "; see"
                complain(f"{message[:1].lower()}{message[1:]}{see} '{where} --help'")
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help page."""
        return list(PANELS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """The command of that name, in its panel; None if there is none."""
        if name in PANELS and name not in self.commands:
            command: Any = typer.main.get_command(_declare(name))
            command.name, command.rich_help_panel = name, PANELS[name]
            self.commands[name] = command
        return self.commands.get(name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command to run; the names of all are needed to suggest one in place of an unknown one."""
        if args and args[0] not in PANELS:
            for name in PANELS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def with_bare_log(arguments: list[str]) -> list[str]:
    """Arguments in which ``--log`` without a file is ``--log -``."""
    whole: list[str] = []
    for at, argument in enumerate(arguments):
        whole.append(argument)
        following = arguments[at + 1] if at + 1 < len(arguments) else "--"
        if argument == "--log" and following.startswith("-") and following != "-":
            whole.append("-")
    return whole


_LOOK: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "rich"}


def _declare(name: str) -> typer.Typer:
    members = [member for member, entry in COMMANDS.items() if entry.get("group") == name]
    about = {"help": COMMANDS[name]["help"], "epilog": _examples(name)} if members else {}
    own = typer.Typer(cls=Group, add_completion=False, **_LOOK, **about)
    for member in members or [name]:
        own.command(member, cls=Command, epilog=_examples(member))(as_typer_function(member))
    return own


def _examples(name: str) -> str:
    """The end of a help text: commands to copy, one per line."""
    lines = "\n\n".join(f"  [bold]{line}[/bold]" for line in COMMANDS[name]["examples"])
    return f"Examples:\n\n{lines}{COMMANDS[name].get('note', '')}"


def show_version(wanted: bool) -> None:
    """Print the version and exit, if wanted."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"blindmatch {version('blindmatch')}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    name="blindmatch",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items()),
    **_LOOK,
)


@app.callback()
def blindmatch(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Match two sets of embeddings with no known pairs, and prove how good the match is."""
    write_what_can_be_written()
