"""The report in a real browser: what is seen, on a desk, on a phone, by night and on paper."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from report.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, WHY_NOT, Browser, column
from report.pages import EVIL, found, sets
from sampled import sampled

import blindmatch as bm
from blindmatch.report import Match, write_report
from blindmatch.solvers.progress import Progress

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER, find_spec("selenium")), reason=WHY_NOT)
KINDS = ("match", "trust", "cka", "few", "many", "problem", "evil", "classes")


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
    assert page.one(".verdict").text == "8 of 10 pairs are right"
    assert "pairing at random gets about 1" in page.one(".belief").text
    assert "no other pairing costs less by more than 10 %" in page.one(".proof").text


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


def test_ticks_differ_and_figures_stay_on_one_line(browser: Browser, tmp_path: Path) -> None:
    """A bound and a cost that differ in the sixth digit, and a name that would fill the screen."""
    X, Y, truth = sets(10)
    result = found(X, Y, truth)
    trace = tuple(Progress(t, 0, result.cost * (1 - 1e-5 * (1 - t)), result.cost) for t in (0.0, 0.5, 1.0))
    result = replace(result, trace=trace, lower_bound=result.cost * (1 - 1e-6))
    names = ["needle in " + "hay " * 150 + "stack", *(f"t{i}" for i in range(9))]
    result = replace(result, task=bm.Task(X, Y, source_names=names))
    browser.open(write_report(tmp_path / "r.html", Match(result, truth=truth.tolist())), (1100, 800))
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
