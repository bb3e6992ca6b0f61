"""``models``: the encoders that have a name of their own."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from blindmatch.cli.app import command

if TYPE_CHECKING:
    from rich.table import Table


@command(
    "blindmatch models",
    "blindmatch models dino --modality vision",
    "blindmatch models --offline",
    "blindmatch models --paper --json",
)
def models(
    word: str | None = None,
    modality: str | None = None,
    family: str | None = None,
    paper: bool = False,
    offline: bool = False,
    json: bool = False,
) -> None:
    """List the models for 'blindmatch embed'. Any other timm, sentence-transformers or open_clip name works too."""
    from blindmatch.cli.console import echo_json, output
    from blindmatch.encoders.registry import MODALITIES, list_models
    from blindmatch.errors import unknown_name

    if modality is not None and modality not in MODALITIES:
        raise unknown_name("--modality", modality, MODALITIES)
    families = sorted({model.family for model in list_models()})
    if family is not None and family.lower() not in {name.lower() for name in families}:
        raise unknown_name("--family", family, families)
    rows = [
        row
        for row in (model.row() for model in list_models())
        if modality in (None, row["modality"])
        and (family is None or row["family"].lower() == family.lower())
        and (not paper or row["paper"])
        and (not offline or row["package"] is not None)
        and (word is None or word.lower() in f"{row['id']} {row['name']} {row['library_name']}".lower())
    ]
    if not rows:
        words = {part for model in list_models() for part in (model.id, *model.id.split("-"))}
        close = difflib.get_close_matches((word or "").lower(), words, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "; 'blindmatch models' lists them all"
        raise ValueError(f"no model is listed with {f'{word!r} and ' if word else ''}these options{hint}")
    if json:
        echo_json(rows)
    else:
        output().print(_table(rows))


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), box=None)
    table.add_column("model", no_wrap=True)
    table.add_column("in its library", overflow="fold")
    for title in ("size", "input", "dim"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        sizes = ["" if row[key] is None else str(row[key]) for key in ("input_size", "dimension")]
        library = row["library_name"] if row["package"] is None else row["package"]
        table.add_row(Text(row["id"]), Text(library), _millions(row["parameters"]), *sizes)
    return table


def _millions(count: int | None) -> str:
    """A number of parameters for people.

    >>> _millions(1_134_769_664), _millions(5_524_416), _millions(None)
    ('1135 M', '5.5 M', '')
    """
    if count is None:
        return ""
    return f"{count / 1e6:.0f} M" if count >= 1e7 else f"{count / 1e6:.1f} M"
