"""The report in a real browser: looking, pointing, sorting, searching, printing, on a desk and on a phone."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from report.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, WHY_NOT, Browser, started
from report.pages import EVIL, PROBLEM, found, sets, write_pages
from sampled import sampled

import blindmatch as bm
from blindmatch.solvers.progress import Progress

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER, find_spec("selenium")), reason=WHY_NOT)
KINDS = ("match", "trust", "cka", "few", "many", "problem", "evil", "classes")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def page(browser: Browser, pages: dict[str, Path]) -> Browser:
    """The report of a match, on a desk."""
    browser.open(pages["match"])
    return browser


def column(browser: Browser, at: int) -> list[str]:
    """The visible cells of a column of the table."""
    return browser.run(
        "return [...document.querySelectorAll('#pairs-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.children[arguments[0]].textContent.trim())",
        at,
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@sampled("kind", KINDS, quick={"match", "problem"})
def test_opens_without_errors_and_without_network(
    browser: Browser, pages: dict[str, Path], kind: str, size: tuple[int, int]
) -> None:
    browser.open(pages[kind], size)
    assert browser.errors() == []
    assert [address for address in browser.requests() if not address.startswith("data:")] == [pages[kind].as_uri()]
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    assert browser.run("return document.documentElement.scrollWidth") == size[0] == browser.run("return innerWidth")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_box_of_a_long_table_ends_below_a_whole_row(
    browser: Browser, pages: dict[str, Path], size: tuple[int, int]
) -> None:
    browser.open(pages["large"], size)
    cut = (
        "const box = document.querySelector('#pairs .scroll').getBoundingClientRect();"
        "return [...document.querySelectorAll('#pairs-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.getBoundingClientRect())"
        ".filter(row => row.top < box.bottom - 2 && row.bottom > box.bottom + 1)"
        ".length"
    )
    assert browser.run(cut) == 0
    browser.run("const e = document.querySelector('#search'); e.value = '1'; e.dispatchEvent(new Event('input'))")
    assert browser.run(cut) == 0
    whole = "const box = document.querySelector('#pairs .scroll'); return box.scrollHeight > box.clientHeight"
    assert browser.run(whole) is True


@sampled("kind", KINDS, quick={"match", "problem"})
def test_everything_is_drawn(browser: Browser, pages: dict[str, Path], kind: str) -> None:
    browser.open(pages[kind])
    colours = browser.run(
        "return [...document.querySelectorAll('[data-matrix]')].map(canvas => { const pixels ="
        "new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);"
        "return new Set(pixels).size })"
    )
    assert len(colours) == 3
    assert min(colours) > 3
    assert browser.run("return document.querySelectorAll('#random-plot rect.pile').length") == 40
    pairs = browser.run("return document.querySelectorAll('#pairs-table tbody tr').length")
    if kind == "problem":
        assert browser.run("return document.querySelector('#plane')") is None
    else:
        assert browser.run("return document.querySelectorAll('#plane-plot g.pair').length") == pairs
    if kind in ("match", "trust"):
        assert browser.run("return document.querySelectorAll('#trace-plot .line').length") == 2


def test_the_first_screen_says_what_how_well_and_whether_to_believe_it(page: Browser) -> None:
    for selector in ("h1", ".verdict", ".belief", ".lines"):
        box = page.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector)
        assert 0 < box < DESKTOP[1], selector
    assert page.one(".verdict").text == "10 pairs matched, no other pairing costs less by more than 10 %."
    assert "8 of 10 pairs are right" in page.one(".belief").text


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


def test_theme(browser: Browser, pages: dict[str, Path]) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    cell = "return [...document.querySelector('[data-matrix=source]').getContext('2d').getImageData(299, 9, 1, 1).data]"
    browser.open(pages["match"], scheme="light")
    light = browser.run(background), browser.run(cell)
    browser.one("#theme").click()
    dark = browser.run(background), browser.run(cell)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert browser.one("#theme").get_attribute("aria-pressed") == "true"
    browser.one("#theme").click()
    assert (browser.run(background), browser.run(cell)) == light
    assert browser.run("return localStorage.length") == 1
    browser.driver.refresh()
    browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.run(background) == light[0]  # what was chosen is kept
    browser.run("localStorage.clear()")
    browser.open(pages["match"], scheme="dark")
    assert (browser.run(background), browser.run(cell)) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: Browser, pages: dict[str, Path], scheme: str) -> None:
    browser.open(pages["match"], scheme=scheme)
    names = ("text", "soft", "source", "target", "good", "doubt", "bad", "page", "card")
    names += ("good-back", "doubt-back", "bad-back", "open-back", "hover")
    values = browser.run(
        "const s = getComputedStyle(document.documentElement);"
        "return arguments[0].map(name => s.getPropertyValue('--' + name).trim())",
        names,
    )
    light = {name: luminance(value) for name, value in zip(names, values, strict=True)}
    pairs = [(front, back) for front in names[:2] for back in ("page", "card", "hover", "open-back")]
    pairs += [(front, "card") for front in names[2:7]]
    pairs += [("text", back) for back in ("good-back", "doubt-back", "bad-back")]
    for front, back in pairs:
        high, low = sorted((light[front], light[back]), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back)


def luminance(colour: str) -> float:
    """Relative luminance, by the Web Content Accessibility Guidelines."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("kind", ["match", "problem", "trust"])
