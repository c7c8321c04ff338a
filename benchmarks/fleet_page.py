"""What the page of a fleet costs: opening it with a thousand nodes, and keeping five of it open.

`python benchmarks/fleet_page.py`: some eight minutes. Real processes: a root, two sites, eight
rooms, and a crowd of simulated nodes below each room; Debian's Chromium opens the views of the
fleet and of now. The time is the page's own, from when it was asked for until its last row is
drawn. The cost of open pages is the processor time of the root with them, less that without. Two
crowds run at a time, until all of their nodes have reported; then they are paused, because a
thousand clients in Python and a browser are more than one small machine can run.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
from playwright.sync_api import Page, sync_playwright

from support.programs import SUBMERGE, Program, Programs, free_port

SITES, ROOMS = 2, 8
CHROMIUM = "/usr/bin/chromium"

AT_ONCE = 2
"""Crowds that run at a time."""

PATIENCE_S = 300.0
"""For all of their nodes to report."""


def schema() -> str:
    """Return the section of the room's channels."""
    command = [SUBMERGE, "lab", "crowd", "schema"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


class ManyLevels:
    """A root, sites below it, rooms below those, and nodes below each room."""

    def __init__(self, programs: Programs, nodes: int, report_s: float) -> None:
        self._programs, self._nodes, self._report_s = programs, nodes, report_s
        self._rooms: list[int] = []
        self.page = free_port()
        self.root, port = self._aggregator("root", None, 0)
        sites = [self._aggregator(f"site-{i}", "root", port) for i in range(SITES)]
        for i in range(ROOMS):
            _, above = sites[i % SITES]
            _, room = self._aggregator(f"room-{i}", f"site-{i % SITES}", above)
            self._rooms.append(room)

    def crowd(self, i: int) -> Program:
        """Start the nodes of a room; they report after their first sixty rows, a second or two."""
        return self._programs.start(
            *(
                "lab",
                "crowd",
                "--into",
                f"grpc://127.0.0.1:{self._rooms[i]}",
                "--parent",
                f"room-{i}",
            ),
            *("--insecure", "--nodes", str(self._nodes // ROOMS), "--prefix", f"node-{i}-"),
            *("--rate", "40", "--report-every", str(self._report_s)),
        )

    def _aggregator(self, name: str, parent: str | None, above: int) -> tuple[Program, int]:
        port, folder = free_port(), self._programs.folder
        up = f'[parent]\nname = "{parent}"\nurl = "grpc://127.0.0.1:{above}"\ninsecure = true\n'
        page = f'[page]\naddress = "127.0.0.1:{self.page}"\n'
        text = (
            f'node = "{name}"\nstore = "{folder}/{name}.db"\nstatus.address = ""\n'
            f'[listen.grpc]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
            f"{page if parent is None else up}[timing]\nreport_every_s = {self._report_s}\n"
            f"{schema() if parent is None else '[groups.room]'}\n"
        )
        config = self._programs.file(f"{name}.toml", text)
        program = self._programs.start("aggregator", "--config", config)
        program.until("serving")
        return program, port


def opened(page: Page, url: str) -> tuple[int, float]:
    """Open the fleet; return how many rows are drawn, and when, in milliseconds of the page."""
    page.goto(url)
    table = page.wait_for_selector("#nodes[data-drawn]", timeout=60_000)
    return int(table.get_attribute("data-rows")), float(table.get_attribute("data-drawn"))


def sorted_in(page: Page) -> float:
    """Return how long sorting by another column takes, in milliseconds."""
    page.evaluate("document.querySelector('#nodes').removeAttribute('data-drawn')")
    began = page.evaluate("performance.now()")
    page.click("button[data-column=readings]")
    table = page.wait_for_selector("#nodes[data-drawn]")
    return float(table.get_attribute("data-drawn")) - began


def share_of_core(process: psutil.Process, seconds: float) -> float:
    """Return the share of a core that a process takes."""
    before, at = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - at)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--report-every", type=float, default=20.0)
    args = parser.parse_args()
    with Programs() as programs, sync_playwright() as playwright:
        fleet = ManyLevels(programs, args.nodes, args.report_every)
        url = f"http://127.0.0.1:{fleet.page}/fleet?group=room"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        wanted = SITES  # a room reports once it has a node
        for first in range(0, ROOMS, AT_ONCE):
            crowds = [fleet.crowd(first + i) for i in range(AT_ONCE)]
            wanted += AT_ONCE * (args.nodes // ROOMS + 1)
            until_s = time.monotonic() + PATIENCE_S
            while (there := opened(page, url)[0]) < wanted and time.monotonic() < until_s:
                print(f"{there:,} of {wanted:,} nodes have reported", file=sys.stderr)
                time.sleep(3.0)
            for each in crowds:
                os.kill(each._process.pid, signal.SIGSTOP)
        page.close()
        root = psutil.Process(fleet.root._process.pid)
        alone = share_of_core(root, args.seconds)
        time.sleep(25.0)  # what the last page has asked for is too old now
        page = browser.new_page()
        rows, drawn = opened(page, url)
        print(
            f"{rows:,} nodes over three levels of aggregators: drawn {drawn:.0f} ms after opening;"
            f" sorted in {sorted_in(page):.0f} ms"
        )
        page.click(f"#nodes a >> nth={wanted // 2}")
        page.wait_for_url("**/node?**")
        page.goto(url.replace("/fleet", "/"))
        page.wait_for_selector("#scores canvas", timeout=60_000)
        print(f"now, with {page.inner_text('#scores figcaption')}")
        page.close()
        for view in ("/", "/fleet"):
            pages = [browser.new_page() for _ in range(5)]
            for each in pages:
                each.goto(url.replace("/fleet", view))
            share = share_of_core(root, args.seconds)
            print(
                f"root: {alone:.1%} of a core without a page, {share:.1%} with five of {view} open"
            )
            for each in pages:
                each.close()
        browser.close()


if __name__ == "__main__":
    main()
