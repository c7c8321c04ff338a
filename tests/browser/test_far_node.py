"""A node three levels down, from the root's page: found in the tree, ordered and asked; with real
programs, which the page is left open over.
"""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("grpc")

from support.chain import CHAIN, CLIENT, Chain
from support.kills.configs import OverGrpc
from support.programs import SUBMERGE, Programs, free_port

pytestmark = pytest.mark.slow


class PagedChain(Chain):
    """Three aggregators and a client, the root with a page."""

    def __init__(self, programs: Programs) -> None:
        self.port = free_port()
        self._at = f'[page]\naddress = "127.0.0.1:{self.port}"\n'
        ways = OverGrpc({node: free_port() for node in CHAIN})
        super().__init__(ways, programs, every_s=1.0, pump="share_values = true\n")

    def _config(self, node: str) -> str:
        text = super()._config(node)
        return text + self._at if CHAIN.get(node, "") is None else text

    def token(self) -> str:
        """Make a token that may do everything; return its text."""
        folder = self._programs.folder
        command = [SUBMERGE, "aggregator", "token", "new", "anna", "--scope", "operate"]
        where = ["--config", folder / "root.toml", "--to", folder / "anna.token"]
        subprocess.run([*command, *where], capture_output=True, check=True)
        return (folder / "anna.token").read_text().strip()


def test_it_is_found_paused_and_asked_while_the_root_begins_again(visit):
    """The session outlives the restart, and the page that was left open gives the order."""
    with Programs() as programs:
        chain, visited = PagedChain(programs), visit(at=None)
        # What an open page asks while nobody answers, or the nodes are on their way back.
        visited.expects("503 GET /", "net::ERR_")
        page = visited.page()
        page.goto(f"http://127.0.0.1:{chain.port}/login?back=/fleet?as=tree")
        page.fill("#token", chain.token())
        page.click("main button[type=submit]")
        page.fill("#search", CLIENT)  # opens the branches down to it
        page.wait_for_selector(f"#tree th:has-text('{CLIENT}')", timeout=90_000)
        page.click(f"#tree a:has-text('{CLIENT}')")
        # The node itself has said something: scores, or that it has no model yet.
        page.wait_for_selector(f"#newest figure, #newest-problem:has-text('{CLIENT}:')")
        page.click("#ask-settings")
        page.wait_for_selector("#settings:has-text('share_values')")

        chain.kill("root")
        chain.start("root")
        page.wait_for_selector("#link:empty", state="attached", timeout=60_000)
        page.click("#to-node button:text-is('Pause')")
        page.click("dialog button.main")
        page.wait_for_selector(f"#given p:has-text('Pause {CLIENT}: done')", timeout=60_000)
        assert chain.said("learning paused by operator")
        visited.context.close()
