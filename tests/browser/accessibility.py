"""axe-core on a page: faults that prevent some users from using it."""

from typing import Final, TypedDict

from playwright.sync_api import Page

from tests.suite.extras import AXE

# Of axe's four degrees, those that prevent some users from using a page.
FORBIDDEN: Final = ("serious", "critical")
# Everything in the light theme; the dark one has other colours and the same elements.
ALL_RULES: Final = "{resultTypes: ['violations']}"
COLOUR_RULES: Final = "{resultTypes: ['violations'], runOnly: ['color-contrast']}"


class Node(TypedDict):
    html: str
    failureSummary: str


class Violation(TypedDict):
    id: str
    impact: str
    help: str
    nodes: list[Node]


def complaints(page: Page, *, only_colours: bool = False) -> list[str]:
    """Return what is serious, one line for each element."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        # Not by a script element, which the policy of the page would refuse.
        page.evaluate((AXE.folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    rules = COLOUR_RULES if only_colours else ALL_RULES
    found: list[Violation] = page.evaluate(f"axe.run(document, {rules}).then(r => r.violations)")
    return [
        f"{violation['impact']} {violation['id']}: {node['html']}: {node['failureSummary']}"
        for violation in found
        if violation["impact"] in FORBIDDEN
        for node in violation["nodes"]
    ]
