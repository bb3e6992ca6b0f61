"""A browser, and the pages that it opens."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from report.browser import Browser, started
from report.pages import write_pages


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def page(browser: Browser, pages: dict[str, Path]) -> Browser:
    """The report of a match, on a desk."""
    browser.open(pages["match"])
    return browser
