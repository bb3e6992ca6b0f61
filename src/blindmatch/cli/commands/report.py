"""``report``: a saved match as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import options as opt
from blindmatch.cli.app import command

PAGE = Path("report.html")


@command(
    "blindmatch match a.npy b.npy --save match.npz",
    "blindmatch report match.npz --out report.html",
    "blindmatch report match.npz --source-images photos/ --truth rows",
)
def report(
    match: opt.Saved,
    items: opt.ItemOptions,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The report to write.")] = PAGE,
    title: Annotated[str | None, typer.Option(help="What was matched; the files by default.")] = None,
    json: opt.Json = False,
) -> None:
    """Make the report of a saved match. Cost, bound and status are computed again from the data and the proof."""
    from dataclasses import replace
    from functools import partial

    from blindmatch.cli.console import echo_json
    from blindmatch.cli.inputs import read_match
    from blindmatch.cli.items import check_items, item_files, shown_match
    from blindmatch.cli.outputs import Delivery, check_outputs, write_page

    check_items(items, out)
    check_outputs({"--out": out}, [match, *item_files(items)])
    result = read_match(match)
    shown = shown_match(items, result if title is None else replace(result, title=title))
    delivery = Delivery()
    if delivery.write(out, partial(write_page, shown)):
        answer = {"report": str(out), "bytes": out.stat().st_size}
        delivery.show(lambda: echo_json(answer)) if json else delivery.announce(f"Report: {out}")
    delivery.end()
