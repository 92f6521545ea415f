"""Writes the pages of `docs/map` that follow from the code: modules, and who may import whom.

    python -m tests.tidy.pages

A module's row is the first sentence of its docstring, and a folder's text is that of its package,
so a page cannot say anything else than the code.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.tidy.import_map import ANYTHING, DOORS, GUARDED, MAY_IMPORT
from tests.tidy.project import PRODUCT, ROOT, Source, product

MAP: Final = Path("docs/map")
IMPORTS: Final = MAP / "imports.md"
PACKAGE_PAGES: Final = tuple(MAP / f"{top}.md" for top in (*PRODUCT, "bench"))
PAGES: Final = (*PACKAGE_PAGES, IMPORTS)
COMMAND: Final = "python -m tests.tidy.pages"
NOTHING: Final = "–"
IMPORT_PAGE: Final = f"""# Who may import whom

Written by `{COMMAND}` from `tests/tidy/import_map.py`, against which a test checks every import.
A name in the second column also allows everything below it.
The third column lists the guarded modules that a package may use, by name or by kind.
Any other outside package needs a line in one of `.ci/requirements*.in` and a reason.
A package has its own row where it may import more or less than the one above it.

{{rooms}}

## Guarded modules

Only the packages above may do I/O, start threads or use a database; `{ANYTHING}`: all modules.

{{kinds}}

## Packages that few modules may import

Whatever the first table says, only these modules import them.
They import names from a table within their own package only.

{{doors}}
"""


def pages() -> Mapping[Path, str]:
    """Return the text of each page."""
    found = {page: package_page(page.stem, list(product())) for page in PACKAGE_PAGES}
    return {**found, IMPORTS: import_page()}


def package_page(top: str, sources: Iterable[Source]) -> str:
    """Return the page of a top-level package: a section for each folder, a row for each module."""
    folders: dict[Path, list[Source]] = {}
    for source in sources:
        if source.top == top:
            folders.setdefault(source.path.parent, []).append(source)
    lines = [
        f"# What each module of `{top}/` does",
        "",
        f"Written by `{COMMAND}` from the docstrings of the modules: change those, and run it.",
    ]
    for folder in sorted(folders):
        lines += _section(folder, folders[folder])
    return "\n".join([*lines, ""])


def import_page() -> str:
    """Return the page with the three tables of the import map."""
    rooms = (
        (f"`{room}`", _names(ours), _names(guarded))
        for room, (ours, guarded) in sorted(MAY_IMPORT.items())
    )
    kinds = ((kind, _names(" ".join(members))) for kind, members in GUARDED.items())
    doors = (
        (f"`{package}`", _names(" ".join(sorted(modules)))) for package, modules in DOORS.items()
    )
    return IMPORT_PAGE.format(
        rooms=_table(("Package or module", "May import from Samsa", "Guarded modules"), rooms),
        kinds=_table(("Kind", "Modules"), kinds),
        doors=_table(("Package", "Imported by"), doors),
    )


def _section(folder: Path, sources: Iterable[Source]) -> Iterator[str]:
    yield from ("", f"## `{folder}/`", "")
    rows = []
    for source in sorted(sources, key=lambda each: each.path.name):
        sentence = first_sentence(source)
        if source.path.name == "__init__.py":
            yield from (sentence, "")
        else:
            rows.append((f"`{source.path.name}`", sentence))
    if rows:
        yield _table(("Module", "What it does"), rows)


def first_sentence(source: Source) -> str:
    docstring = ast.get_docstring(source.tree) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ").replace("|", r"\|")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([_row(head), "|" + "---|" * len(head), *map(_row, rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _names(text: str) -> str:
    return ", ".join(f"`{name}`" for name in text.split()) or NOTHING


def main() -> None:
    for path, text in pages().items():
        ROOT.joinpath(path).parent.mkdir(exist_ok=True)
        ROOT.joinpath(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
