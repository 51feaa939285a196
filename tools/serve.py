"""Serve _build/html on a local address, and open a browser where there is a screen."""

import os
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def server(first=8000):
    """A server on the first free port from `first` on."""
    for port in range(first, first + 50):
        try:
            return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(SITE)))
        except OSError:
            continue
    sys.exit(f"no free port between {first} and {first + 49}")


def main():
    with server() as http:
        address = f"http://127.0.0.1:{http.server_port}/"
        print(f"Serving the book on {address} (Ctrl-C ends it)", flush=True)
        if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(address)
        try:
            http.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
