"""What ``align`` says about a map."""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from blindmatch.alignment.aligner import BlindAligner
from blindmatch.io.embeddings import Embeddings
from blindmatch.report.verdict import number, percent


def _verdict(aligner: BlindAligner) -> str:
    """What can be said about the map without knowing a pair."""
    support, others, score, chance = aligner.support_, len(aligner.candidates_) - 1, aligner.score_, aligner.chance_
    if support > 0:
        same = f"{support} of {others} other starts led to the same map"
        doubt = ", but the score cannot confirm it: check a few pairs."
        return same + (doubt if chance >= score else ": it is probably right. Check a few pairs.")
    alone = "There was one candidate only" if others == 0 else f"None of {others} other starts led to the same map"
    more = ", or try more with --candidates" if others == 0 else ""
    if score > max(chance, (1 + chance) / 2):  # False where one of them is nan
        return (
            f"{alone}, but the score is above that of an unrelated cloud: the map may be right. Check a few pairs "
            f"before you use it{more}."
        )
    if others == 0:
        return f"{alone}, so nothing shows whether the map is right: try more with --candidates."
    return f"{alone}: do not trust it without a check."


def alignment_text(aligner: BlindAligner, sides: tuple[Embeddings, Embeddings], seconds: float) -> list[object]:
    """A table of the candidates, how well the sets overlap, and the verdict."""
    table = Table(show_edge=False, pad_edge=False)
    for title in ("clusterings", "cost", "gap", "status", "overlap", "likeness", ""):
        table.add_column(title, justify="left" if title in ("status", "") else "right")
    for index, candidate in enumerate(aligner.candidates_):
        result = candidate.result
        i, j = candidate.clusterings
        kept = "kept" if index == aligner.best_ else ""
        proof = (number(result.cost), percent(result.gap), result.status)
        table.add_row(f"{i} and {j}", *proof, f"{candidate.overlap:.4f}", percent(candidate.likeness), kept)
    shapes = [f"{len(side)} x {side.values.shape[1]}" for side in sides]
    components = aligner.alignment_.source.components
    return [
        Text(f"{shapes[0]} aligned with {shapes[1]} in {components} dimensions, {seconds:.0f} s.\n"),
        table,
        Text(f"\n{_overlap(aligner)}"),
        *([Text("The time limit cut the search short.")] if aligner.limited_ else []),
        Text(_verdict(aligner), style="bold"),
    ]


def _overlap(aligner: BlindAligner) -> str:
    """How well the two sets overlap, on a scale that needs no knowledge of them."""
    best, floor, ceiling = aligner.overlap_, aligner.floor_, aligner.ceiling_
    parts = f"(Overlap {best:.4f}, after a random rotation {floor:.4f}"
    if math.isnan(ceiling):
        return f"No score: there are too few points to keep some unseen. {parts}.)"
    parts += f", of two halves of one set {ceiling:.4f}.)"
    if math.isnan(aligner.score_):
        return f"No score: two halves of one set overlap hardly better than after a random rotation. {parts}"
    chance = aligner.chance_
    told = (
        f"Score {aligner.score_:.2f}: how well points that the search did not see overlap. 0 is a random rotation, 1 "
        "two halves of one set, higher is better"
    )
    if not math.isnan(chance):
        told += f"; an unrelated cloud reaches {chance:.2f}"
    if chance >= aligner.score_:
        told += ", which is no less, so the score tells nothing here"
    return f"{told}. {parts}"


def alignment_json(aligner: BlindAligner, sizes: tuple[int, int], seconds: float) -> dict[str, object]:
    """The same, ready for JSON."""
    candidates = [
        {
            "clusterings": list(candidate.clusterings),
            **{key: getattr(candidate.result, key) for key in ("cost", "lower_bound", "gap", "status")},
            "overlap": candidate.overlap,
            "likeness": candidate.likeness,
        }
        for candidate in aligner.candidates_
    ]
    fitted = ("score", "support", "chance", "overlap", "floor", "ceiling", "best", "limited")
    return {
        "source_size": sizes[0],
        "target_size": sizes[1],
        "components": aligner.alignment_.source.components,
        "verdict": _verdict(aligner),
        **{key: getattr(aligner, f"{key}_") for key in fitted},
        "candidates": candidates,
        "seconds": seconds,
    }
