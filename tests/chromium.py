"""A headless Chromium, driven through its DevTools protocol."""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = "no Chromium on the PATH (chromium, chromium-browser or google-chrome)"
PATIENCE = 120  # seconds to wait for a page or the browser
# No transitions, so that colours change at once. Set before a page loads, as later it restyles everything.
AT_ONCE = """
const sheet = new CSSStyleSheet();
sheet.replaceSync("* {transition: none !important}");
document.adoptedStyleSheets = [sheet];
"""

# No host name resolves, so every request to another host fails.
QUIET = "extensions background-networking component-update sync gpu dev-shm-usage"
FLAGS = [
    *["--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars"],
    *(f"--disable-{part}" for part in QUIET.split()),
    *["--remote-debugging-port=0", "--remote-allow-origins=*"],
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class Chromium:
    """A browser with one page; `heard` has the events since the page was opened.

    A page that is not `drawn` is in a tab without a window. It is laid out and its scripts run, but no frame
    is painted, which saves a third of the work. Callbacks for frames (IntersectionObserver) are not called.
    """

    def __init__(self, drawn=True):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [PROGRAM, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(command, **quiet)
        self.count, self.heard = 0, []
        server, browser = self._addresses()
        # Stays open, as a tab without a window lives only as long as the connection that created it.
        self.socket = self.browser = websocket.create_connection(server + browser, timeout=PATIENCE)
        tab = self.call("Target.createTarget", url="about:blank", hidden=not drawn, background=not drawn)
        page = f"{server}/devtools/page/{tab['targetId']}"
        self.socket = websocket.create_connection(page, timeout=PATIENCE)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=f"{{{AT_ONCE}}}")

    def _addresses(self):
        """The protocol's server and the browser's path on it; waits until the browser is up."""
        port = Path(self.profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE
        while not (port.exists() and len(port.read_text().split()) == 2):
            assert self.process.poll() is None, "Chromium ended when it was started"
            assert time.monotonic() < deadline, "Chromium did not start in time"
            time.sleep(0.05)
        number, browser = port.read_text().split()
        return f"ws://127.0.0.1:{number}", browser

    def close(self):
        self.socket.close()
        self.browser.close()
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.count:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self.heard.append(message)

    def wait_for(self, event):
        while not any(message["method"] == event for message in self.heard):
            self.heard.append(json.loads(self.socket.recv()))

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look(self, width, height, scheme="light"):
        """Set the size of the screen and the colour scheme.

        A mobile device is not emulated: it zooms out until the page fits, so nothing would ever stick out.
        """
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **shape)
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[wish])

    def open(self, address):
        """Open a page and wait for it and its fonts."""
        self.heard.clear()
        self.call("Page.navigate", url=address)
        self.settle()

    def settle(self):
        self.wait_for("Page.loadEventFired")
        self.evaluate("document.fonts.ready.then(() => 0)")

    def complaints(self):
        """Console errors and failed requests since the page was opened."""
        wrong = []
        for message in self.heard:
            method, said = message["method"], message["params"]
            if method == "Runtime.exceptionThrown":
                wrong.append(said["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "assert", "warning"):
                wrong.append(" ".join(str(value.get("value", "")) for value in said["args"]))
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                wrong.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
            elif method == "Network.loadingFailed" and not said.get("canceled"):
                wrong.append(f"a request failed: {said['errorText']}")
        return wrong
