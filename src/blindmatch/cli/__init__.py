"""The ``blindmatch`` command. Each module of commands declares their options and adds them to the application."""

from blindmatch.cli import matching  # noqa: F401  (in the order of the help page)
from blindmatch.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app()
