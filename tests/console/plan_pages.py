"""The page of plans in a test: seals of plans, and the seal in a page."""

import re
from html import unescape
from typing import Any

from django.test import Client

from console.plans.kind import Kind
from gateway.access import seals


def sealed(kind: Kind[Any], plan: Any, holder: str = "alice") -> str:
    """Return a plan as the page seals it for a user."""
    return seals.seal(kind.name, plan, holder=f"session:{holder}")


def seal_in(answer: Any) -> str:
    """Return the seal in a page, or in the answer with it."""
    page = answer if isinstance(answer, str) else answer.content.decode()
    found = re.search(r'name="plan" value="([^"]+)"', page)
    assert found is not None, page
    return unescape(found[1])


def applied(browser: Client, shown: Any, **fields: str) -> Any:
    """Apply the plan of a page that was shown; return the answer."""
    return browser.post("/plans/apply", {"plan": seal_in(shown), **fields})
