"""A real browser for the tests of the report: Debian's chromium, or Chrome, driven through its own driver."""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
WHY_NOT = "no browser to test the report in: apt-get install chromium chromium-driver, and pip install selenium"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
DESKTOP, PHONE = (1280, 800), (390, 844)


class Browser:
    """One browser; each test opens its page anew."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, size: tuple[int, int] = DESKTOP, *, scheme: str = "light") -> None:
        """Open a file as if for the first time, and forget what the browser has told so far."""
        width, height = size
        phone = width < 500
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        # Without smooth scrolling, what a test clicks at stays where it is.
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.as_uri())
        self.run("try { localStorage.clear() } catch {}")

    def command(self, name: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page; what it returns."""
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> Any:
        """The first element that a CSS selector finds."""
        return self.driver.find_element("css selector", selector)

    def errors(self) -> list[str]:
        """What the page complained about in the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def point(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Move the mouse to a place in an element, given as shares of its width and height."""
        box = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            selector,
        )
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self.command("Input.dispatchMouseEvent", type="mouseMoved", pointerType="mouse", **at)

    def press(self, key: str) -> None:
        """Press a key that has a name."""
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.command("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in a folder; ended in any case."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_page_load_timeout(60)
        yield Browser(driver)
    finally:
        driver.quit()


def column(browser: Browser, at: int) -> list[str]:
    """The visible cells of a column of the table."""
    return browser.run(
        "return [...document.querySelectorAll('#pairs-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.children[arguments[0]].textContent.trim())",
        at,
    )
