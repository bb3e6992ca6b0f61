"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindmatch.cli import completion

ITEMS = "Options for what is known about the items; the matching never sees it"
FILES = ".npy, .npz, .safetensors, .parquet, .csv, .tsv"


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, a line each."""
    return "Examples:\n\n" + "\n\n".join(f"  [bold]{line}[/bold]" for line in lines)


def show_version(wanted: bool) -> None:
    """Print the version and end, if wanted."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"blindmatch {version('blindmatch')}")
        raise typer.Exit


Solver = Annotated[
    str,
    typer.Option("--solver", "-s", help="A name from 'blindmatch solvers'.", autocompletion=completion.solvers),
]
Distortion = Annotated[
    str,
    typer.Option(
        "--distortion",
        "-d",
        help="What to compare: gw, gaussian, cka, mutual-knn, kl or inner-product.",
        autocompletion=completion.distortions,
    ),
]
Standardize = Annotated[
    bool, typer.Option("--standardize/--no-standardize", help="Bring both kernels to a common scale first.")
]
Known = Annotated[
    list[str] | None,
    typer.Option("--known", metavar="S:T", help="A pair that is known, by name or by index; may be repeated."),
]
KnownPairs = Annotated[
    Path | None, typer.Option("--known-pairs", metavar="FILE", help="Known pairs, a line 'source,target' each.")
]
Forbid = Annotated[
    list[str] | None,
    typer.Option("--forbid", metavar="S:T", help="A pair that must not be used, by name or index; may be repeated."),
]
ForbiddenPairs = Annotated[
    Path | None, typer.Option("--forbidden-pairs", metavar="FILE", help="Such pairs, a line 'source,target' each.")
]
Similarity = Annotated[
    Path | None,
    typer.Option(
        "--similarity", metavar="FILE", help="A matrix, sources by targets: larger for pairs that seem more alike."
    ),
]
SimilarityWeight = Annotated[
    float, typer.Option("--similarity-weight", help="What a unit of similarity takes off the cost.")
]
UnmatchedCost = Annotated[
    float | None,
    typer.Option(
        "--unmatched-cost",
        metavar="PRICE",
        help="What each item without a partner adds to the cost, on either side; without it all are matched. About the "
        "number of items times the mean loss that a pair may have (gw: 0 perfect, 2 random).",
    ),
]
MaxUnmatched = Annotated[
    int | None,
    typer.Option("--max-unmatched", metavar="N", help="At most so many of the smaller set stay unmatched."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Then the best so far is returned.")
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")]
Threads = Annotated[int | None, typer.Option("--threads", help="How many to use; all cores by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", "-c", metavar="FILE", help="Write the proof of the bound (.npz).")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="Keep the state of branch-and-bound there, and go on from it."),
]
Report = Annotated[
    Path | None, typer.Option("--report", "-r", metavar="FILE", help="Write a report to look at (.html).")
]
Assess = Annotated[bool, typer.Option("--assess", help="Tell whether to believe it, as 'blindmatch assess' does.")]
MinConfidence = Annotated[
    float | None,
    typer.Option("--min-confidence", metavar="P", help="Keep only pairs that are right with this probability."),
]
Background = Annotated[
    Path | None,
    typer.Option("--background", metavar="FILE", help="Other items of the target's space: makes the test exact."),
]
Draws = Annotated[int, typer.Option("--draws", help="Unrelated spaces to match, at most.")]
AssessTime = Annotated[float, typer.Option("--assess-time", metavar="SECONDS", help="Time limit of the assessment.")]
Truth = Annotated[
    str | None,
    typer.Option(
        "--truth",
        metavar="FILE",
        help="True pairs to compare with, a line 'source,target' each; or 'rows' or 'names', where partners have the "
        "same row or name. A source that is not named there has no partner.",
        rich_help_panel=ITEMS,
    ),
]
SourceNames = Annotated[
    Path | None,
    typer.Option("--source-names", metavar="FILE", help="Names of the sources, a line each.", rich_help_panel=ITEMS),
]
TargetNames = Annotated[
    Path | None,
    typer.Option("--target-names", metavar="FILE", help="Names of the targets, a line each.", rich_help_panel=ITEMS),
]
SourceImages = Annotated[
    Path | None,
    typer.Option(
        "--source-images",
        metavar="PATH",
        help="Pictures of the sources for the report: a folder (files called like the items, or numbered), or a "
        "file that lists them, a line each.",
        rich_help_panel=ITEMS,
    ),
]
TargetImages = Annotated[
    Path | None,
    typer.Option("--target-images", metavar="PATH", help="The same for the targets.", rich_help_panel=ITEMS),
]
