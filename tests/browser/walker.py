"""Somebody at a browser: fills Airflow's forms, reads its pages and the read server's answers, and takes pictures."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from playwright.sync_api import FloatRect, Locator, Page, sync_playwright

from infra.embedded.passwords import passwords
from tests.platform import Platform, await_true

SIZE = {"width": 1280, "height": 860}
PATIENCE_MS = 60_000
PICTURES = "PICTURES"
"""The environment variable that says where pictures are kept; else they are gone with the test."""


def chromium() -> str:
    """The machine's own Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found, "no Chromium on the path: sudo apt-get install -y chromium"
    return found


@dataclass
class Walker:
    """One walk, by the administrator of Airflow and the user of the read server."""

    platform: Platform
    page: Page
    pictures: Path
    name: str
    taken: list[str] = field(default_factory=list)

    def picture(self, step: str, height: int = SIZE["height"]) -> None:
        """What is on the screen now, from its top."""
        self.taken.append(f"{self.name}-{len(self.taken) + 1}-{step}.png")
        self.page.wait_for_timeout(1000)  # what moves comes to rest
        clip = FloatRect(x=0, y=0, width=SIZE["width"], height=height)
        self.page.screenshot(path=self.pictures / self.taken[-1], clip=clip)

    def looks_up(self, step: str, view: str, **key: str) -> list[dict[str, Any]]:
        """The rows of a key, as the read server's page shows them; and a picture of it."""
        self.page.goto(f"http://127.0.0.1:{self.platform.settings.query_port}/views/{view}?{urlencode(key)}")
        rows: list[dict[str, Any]] = json.loads(self.page.locator("pre").inner_text())["rows"]
        self.picture(step, height=160)
        return rows

    def logs_in(self) -> None:
        self.page.goto(f"{self.platform.settings.airflow_url}/dags/replay")
        self.page.locator("input[name=username]").fill("admin")
        self.page.locator("input[name=password]").fill(passwords(self.platform.settings)["airflow_admin_password"])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/dags/replay*")

    def triggers_replay(self, reason: str, *ticks: str, step: str | None = None, **choices: str) -> str:
        """Fill the form and send it; the id of the run. ticks: switches to turn; choices: fields with lists."""
        self.page.goto(f"{self.platform.settings.airflow_url}/dags/replay")
        self.page.get_by_test_id("trigger-dag-button").click()
        form = self.page.get_by_role("dialog")
        self.page.locator("#element_reason").fill(reason)
        for label, choice in choices.items():
            self._chooses(form, label, choice)
        for name in ticks:
            switch = form.locator(f"[id='switch:element_{name}']")
            switch.click()
            switch.evaluate("shown => shown.scrollIntoView({block: 'center'})")
        if step is not None:
            self.picture(step)
        self.page.get_by_test_id("trigger-dag-submit").click()
        self.page.wait_for_url("**/dags/replay/runs/*")
        found = re.search(r"/runs/([^/?]+)", self.page.url)
        assert found is not None
        return found[1]

    def _chooses(self, form: Locator, label: str, choice: str) -> None:
        form.locator(f"xpath=.//label[text()='{label}']/ancestor::*[.//input[@role='combobox']][1]").locator(
            "input[role=combobox]"
        ).fill(choice)
        self.page.keyboard.press("Enter")

    def _opens(self, run: str, task: str | None = None) -> None:
        """The page of a run, or of a task."""
        of_task = "" if task is None else f"/tasks/{task}"
        self.page.goto(f"{self.platform.settings.airflow_url}/dags/replay/runs/{run}{of_task}")

    def waits_for(self, run: str, task: str, state: str, seconds: float = 900) -> None:
        """Until a task is in the state."""

        def now() -> str:
            return str(self.platform.airflow(f"/dags/replay/dagRuns/{quote(run)}/taskInstances/{task}")["state"])

        await_true(lambda: now() in (state, "failed"), seconds, f"{task} of {run} does not end", every=1)
        assert now() == state, f"{task} of {run} failed"

    def sees_the_preview(self, run: str) -> None:
        """The log of the task, with its tables."""
        self.waits_for(run, "preview", "success")
        self.waits_for(run, "plan", "skipped")
        self._opens(run, "preview")
        last = self.page.get_by_text("page: file:")
        last.wait_for()
        place = last.bounding_box()
        assert place is not None
        self.picture("preview", height=int(place["y"]))  # a path of the machine is no part of it

    def compares(self, run: str) -> str:
        """The page with what differs, by the link of the task; its text."""
        self._opens(run, "compare/details")
        self.page.get_by_role("link", name="Data Docs").click()
        self.page.wait_for_url("**/replays/**")
        self.picture("differences")
        return self.page.locator("body").inner_text()

    def approves(self, run: str) -> str:
        """Answer under Required actions; what was shown there."""
        self._opens(run, "agree/required_actions")
        approve = self.page.get_by_role("button", name="Approve")
        approve.wait_for()
        self.picture("required-action")
        shown = self.page.locator("body").inner_text()
        approve.click()
        self.waits_for(run, "publish", "success")
        self._opens(run)
        self.page.get_by_text("8 Task Instances").wait_for()
        self.picture("published")
        return shown


@contextmanager
def walking(platform: Platform, name: str, otherwise: Path) -> Iterator[Walker]:
    """A browser, logged in at both doors; pictures go to the folder that PICTURES says, or else `otherwise`."""
    pictures = Path(os.environ.get(PICTURES) or otherwise)
    pictures.mkdir(parents=True, exist_ok=True)
    settings = platform.settings
    login = {
        "username": "tidemark",
        "password": passwords(settings)["query_password"],
        "origin": f"http://127.0.0.1:{settings.query_port}",
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, http_credentials=login).new_page()
        page.set_default_timeout(PATIENCE_MS)
        walker = Walker(platform, page, pictures, name)
        walker.logs_in()
        yield walker
        browser.close()
