"""The report with many, long and wide names, in a real browser: nothing is clipped, on a desk, on a phone, on paper."""

import re
import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from report.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, WHY_NOT, Browser
from report.pages import found, sets

from blindmatch.problem.task import Price
from blindmatch.report import Match, write_report

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER, find_spec("selenium")), reason=WHY_NOT)
PDFTOTEXT = shutil.which("pdftotext")
CUT = "Vereinigtes Königreich und Nordirland"
WIDE = "北アイルランド連合王国の一部" * 2


@pytest.fixture(scope="module")
def countries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 pairs, of which two are wrong; a long and a wide name."""
    X, Y, truth = sets(25)
    swapped = truth.copy()
    swapped[[3, 20]] = swapped[[20, 3]]
    names = {
        "source_names": [CUT, "United Kingdom", *(f"country {i}" for i in range(23))],
        "target_names": [WIDE, *(f"Land {j}" for j in range(24))],
    }
    path = tmp_path_factory.mktemp("names") / "countries.html"
    return write_report(path, Match(found(X, Y, swapped, **names), truth=truth.tolist()))


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_name_leaves_the_picture_of_lines(browser: Browser, countries: Path, size: tuple[int, int]) -> None:
    browser.open(countries, size)
    outside = browser.run(
        "const box = document.querySelector('.lines svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('.lines text')].filter(text => { const at = text.getBoundingClientRect();"
        " return at.left < box.left - 1 || at.right > box.right + 1 }).map(text => text.textContent)"
    )
    assert outside == []
    words = browser.run("return [...document.querySelectorAll('.lines text')].map(text => text.textContent)")
    assert "United Kingdom" in words
    assert sum(word.endswith("…") for word in words) == 2
    line = browser.run(
        "const line = document.querySelector('.lines line'); return line.x2.baseVal.value - line.x1.baseVal.value"
    )
    assert line >= 50


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_matrices_of_25_have_names(browser: Browser, countries: Path, size: tuple[int, int]) -> None:
    browser.open(countries, size)
    canvas = browser.run("const c = document.querySelector('[data-matrix=source]'); return [c.width, c.height]")
    assert canvas[0] > canvas[1] + 40  # the names stand beside the rows


def test_a_table_of_names_fits_on_a_phone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["match"], PHONE)
    assert (
        browser.run("const box = document.querySelector('#pairs .scroll'); return box.scrollWidth - box.clientWidth")
        == 0
    )


def test_ten_pairs_with_pictures_are_seen_at_once(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["trust"])
    hidden = "const box = document.querySelector('#pairs .scroll'); return box.scrollHeight - box.clientHeight"
    assert browser.run("return document.querySelectorAll('#pairs-table img').length") == 20
    assert browser.run(hidden) <= 1


def test_the_report_draws_the_pairs_at_other_prices(browser: Browser, tmp_path: Path) -> None:
    X, Y, _ = sets(6)
    price = Price(2.0, ((0.5, 1), (1.0, 4), (2.0, 4), (4.0, 6)))
    page = tmp_path / "prices.html"
    result = found(X, Y, range(6))
    write_report(page, Match(replace(result, task=result.task.changed(price=price))))
    browser.open(page, PHONE)
    marks = browser.run("return [...document.querySelectorAll('#prices text.bound')].map(text => text.textContent)")
    assert marks == ["1", "4", "", "6"]  # a number where it changes
    places = browser.run("return [...document.querySelectorAll('#prices circle')].map(dot => dot.cx.baseVal.value)")
    taken = browser.run("return document.querySelector('#prices .mark').x1.baseVal.value")
    assert places == sorted(places)
    assert taken == places[2]
    assert browser.errors() == []


@pytest.mark.skipif(PDFTOTEXT is None, reason="no pdftotext to read the printed page: apt-get install poppler-utils")
def test_the_printed_page_reads_well(browser: Browser, countries: Path, tmp_path: Path) -> None:
    browser.open(countries)
    (tmp_path / "page.pdf").write_bytes(browser.pdf())
    text = subprocess.run([PDFTOTEXT, "-layout", tmp_path / "page.pdf", "-"], capture_output=True, check=True).stdout
    *pages, _ = text.decode().split("\f")
    assert "United Kingdom" in pages[0]  # the picture of lines is on the first page ...
    assert "Solid lines are right" in pages[0]  # ... with its caption
    assert len(pages) <= 7
    headers = [page for page in pages if re.search(r"source +target +right\? +agreement", page)]
    assert len(headers) == 2  # the table has two pages, and its header is on both
    assert "All of it as JSON" not in text.decode()
