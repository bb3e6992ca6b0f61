"""``python -m blindmatch`` is the command ``blindmatch``."""

from blindmatch.cli import main

if __name__ == "__main__":
    main()
