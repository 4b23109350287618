"""A real browser for the tests of pages."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

PATIENCE = 60_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium, headless; gone before other tests, as Playwright keeps a loop running in this thread."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = f"no browser: none of {', '.join(BROWSERS)} is installed; on Debian: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; at the end, nothing may have gone wrong in it, nor been asked of another host."""
    contexts, wrongs = [], []

    def open_page(url: str, **options: Any) -> Page:
        own = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}/"

        def watch(request: Request) -> None:
            if not request.url.startswith((own, "data:", "blob:")):
                wrongs.append(f"asked another host: {request.url}")

        context = browser.new_context(**({"viewport": {"width": 1200, "height": 850}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: wrongs.append(str(error)))
        page.on("request", watch)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrongs == []
