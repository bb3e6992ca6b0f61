"""A result to report, and the parts of a page."""

from html.parser import HTMLParser

import numpy as np

from blindmatch.solvers.progress import Progress
from blindmatch.solving.result import Result

RESULT = Result(
    permutation=np.array([2, 0, 1]),
    cost=10.0,
    lower_bound=9.5,
    status="stalled",
    solver="some-solver",
    seconds=1.25,
    trace=(Progress(0.0, 0, None, 12.0), Progress(0.5, 1, 9.0, 10.0), Progress(1.0, 2, 9.5, 10.0)),
)
RNG = np.random.default_rng(3)


class Page(HTMLParser):
    """The tags and the text of a page, and the data for its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.data, self.rows = "", "", []
        self.inside: tuple[str, dict[str, str | None]] | None = None  # the cell, style or script that is open
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        if tag in ("td", "script", "style"):
            self.inside = tag, dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "script", "style"):
            self.inside = None

    def handle_data(self, data: str) -> None:
        tag, attributes = self.inside or ("", {})
        if attributes.get("id") == "data":
            self.data += data
        elif tag not in ("script", "style"):
            self.text += data
        if tag == "td":
            self.rows[-1][-1] += data.strip()


def square(n: int) -> np.ndarray:
    matrix = RNG.normal(size=(n, n))
    return matrix + matrix.T
