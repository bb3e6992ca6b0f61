"""The page of a sweep: in a real browser, and whatever models are called."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from experiments.in_process import InProcess
from report.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, WHY_NOT, Browser, started

from blindmatch.experiments import small_scale
from blindmatch.experiments.sweeps import Sweep, compute, plan, report

EVIL = "<script>alert(1)<" + "\u2215" + "script>"  # a file name has no slash
in_a_browser = pytest.mark.skipif(None in (CHROMIUM, DRIVER, find_spec("selenium")), reason=WHY_NOT)
COMMAND = 'blindmatch experiment small-scale --vision "<b>"'


def embeddings(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    names, common = np.array([f"class {c}" for c in range(6)]), rng.normal(size=(6, 8))
    for model in ("plain", EVIL):
        images = np.repeat(common @ rng.normal(size=(8, 12)), 4, axis=0) + 0.1 * rng.normal(size=(24, 12))
        labels = np.repeat(np.arange(6), 4)
        np.savez(folder / f"vision__cifar10__{model}.npz", embeddings=images, labels=labels, class_names=names)
    np.savez(folder / "language__cifar10__words.npz", embeddings=common, class_names=names)
    return folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> tuple[Sweep, Path]:
    """A sweep of which a run failed."""
    folder = tmp_path_factory.mktemp("swept")
    what = plan("small-scale", {"seeds": 2, "time_limit": 20.0}, embeddings=embeddings(folder), out=folder)
    real = small_scale.SmallScale.compute

    def fails(self, run):
        if run.parameters["seed"] == 1 and run.parameters["measure"] == "cka" and run.parameters["vision"] == "plain":
            raise ValueError("<img src=x onerror=alert(1)>")
        return real(self, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_scale.SmallScale, "compute", fails)
        compute(what, folder, engine=InProcess())
    return what, folder


@pytest.fixture(scope="module")
def page(swept) -> Path:
    return report(*swept, COMMAND)[1]


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready


def column(browser: Browser, at: int) -> list[str]:
    return browser.run(
        "return [...document.querySelectorAll('table.sortable')].at(-1).querySelectorAll('tbody tr').values()"
        ".filter(row => !row.hidden).map(row => row.children[arguments[0]].textContent).toArray()",
        at,
    )


def test_it_tells_what_was_run_and_what_failed(page):
    text = page.read_text()
    assert "11 of 12 runs are finished" in text
    assert "1 time: ValueError: &lt;img src=x onerror=alert(1)&gt;" in text
    assert "blindmatch experiment small-scale --vision &#34;&lt;b&gt;&#34;" in text
    assert re.search(r'<th scope="row">seeds</th><td>2</td>', text)
    assert '<th scope="col" aria-sort="none" class="number paper"><button type="button">paper: one pair' in text


def test_names_are_escaped_and_nothing_is_loaded(page):
    text = page.read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert set(re.findall(r"<img [^;]*;", text)) == {'<img src="data:image/svg+xml;'}
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", text) == []
    assert ' style="' not in text  # the policy would forbid it


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_opens_without_errors_and_without_network(browser, page, size, scheme):
    browser.open(page, size, scheme=scheme)
    assert browser.errors() == []
    assert [address for address in browser.requests() if not address.startswith("data:")] == [page.as_uri()]
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    assert browser.run("return document.documentElement.scrollWidth") == size[0]
    wide = "return [...document.querySelectorAll('.drawn img')].map(e => e.getBoundingClientRect().width)"
    assert min(browser.run(wide)) > 200
    look = browser.run("return getComputedStyle(document.querySelector('.drawn img')).filter")
    assert (look == "none") == (scheme == "light")


@in_a_browser
def test_sorting_and_searching(browser, page):
    browser.open(page)
    names = column(browser, 1)
    assert sorted(names) == sorted(["plain", EVIL])
    head = "[...document.querySelectorAll('table.sortable')].at(-1).querySelectorAll('th button')"
    browser.run(f"{head}[4].click()")
    costs = [float(text.split()[0]) for text in column(browser, 4)]
    assert costs == sorted(costs, reverse=True)
    browser.run(f"{head}[4].click()")
    assert [float(text.split()[0]) for text in column(browser, 4)] == sorted(costs)
    browser.one("#search").send_keys("PLAIN")
    assert column(browser, 1) == ["plain"]
    assert browser.one("#shown").text == "1 of 5 rows"
