"""The commands, one in each file. A file is loaded when its command runs, and imports what is heavy only then."""
