"""The report in the hands of a reader, in a real browser: pointing, keys, sorting, searching, copying."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from report.browser import CHROMIUM, DRIVER, WHY_NOT, Browser, column
from report.pages import PROBLEM

import blindmatch as bm

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER, find_spec("selenium")), reason=WHY_NOT)


def test_pointing_at_a_cell_lights_its_partner_everywhere(page: Browser) -> None:
    pixel = (
        "const c = document.querySelector('[data-matrix=target]'), m = c.width - c.height, s = c.height / 10;"
        "return [...c.getContext('2d').getImageData(m + 6 * s, 3 * s, Math.ceil(s), 3).data].join()"
    )
    before = page.run(pixel)
    cells = "return [...document.querySelectorAll('[data-matrix]')].map(canvas => canvas.dataset.cell)"
    assert page.run(cells) == ["", "", ""]
    margin = page.run("const c = document.querySelector('[data-matrix=source]'); return 1 - c.height / c.width")
    page.point("[data-matrix=source]", margin + (1 - margin) * 0.65, 0.35)  # row 3, column 6
    assert page.run(cells) == ["3,6"] * 3
    assert page.run(pixel) != before
    lit = page.run("return [...document.querySelectorAll('tr.lit')].map(row => Number(row.dataset.pair))")
    order = page.run("return JSON.parse(document.querySelector('#data').textContent).matrices.order")
    assert sorted(lit) == sorted([order[3], order[6]])
    assert page.run("return document.querySelectorAll('g.pair.lit').length") == 2
    tip = page.one("#tip").text
    words = page.run("return [...document.querySelectorAll('tr.lit .name')].map(cell => cell.textContent)")
    assert all(word in tip for word in words)
    assert len(words) == 4
    assert "difference" in tip
    page.point("h1")
    assert page.run(cells) == ["", "", ""]
    assert page.run(pixel) == before
    assert not page.one("#tip").is_displayed()


def test_values_in_the_tip_are_those_of_the_kernels(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["problem"])
    browser.run("document.querySelector('#order').value = 'file';"
                "document.querySelector('#order').dispatchEvent(new Event('change'))")  # fmt: skip
    margin = browser.run("const c = document.querySelector('[data-matrix=source]'); return 1 - c.height / c.width")
    browser.point("[data-matrix=source]", margin + (1 - margin) * 0.75, 0.25)  # row 1, column 4 of 6
    A, B = PROBLEM.factors[0]
    p = bm.solve(PROBLEM, "brute-force").permutation
    assert browser.one("#tip").text.splitlines() == [
        f"1 – 4: {A[1, 4]:.0f}",
        f"{p[1]} – {p[4]}: {B[p[1], p[4]]:.0f}",
        f"cost: {A[1, 4] * B[p[1], p[4]]:.0f}",
    ]


def test_pointing_at_a_row_or_a_point_lights_the_pair(page: Browser) -> None:
    place = "return JSON.parse(document.querySelector('#data').textContent).matrices.order.indexOf(arguments[0])"
    page.point("#pairs-table tr[data-pair='4']")
    at = page.run(place, 4)
    assert page.one("[data-matrix=target]").get_attribute("data-cell") == f"{at},{at}"
    assert page.run("return document.querySelector('g.pair.lit').dataset.pair") == "4"
    page.point("g.pair[data-pair='7'] .point.source")
    assert page.run("return document.querySelector('tr.lit').dataset.pair") == "7"
    assert page.one("#tip").text.startswith("thing 7")


def test_keys_move_through_the_matrix(page: Browser) -> None:
    page.run("document.querySelector('[data-matrix=source]').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.press(key)
    assert page.one("[data-matrix=third]").get_attribute("data-cell") == "1,2"
    assert "difference" in page.one("#readout").text


def test_sort(page: Browser) -> None:
    names = [f"thing {i}" for i in range(10)]
    assert column(page, 0) == names
    page.one("#pairs-table th:nth-child(1) button").click()
    page.one("#pairs-table th:nth-child(1) button").click()
    assert column(page, 0) == names[::-1]
    assert page.one("#pairs-table th:nth-child(1)").get_attribute("aria-sort") == "descending"
    page.one("#pairs-table th:nth-child(4) button").click()
    agreement = [float(cell) for cell in column(page, 3)]
    assert agreement == sorted(agreement, reverse=True)
    assert page.one("#pairs-table th:nth-child(1)").get_attribute("aria-sort") == "none"


def test_search(page: Browser) -> None:
    page.one("#search").send_keys("THING 3")
    assert column(page, 0) == ["thing 3"]
    assert page.one("#shown").text == "1 of 10 pairs"
    page.one("#search").clear()
    page.one("#search").send_keys("no such thing")
    assert column(page, 0) == []
    page.one("#search").clear()
    page.one("#search").send_keys(" ")
    page.one("#only-wrong").click()
    assert column(page, 0) == ["thing 0", "thing 1"]


def test_copies_what_repeats_the_run(page: Browser) -> None:
    page.run("document.addEventListener('copy', event => { window.copied = document.activeElement.value })")
    page.one("#csv").click()
    lines = page.run("return window.copied").splitlines()
    assert lines[0] == "source,target,source_name,target_name,right"
    assert {line.rpartition(",")[2] for line in lines[1:]} == {"right", "wrong"}
    assert len(lines) == 11
    assert page.one("#csv").text == "Copied"


def test_the_csv_has_the_confidence(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["trust"])
    browser.run("document.addEventListener('copy', event => { window.copied = document.activeElement.value })")
    browser.one("#csv").click()
    lines = browser.run("return window.copied").splitlines()
    assert lines[0] == "source,target,source_name,target_name,confidence"
    assert [float(line.rpartition(",")[2]) for line in lines[1::9]] == [0.3, 1.0]


def test_five_hundred_pairs(browser: Browser, pages: dict[str, Path]) -> None:
    assert pages["large"].stat().st_size < 4e6
    browser.open(pages["large"])
    assert browser.errors() == []
    loaded = browser.run("return performance.getEntriesByType('navigation')[0].duration")
    assert loaded < 15_000  # milliseconds; about one second on an idle core
    browser.point("[data-matrix=target]", 0.4, 0.6)
    assert browser.one("[data-matrix=source]").get_attribute("data-cell") != ""
    browser.one("#search").send_keys("499")
    assert "499" in column(browser, 0) + column(browser, 1)
    assert 1 <= len(column(browser, 0)) <= 2