def test_prints(browser: Browser, pages: dict[str, Path], kind: str) -> None:
    browser.open(pages[kind], scheme="dark")
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000
    assert browser.errors() == []
    assert browser.one("#theme").get_attribute("aria-pressed") == "true"  # the screen stays dark


def test_headings_stay_with_their_figures_on_paper(page: Browser) -> None:
    page.command("Emulation.setEmulatedMedia", media="print")
    style = "return getComputedStyle(document.querySelector(arguments[0]), arguments[1])[arguments[2]]"
    try:
        # Chromium leaves buttons blank in a header that it repeats: the names are printed as text.
        assert page.run(style, "#pairs-table th", "::before", "content") == '"source"'
        assert page.run(style, "#pairs-table th button", None, "display") == "none"
        assert {page.run(style, part, None, "breakInside") for part in ("#plane", "#time", "#matrices")} == {"avoid"}
    finally:
        page.command("Emulation.setEmulatedMedia", media="")


def test_names_are_shown_and_not_run(browser: Browser, pages: dict[str, Path]) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    browser.open(pages["evil"])
    assert column(browser, 0) == [*EVIL, "x"]
    assert browser.one("h1").text == EVIL[0]
    browser.point("#pairs-table tr[data-pair='0']")
    browser.point("g.pair[data-pair='0'] .point.source")
    assert EVIL[0] in browser.one("#tip").text
    with pytest.raises(NoAlertPresentException):
        browser.driver.switch_to.alert.accept()
    assert browser.run("return document.querySelectorAll('main script, main img').length") == 0
    assert browser.errors() == []


def test_a_script_that_slipped_in_would_not_run(page: Browser) -> None:
    page.run("const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s)")
    assert page.run("return window.ran") is None
    assert any("Content Security Policy" in message for message in page.errors())


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


def test_lines_are_straight_where_a_pair_is_right(page: Browser) -> None:
    ends = page.run(
        "return [...document.querySelectorAll('.lines line')].map(line => [line.getAttribute('class'),"
        " line.getAttribute('y1') === line.getAttribute('y2')])"
    )
    assert sorted(ends) == [["bad", False]] * 2 + [["good", True]] * 8


def test_names_stay_whole_on_a_phone_and_targets_have_labels(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["match"], PHONE)
    lines = browser.run(
        "return [...document.querySelectorAll('#pairs-table td.name span')]"
        ".map(cell => cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight))"
    )
    assert max(lines) < 2.1  # two words at most, no word is broken
    assert browser.run("return document.querySelectorAll('#plane-plot .label.target').length") > 3


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


def test_ticks_differ_and_figures_stay_on_one_line(browser: Browser, tmp_path: Path) -> None:
    """A bound and a cost that differ in the sixth digit, and a name that would fill the screen."""
    X, Y, truth = sets(10)
    result = found(X, Y, truth)
    trace = tuple(Progress(t, 0, result.cost * (1 - 1e-5 * (1 - t)), result.cost) for t in (0.0, 0.5, 1.0))
    result = replace(result, trace=trace, lower_bound=result.cost * (1 - 1e-6))
    names = ["needle in " + "hay " * 150 + "stack", *(f"t{i}" for i in range(9))]
    browser.open(bm.write_report(tmp_path / "r.html", result, X, Y, truth=truth, source_names=names), (1100, 800))
    words = browser.run("return [...document.querySelectorAll('#trace-plot text')].map(text => text.textContent)")
    assert len(words) > 5
    assert len(set(words)) == len(words)
    lines = browser.run(
        "return [...document.querySelectorAll('.tile b')]"
        ".map(b => Math.round(b.offsetHeight / parseFloat(getComputedStyle(b).lineHeight)))"
    )
    assert set(lines) == {1}
    assert len(column(browser, 0)[0]) < 130
    browser.run("const s = document.querySelector('#search'); s.value = 'stack'; s.dispatchEvent(new Event('input'))")
    assert len(column(browser, 0)) == 1
