"""The ``blindmatch`` command."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:  # a command handles Ctrl-C itself; until it runs, most of the time goes into loading modules
        from blindmatch.cli.app import app
        from blindmatch.cli.console import end_on_sigterm, open_closed_streams

        open_closed_streams()
        end_on_sigterm()
        app()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 turns an interrupt while a class is made into a RuntimeError.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(130)
