"""The built site that the tests of this folder look at."""

import pytest
from browser import chromium
from html_rules import SITE

pytest.register_assert_rewrite("live")  # so that its checks say what was there


def pytest_configure(config):
    config.addinivalue_line("markers", "site: opens the built site in Chromium")


@pytest.fixture(scope="session")
def built():
    """The folder of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.fail("_build/html/index.html is missing: run `make book` first", pytrace=False)
    return SITE


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser
