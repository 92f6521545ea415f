"""Files of other projects are the ones that were looked at, and the pages are light."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from django.test import Client

from tests.console import cluster_rows

STATIC = Path(__file__).resolve().parents[4] / "console" / "static" / "console"
VENDOR = STATIC / "vendor"
# All that a browser loads for it, compressed.
MAX_FIRST_PAGE_BYTES = 150_000
HASHES = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "htmx-sse.min.js": "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


@pytest.mark.parametrize("name", HASHES)
def test_a_vendored_file_is_the_one_of_its_package(name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == HASHES[name]


def test_every_vendored_file_has_a_hash_a_licence_and_a_row() -> None:
    readme = (VENDOR / "README.md").read_text(encoding="utf-8")
    code = {path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    licences = {path.name for path in VENDOR.glob("*.LICENSE")}

    assert code == set(HASHES)
    assert [name for name in code | licences if f"`{name}`" not in readme] == []
    assert {name.partition(".")[0] for name in code} == {
        path.partition(".")[0] for path in licences
    }


def test_the_first_page_is_light(alice: Client) -> None:
    cluster_rows.cluster()
    page = alice.get("/").content
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.decode())
    # Modules that others import, and what charts will load.
    loaded = {STATIC / name.removeprefix("/static/console/") for name in named}
    loaded |= {*STATIC.glob("*.js"), VENDOR / "uPlot.iife.min.js", VENDOR / "uPlot.min.css"}

    weight = sum(len(gzip.compress(body)) for body in [page, *(p.read_bytes() for p in loaded)])

    assert weight <= MAX_FIRST_PAGE_BYTES
