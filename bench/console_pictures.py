"""Pictures of every page of the console, of a home where a demo runs: two themes, two widths.

For eyes: nothing compares them. What the browser complained of meanwhile is told beside them.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bench.broker_targets import ROOT
from bench.homes import BenchHome, running_home
from bench.measure import Cell, Table

if TYPE_CHECKING:
    # At run time only where pictures are wanted: a bench without them needs no browser.
    from playwright.sync_api import Browser, Page

TOPIC: Final = "samsa-demo.orders"
GROUP: Final = "samsa-demo.billing"
# What is shown, by the name of its pictures.
PAGES: Final = {
    "overview": "/",
    "topics": "/topics",
    "topic": f"/topics/{TOPIC}?tab=partitions",
    "topic-consumers": f"/topics/{TOPIC}?tab=consumers",
    "topic-configs": f"/topics/{TOPIC}?tab=configs",
    "topic-charts": f"/topics/{TOPIC}?tab=charts",
    "topic-messages": f"/topics/{TOPIC}/messages",
    "topic-produce": f"/topics/{TOPIC}/produce",
    "topic-new": "/topics/+new",
    "topic-edit": f"/topics/{TOPIC}/edit",
    "topic-partitions": f"/topics/{TOPIC}/partitions",
    "topic-delete": f"/topics/{TOPIC}/delete",
    "groups": "/groups",
    "group": f"/group?name={GROUP}",
    "group-reset": f"/group/reset?name={GROUP}",
    "group-delete": f"/group/delete?name={GROUP}",
    "brokers": "/brokers",
    "broker": "/brokers/1",
    "broker-clients": "/brokers/1?tab=clients",
    "broker-configs": "/brokers/1?tab=configs",
    "broker-log": "/brokers/1?tab=log",
    "broker-changes": "/brokers/1?tab=changes",
    "broker-restart": "/brokers/1/restart",
    "changes": "/changes",
    "change": "/changes/1",
    "users": "/users",
    "user": "/users/1",
    "user-new": "/users/new",
    "account": "/account",
    "password": "/password",
    "search": "/search?q=demo",
    "no-such-page": "/no/such/page",
}
THEMES: Final[Sequence[Literal["light", "dark"]]] = ("light", "dark")
WIDTHS: Final = (1280, 1680)
HEIGHT: Final = 860
MAX_HEIGHT: Final = 4_000
BROKERS: Final = 3
# Until every chart has a line and every group its verdict.
DEMO_SECONDS: Final = 90
# What a page asks for after it has loaded: charts, streams, the first records.
SETTLE_MS: Final = 1_500
PASSWORD: Final = "three unrelated words 7"  # noqa: S105 - of a home that is gone soon
STOP_SECONDS: Final = 15


def table(folder: Path) -> Table:
    """Make the pictures; one row for each page."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with running_home(brokers=BROKERS) as home, demo(home), sync_playwright() as driver:
        time.sleep(DEMO_SECONDS)
        browser = driver.chromium.launch(executable_path=chromium(), args=sandbox)
        complaints: dict[str, list[str]] = {name: [] for name in PAGES}
        statuses: dict[str, int] = {}
        sign_in_first(browser, home)
        for theme in THEMES:
            for width in WIDTHS:
                take(browser, home, folder, theme, width, statuses, complaints)
        browser.close()
    rows: list[Sequence[Cell]] = [
        (name, path, statuses[name], "; ".join(sorted(set(complaints[name])))[:200])
        for name, path in PAGES.items()
    ]
    number = len(PAGES) * len(THEMES) * len(WIDTHS)
    return Table(
        title=f"{number} pictures in {folder}",
        columns=("page", "address", "status", "complaints of the browser"),
        rows=rows,
    )


def chromium() -> str:
    return os.environ.get("CHROMIUM", "/usr/bin/chromium")


@contextmanager
def demo(home: BenchHome) -> Iterator[None]:
    with subprocess.Popen(
        [str(ROOT / "samsa"), "demo", "--bootstrap", home.status()["bootstrap"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def sign_in_first(browser: "Browser", home: BenchHome) -> None:
    """Change the password that the home was made with."""
    given = (home.folder / "secrets" / "admin-password").read_text(encoding="ascii").strip()
    page = browser.new_page()
    page.goto(home.status()["console"])
    sign_in(page, given)
    page.wait_for_url("**/password")
    page.get_by_label("Present password").fill(given)
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Change password").click()
    page.get_by_text("Your password is changed").wait_for()
    page.close()


def sign_in(page: "Page", password: str) -> None:
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def take(
    browser: "Browser",
    home: BenchHome,
    folder: Path,
    theme: Literal["light", "dark"],
    width: int,
    statuses: dict[str, int],
    complaints: dict[str, list[str]],
) -> None:
    """Take one picture of every page, as one browser shows it."""
    base = str(home.status()["console"]).rstrip("/")
    cluster_id = (home.folder / "cluster-id").read_text(encoding="ascii").strip()
    context = browser.new_context(
        color_scheme=theme, viewport={"width": width, "height": HEIGHT}, reduced_motion="reduce"
    )
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.extend([message.text] * (message.type == "error")))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(base)
    page.screenshot(path=folder / f"login-{theme}-{width}.png")
    sign_in(page, PASSWORD)
    page.wait_for_url(f"{base}/")
    for name, path in PAGES.items():
        said.clear()
        page.set_viewport_size({"width": width, "height": HEIGHT})
        answer = page.goto(f"{base}{path}{'&' if '?' in path else '?'}cluster={cluster_id}")
        page.wait_for_timeout(SETTLE_MS)
        # As a screen that is high enough: what sticks to the edges would hide the middle.
        whole: int = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(whole, MAX_HEIGHT)})
        page.screenshot(path=folder / f"{name}-{theme}-{width}.png")
        statuses[name] = answer.status if answer else 0
        complaints[name] += said
    context.close()
