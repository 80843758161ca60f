"""A real browser without a window, for pages that are opened from files."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from model_tests.support.tools import missing

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Chromium; without one the test is skipped."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        missing("chromium not installed (.ci/servers installs it)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@dataclasses.dataclass(frozen=True)
class Opened:
    """A page that was opened.

    Attributes:
        page: it.
        errors: what it wrote to the console as an error, or did not catch.
        asked: every address that it asked for besides its own.
    """

    page: Page
    errors: list[str]
    asked: list[str]


@contextlib.contextmanager
def opened(started: Browser, file: Path, *, width: int = 1280, **options: Any) -> Iterator[Opened]:
    """The page in ``file``, in a window of that width."""
    context = started.new_context(viewport={"width": width, "height": 900}, **options)
    page, errors, asked = context.new_page(), list[str](), list[str]()
    address = file.resolve().as_uri()
    page.on("console", lambda message: errors.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: None if request.url == address else asked.append(request.url))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(address)
    yield Opened(page, errors, asked)
    context.close()
