"""The ``blindmatch`` command. Each module of commands declares their options and adds them to the application."""

from blindmatch.cli import align, assess, classify, embed, experiment, matching, models, report, subsets  # noqa: F401
from blindmatch.cli.app import app
from blindmatch.cli.console import open_closed_streams

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    open_closed_streams()
    app()
