"""Words and numbers on the command line."""

import pytest

from blindmatch.cli.app import with_bare_log
from blindmatch.cli.commands.about import _millions
from blindmatch.cli.progress import clock


def test_a_log_without_a_file_goes_to_stderr():
    assert with_bare_log(["nug12.dat", "--log", "--json"]) == ["nug12.dat", "--log", "-", "--json"]


@pytest.mark.parametrize(("count", "text"), [(1_134_769_664, "1135 M"), (5_524_416, "5.5 M"), (None, "")])
def test_numbers_of_parameters(count, text):
    assert _millions(count) == text


def test_times():
    assert (clock(75.2), clock(4000)) == ("1:15", "1:06:40")
