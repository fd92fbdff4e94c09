"""A real browser for the tests of the wall; they are skipped, with the reason, where there is none."""

import os
import shutil

import pytest

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    expect = sync_playwright = None

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
DESK = {"viewport": {"width": 1300, "height": 850}, "locale": "en-GB"}

THERE = {
    "board": ".card",
    "graph": "canvas[aria-busy=false]",
    "agents": ".lane",
    "inbox": ".matter",
    "task": "article.task",
}
"""What is on a screen once it is there."""


@pytest.fixture(scope="module")
def browser():
    if sync_playwright is None:
        pytest.skip("playwright is not installed")
    if not CHROMIUM:
        pytest.skip("no Chromium is installed; $CHROMIUM names one")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


def go(page, origin, route):
    """Show a screen and wait until it is there."""
    page.goto(f"{origin}/#/{route}")
    page.wait_for_selector(THERE[route.partition("/")[0]])
