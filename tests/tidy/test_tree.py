"""The tree of files: every module used, every test in its place, every folder explained."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bench.suites import SUITES
from brokers.protocol.apis import API_TABLE
from tests.tidy.project import NOT_PYTHON_PRODUCT, PRODUCT, ROOT, Source, product, sources, walk

# Imported by name from a table when they are first needed.
FROM_TABLES = {f"brokers.protocol.messages.{api.module}" for api in API_TABLE}
FROM_TABLES |= {f"bench.{suite}" for suite in SUITES}
# Found by frameworks: an app's module, a database backend and filters of templates by Django, the
# application by the web server, a command by its name on the command line.
FROM_TABLES |= {"gateway.sqlite.base", "console.apps", "gateway.asgi"}
FROM_TABLES |= {
    f"console.templatetags.{name}" for name in ("blocks", "prose", "quantities", "times")
}
FROM_TABLES |= {
    f"brokers.controlplane.management.commands.{name}"
    for name in ("agent", "rotate_secret", "verify_audit")
}
FROM_TABLES |= {
    f"gateway.access.management.commands.{name}"
    for name in ("ensure_first_user", "grant_role", "tokens")
}
FROM_TABLES |= {"console.management.commands.collector"}
FROM_TABLES |= {
    f"connectors.management.commands.connect_{name}" for name in ("beat", "rotate_key", "worker")
}
# Found by authors of connectors, for their tests.
FROM_TABLES |= {"connectors.sdk.testing", "connectors.sdk.contract"}
# Found by authors of topologies, and for their tests.
FROM_TABLES |= {f"spark_integration.streams.{name}" for name in ("building", "memory", "topics")}

# Doors of a room whose caller comes with a later room: module -> who will open it. A row goes when
# its caller is there, which the test below demands.
AWAITING_CALLER = {
    "spark_integration.datasource.door": "Spark, by the name of its package",
}

# Folders of tests that mirror no folder of the code.
TEST_FOLDERS = {"builders", "fakes", "contracts", "stories", "interop", "oracles"}
TEST_FOLDERS |= {"crash", "fuzz", "perf", "tidy", "data", "suite", "browser", "spark"}
TEST_FOLDERS |= {"answers", "walks"}


def used_names() -> set[str]:
    """Every dotted name that product code imports, or names in a string, as Django does."""
    used = set()
    for source in product():
        # To be measured is not to be used: a benchmark counts as a caller within bench only.
        imported = {name for _, name in source.imports()}
        used |= {name for name in imported if source.top != "bench" or name.startswith("bench.")}
        used |= {
            node.value
            for node in source.nodes()
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"\w+(\.\w+)+", node.value)
        }
    return used


def unused_modules() -> set[str]:
    used = used_names()
    return {
        source.dotted
        for source in product()
        if source.path.stem not in {"__init__", "__main__"}
        and source.dotted not in FROM_TABLES
        and not is_program(source)
        and not any(f"{name}.".startswith(f"{source.dotted}.") for name in used)
    }


def is_program(source: Source) -> bool:
    """Tell whether a module is started by its name."""
    return any(
        isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
        for node in source.tree.body
    )


def test_every_module_is_used_or_awaits_a_named_caller() -> None:
    assert unused_modules() == set(AWAITING_CALLER)


def test_the_test_tree_mirrors_the_code() -> None:
    """`tests/a/test_b_c.py` tests the module or package `a/b.py` or `a/b.js`; `_c` is an aspect."""
    strays = [
        str(source.path)
        for source in sources()
        if source.top == "tests"
        and source.path.stem.startswith("test_")
        and source.path.parts[1] not in TEST_FOLDERS
        and not modules_named_by(source.path)
    ]

    assert strays == []


def modules_named_by(test: Path) -> list[Path]:
    folder = Path(*test.parts[1:-1])
    words = test.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:length]) for length in range(1, len(words) + 1)]
    candidates = [folder / f"{name}{end}" for end in (".py", ".js", "") for name in names]
    return [candidate for candidate in candidates if folder.parts and (ROOT / candidate).exists()]


def test_the_plans_of_the_house_name_every_folder() -> None:
    pages = [Path(ROOT, "docs", "architecture.md"), *Path(ROOT, "docs", "map").glob("*.md")]
    page = "".join(page.read_text(encoding="utf-8") for page in pages)

    folders = [path for path in walk() if (ROOT / path).is_dir() and is_a_place(path)]
    missing = [str(folder) for folder in folders if f"{folder}/" not in page]

    assert missing == []


def files_of(folder: Path) -> Iterator[Path]:
    return (path for path in walk(ROOT / folder) if (ROOT / path).is_file())


def is_a_place(folder: Path) -> bool:
    """Tell whether a reader needs to know a folder; mirrors in tests need no words."""
    # Git knows no empty folders, so neither does the project.
    if not any(files_of(folder)):
        return False
    if folder.parts[0] != "tests":
        return True
    return len(folder.parts) <= 2 and folder.name not in {*PRODUCT, "bench"}


def test_no_package_is_a_stub() -> None:
    """A folder comes with its first working module, not before."""
    packages = [source.path.parent for source in product() if source.path.name == "__init__.py"]

    stubs = [str(package) for package in packages if len(list(files_of(package))) == 1]

    assert stubs == []


def test_only_known_folders_stand_at_the_top() -> None:
    tops = {path.parts[0] for path in walk() if len(path.parts) > 1}

    assert tops <= {*PRODUCT, *NOT_PYTHON_PRODUCT, "bench"}
