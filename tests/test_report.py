"""The report: one page that needs nothing else, whatever the names are."""

import base64
import re
import struct
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from blindmatch.report import Match, proof_sentence, render, verdict
from blindmatch.report.chart import bounds_chart
from blindmatch.report.png import HIGH, LOW, heatmap
from blindmatch.result import Progress, Result

RESULT = Result(
    permutation=np.array([2, 0, 1]),
    cost=10.0,
    lower_bound=9.5,
    status="stalled",
    solver="some-solver",
    seconds=1.25,
    trace=(Progress(0.0, 0, None, 12.0), Progress(0.5, 1, 9.0, 10.0), Progress(1.0, 2, 9.5, 10.0)),
)
EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$verdict ${x} &amp;")


class Page(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def pixels(address: str) -> np.ndarray:
    """Decode our own PNG, independent of the code that wrote it: (height, width, 3)."""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, width + 1)
    return np.frombuffer(chunks[b"PLTE"], dtype=np.uint8).reshape(-1, 3)[lines[:, 1:]]


def test_names_are_shown_and_not_run() -> None:
    page = Page(render(Match(RESULT, source_names=EVIL, target_names=EVIL, title=EVIL[0], settings={EVIL[0]: EVIL[1]})))
    tags = {tag for tag, _ in page.tags}
    assert "script" not in tags
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    for name in EVIL:
        assert page.text.count(name) >= 2


def test_nothing_is_loaded_from_anywhere() -> None:
    kernel = np.arange(9.0).reshape(3, 3)
    text = render(Match(RESULT, (kernel, kernel)))
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert all(attributes["src"].startswith("data:") for _, attributes in Page(text).tags if "src" in attributes)
    assert not any(tag in ("link", "script", "iframe") for tag, _ in Page(text).tags)


def test_light_and_dark() -> None:
    assert "prefers-color-scheme: dark" in render(Match(RESULT))


def test_the_page_tells_the_match_and_its_proof() -> None:
    text = Page(render(Match(RESULT, source_names="abc", target_names="xyz", settings={"seed": "17"}))).text
    assert "3 pairs matched, at most 5 % above the best possible cost." in text
    assert re.findall(r"[abc][xyz]", re.sub(r"\s", "", text.partition("Pairs")[2]))[:3] == ["az", "bx", "cy"]
    assert "17" in text
    assert "right?" not in text


def test_truth_is_counted() -> None:
    match = Match(RESULT, truth=[2, 1, 0])
    assert match.right == 1
    text = Page(render(match)).text
    assert "1 of 3 are right" in text
    assert (text.count("✓"), text.count("✗")) == (1, 2)


def test_target_kernel_is_drawn_in_the_order_of_the_match() -> None:
    source = np.array([[0.0, 1, -2], [1, 0, 3], [-2, 3, 0]])
    target = np.empty((3, 3))
    target[np.ix_(RESULT.permutation, RESULT.permutation)] = source
    images = [
        attributes["src"] for tag, attributes in Page(render(Match(RESULT, (source, target)))).tags if tag == "img"
    ]
    assert len(images) == 3
    assert images[0] == images[1]
    assert np.ptp(pixels(images[2]).reshape(-1, 3), axis=0).max() == 0  # the difference is all zero
    assert tuple(pixels(images[0])[1, 2]) == HIGH


def test_unequal_sizes_show_what_is_matched() -> None:
    result = replace(RESULT, permutation=np.array([1, -1, 0]))
    text = render(Match(result, (np.ones((3, 3)), np.ones((2, 2))), source_names="abc", target_names="xy"))
    assert "2 pairs matched" in text
    assert "<td>b</td>" not in text


def test_heatmap_ends_of_the_scale() -> None:
    image = pixels(heatmap(np.array([[-2.0, 2.0], [9.0, -9.0]]), 2.0))
    assert tuple(image[0, 0]) == tuple(image[1, 1]) == LOW
    assert tuple(image[0, 1]) == tuple(image[1, 0]) == HIGH
    assert pixels(heatmap(np.zeros((1, 1)), 0.0)).shape == (1, 1, 3)


def test_chart_rises_and_falls_inside_its_frame() -> None:
    chart = bounds_chart(RESULT.trace)
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]+)"', chart))
    cost, bound = (
        np.array([point.split(",") for point in lines[name].split()], dtype=float) for name in ("cost", "bound")
    )
    assert (np.diff(cost[:, 1]) >= 0).all()  # downwards on the screen
    assert (np.diff(bound[:, 1]) <= 0).all()
    assert (bound[:, 1] > cost[-1, 1]).all()
    for line in (cost, bound):
        assert (line >= 0).all()
        assert (line <= [640, 240]).all()


@pytest.mark.parametrize(
    "trace", [(), (Progress(0.0, 0, None, None),), (Progress(0.0, 0, 1.0, 1.0),), (Progress(0.0, 0, -np.inf, 1.0),)]
)
def test_chart_of_next_to_nothing(trace: tuple[Progress, ...]) -> None:
    chart = bounds_chart(trace)
    assert "nan" not in chart
    assert "inf" not in chart


@pytest.mark.parametrize(
    ("status", "bound", "words"),
    [
        ("optimal", 10.0, ["proved optimal"]),
        ("time_limit", 9.0, ["at most 10 %", "time limit"]),
        ("interrupted", None, ["no proof", "interrupted"]),
        ("heuristic", None, ["no proof", "proves nothing"]),
        ("stalled", float("-inf"), ["no proof", "rises no further"]),
    ],
)
def test_sentences_claim_what_is_proved(status: str, bound: float | None, words: list[str]) -> None:
    result = replace(RESULT, status=status, lower_bound=bound)
    text = f"{verdict(result)} {proof_sentence(result)}"
    assert all(word in text for word in words)
    assert ("optimal" in text) == (status == "optimal")
    assert "inf" not in text
