"""Opens pages of the built site in Chromium, with every other address blocked, and keeps a log."""

import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking".split()
FLAGS += ["--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader"]
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # no other host has an address
HIDES_BARS = ["--hide-scrollbars"]  # the driver adds this; readers see the bars, so the tests do, too
HARMLESS = "Got invalid theme mode"  # the theme says so where no mode was chosen yet
THEME = "localStorage.setItem('mode', '{0}'); localStorage.setItem('theme', '{0}');"


def missing(what):
    """In CI a missing browser is a failure; at home the tests are skipped."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{what}: CI has to open the pages", pytrace=False)
    pytest.skip(f"{what}: the pages were not opened")


@contextmanager
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("the package playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("Chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, ignore_default_args=HIDES_BARS)
        yield browser
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(folder):
    """The address of a server of this folder, on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Visit:
    """One page in a browser window of its own. `problems` says what went wrong so far."""

    def __init__(self, browser, base, name, width=1280, theme=None, scripts=True, touch=False):
        self.base, self.scripts, self.problems, self.requests = base, scripts, [], []
        self.context = browser.new_context(viewport={"width": width, "height": 800}, java_script_enabled=scripts, has_touch=touch)
        self.context.set_default_timeout(60_000)
        if theme:
            self.context.add_init_script(THEME.format(theme))
        self.page = self.context.new_page()
        self.page.on("request", self.asked)
        self.page.on("requestfailed", self.failed)
        self.page.on("response", self.answered)
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("console", self.said)
        self.page.goto(base + name, wait_until="load")
        if scripts:
            self.page.evaluate("window.MathJax?.startup?.promise.then(() => null)")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def asked(self, request):
        self.requests.append(request.url)
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.problems.append(f"asks for {request.url[:200]}")

    def failed(self, request):
        # Without scripts Chromium cancels what the theme preloads of them.
        if self.scripts or request.resource_type != "script":
            self.problems.append(f"failed: {request.url[:200]}")

    def answered(self, response):
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url}")

    def said(self, message):
        where = message.location.get("url", "")
        if message.type == "error" and HARMLESS not in message.text:
            self.problems.append(f"console: {message.text} ({where})")

    def read_on(self):
        """Scroll through the whole page, as a reader does, so that what loads on sight is loaded."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        for top in [*range(0, height, 700), 0]:
            self.page.evaluate(f"window.scrollTo(0, {top})")
            self.page.wait_for_timeout(20)
        self.page.wait_for_load_state("networkidle")
