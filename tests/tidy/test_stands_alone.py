"""Nothing in the project names a machine or a mirror: it must build from any checkout, anywhere."""

import re

from tests.tidy.project import ROOT, walk

# The patterns are put together here, so that this file does not hold what it forbids.
REGISTRIES = (
    ("py" + "pi", "org"),
    ("python" + "hosted", "org"),
    ("npm" + "js", "org"),
    ("maven", "org"),
    ("deb" + "ian", "org"),
    ("crates", "io"),
    ("go" + "lang", "org"),
)
HOST = re.compile("|".join(rf"\b{name}[.]{domain}\b" for name, domain in REGISTRIES))
# A path below a folder that belongs to one machine or one user.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|root|home)/\w")
NOT_TEXT = {".png", ".ico", ".woff2", ".bin", ".log", ".index", ".timeindex", ".snapshot"}


def complaints(text: str) -> list[str]:
    return [found.group() for rule in (HOST, MACHINE_PATH) for found in rule.finditer(text)]


def test_no_file_names_a_registry_or_a_path_of_a_machine() -> None:
    found = {
        str(path): hits
        for path in walk()
        if (ROOT / path).is_file() and path.suffix not in NOT_TEXT
        if (hits := complaints((ROOT / path).read_text(encoding="utf-8", errors="replace")))
    }

    assert found == {}


def test_a_planted_host_or_path_is_found() -> None:
    host = ".".join(REGISTRIES[0])
    path = "/" + "root/x"

    assert complaints(f"see https://{host}/x") == [host]
    assert complaints(f"cd {path}") == [path]
    assert complaints("bin/root/x and docs/work/y") == []
