"""The ``blindmatch`` command."""

from blindmatch.cli.app import app
from blindmatch.cli.console import end_on_sigterm, open_closed_streams

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    open_closed_streams()
    end_on_sigterm()
    app()
