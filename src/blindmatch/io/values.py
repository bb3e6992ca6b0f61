"""The numbers that the cells of a column stand for: plain or grouped numbers, percent, money, dates, yes and no."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

NOTHING = frozenset(("", "-", "?", "na", "n/a", "nan", "null", "none", "#n/a"))  # what people write for no number
STARTS_AS_NUMBER = re.compile(r"[+-]?[$€£¥]? ?[.,]?\d")
_MONEY = r"[$€£¥]|EUR|USD|GBP|CHF|JPY"
_MARKED = re.compile(
    rf"({_MONEY})?[ \u00a0]?([+-]?[\d.,'’ \u00a0\u202f]+(?:[eE][+-]?\d+)?)[ \u00a0\u202f]?({_MONEY}|%)?"
)
_SPACES = re.compile(r"(?<=\d)[ '’\u00a0\u202f](?=\d{3}(?!\d))")  # group thousands, and nothing else
# Only one reading is possible: a comma that cannot separate thousands, or a point that cannot.
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:\.\d{3})+,\d*|\d*,(?:\d{1,2}|\d{4,})|0?,\d+|\d{4,},\d+)")
_POINT = re.compile(
    r"[+-]?(?:\d{1,3}(?:,\d{3}){2,}|\d{1,3}(?:,\d{3})+\.\d*|\d*\.(?:\d{1,2}|\d{4,})?|0?\.\d+|\d{4,}\.\d+)"
)
_EPOCH = datetime(1970, 1, 1)  # days are counted without a time zone
_DATES = (re.compile(r"\d{4}-\d\d-\d\d([Tt ].*)?"), re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})"))
_ANSWERS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0})


@dataclass(frozen=True)
class Writing:
    """The decimal sign of a table, and the sign that groups thousands ("" for none)."""

    point: str = "."
    group: str = ","

    @classmethod
    def of(cls, cells: Iterable[str], delimiter: str = ",") -> Writing:
        """The writing of a table. A comma that may be decimal or group thousands is a fault, except between commas.

        >>> Writing.of(["1,5", "2.321.305"], ";"), Writing.of(["1,250"], ";").group
        (Writing(point=',', group='.'), '')
        """
        comma = point = False
        for cell in cells:
            if point and "," not in cell and cell.count(".") < 2:
                continue  # it would say nothing new
            if found := _MARKED.fullmatch(cell):
                body = _SPACES.sub("", found[2]).strip().partition("e")[0].partition("E")[0]
                comma = comma or _COMMA.fullmatch(body) is not None
                point = point or _POINT.fullmatch(body) is not None
        if comma:
            return cls(".", "") if point else cls(",", ".")
        return cls(".", "," if point or delimiter == "," else "")

    def number(self, cell: str) -> tuple[float | None, str]:
        """The number in a cell, None if there is none, and its unit: "%", a currency, or nothing."""
        try:
            return (float(cell) if self.point == "." else float(_plain(cell, self))), ""
        except ValueError:
            found = _MARKED.fullmatch(cell)
        if not found or (found[1] and found[3]):
            return None, ""
        try:
            value = float(_plain(_SPACES.sub("", found[2]).strip(), self))
        except ValueError:
            return None, ""
        return (value / 100 if found[3] == "%" else value), found[1] or found[3] or ""


def _plain(body: str, writing: Writing) -> str:
    """A number with a decimal point and no groups; a ValueError if the groups are not of three digits."""
    whole, point, rest = body.partition(writing.point)
    if writing.group and writing.group in whole:
        first, *groups = whole.split(writing.group)
        if not re.fullmatch(r"[+-]?\d{1,3}", first) or not all(re.fullmatch(r"\d{3}", group) for group in groups):
            raise ValueError(body)
        whole = first + "".join(groups)
    if writing.point == "," and "." in whole + rest:
        raise ValueError(body)
    return f"{whole}.{rest}" if point else whole


def as_number(cell: str) -> float | None:
    """The number in a cell, or None; of a comma that may be decimal or group thousands, one of the two."""
    return next((value for way in (Writing(), Writing(",", ".")) if (value := way.number(cell)[0]) is not None), None)


def numbers_of(cells: Sequence[Any], writing: Writing, dates: bool = True) -> list[float | None]:
    """The number of each cell: nan where it is missing, None where it is something else.

    A date is a number of days since 1970, and an answer 0 or 1, if all cells of the column are.
    """
    values: list[float | None] = []
    units = set()
    for cell in cells:
        if isinstance(cell, str):
            value, unit = writing.number(cell)
            if value is not None and not math.isnan(value):
                units.add(unit)
            elif cell.lower() in NOTHING:
                value = math.nan
        else:
            value = _of_object(cell, dates)
        values.append(value)
    if ("%" in units and len(units) > 1) or len(units - {""}) > 1:
        odd = [isinstance(cell, str) and writing.number(cell)[1] != "" for cell in cells]
        return [None if strange else value for value, strange in zip(values, odd, strict=True)]
    texts = [cell.lower() for cell in cells if isinstance(cell, str) and cell.lower() not in NOTHING]
    if not texts or any(value is not None and not math.isnan(value) for value in values):
        return values
    known = next((answers for answers in _ANSWERS if set(texts) <= set(answers)), None)
    if known is None and dates:
        known = _days(texts)
    if known is None:
        return values
    return [known.get(cell.lower(), math.nan) if isinstance(cell, str) else math.nan for cell in cells]


def _of_object(cell: Any, dates: bool) -> float | None:
    """The number of a cell that is not text, as spreadsheets, databases and data frames have them."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(cell, date):  # a datetime is one too
        return _day(cell) if dates else None
    try:
        return float(cell) if not isinstance(cell, bytes | list | tuple | dict) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _day(when: date) -> float:
    if not isinstance(when, datetime):
        return float(when.toordinal() - _EPOCH.toordinal())
    plain = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    return (plain - _EPOCH).total_seconds() / 86400


def _days(texts: list[str]) -> dict[str, float] | None:
    """The day of each text, if all are dates and there is only one way to read them."""
    iso, parts = _DATES
    try:
        if all(iso.fullmatch(text) for text in texts):
            return {text: _day(datetime.fromisoformat(text)) for text in texts}
        found = [parts.fullmatch(text) for text in texts]
        numbers = [(int(one[1]), int(one[3]), int(one[4]), one[2]) for one in found if one is not None]
        day_first = any(first > 12 or sign == "." for first, _, _, sign in numbers)
        month_first = any(second > 12 for _, second, _, _ in numbers)
        if len(numbers) < len(texts) or day_first == month_first:
            return None
        order = [(second, first) if day_first else (first, second) for first, second, _, _ in numbers]
        dated = zip(texts, order, numbers, strict=True)
        return {text: _day(date(year, month, day)) for text, (month, day), (_, _, year, _) in dated}
    except ValueError:
        return None
