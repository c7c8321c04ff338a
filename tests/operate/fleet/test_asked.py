"""`submerge nodes settings` and `scores`: what a person reads of what a node has said."""

from __future__ import annotations

import io
import json

from rich.console import Console

from submerge_client.replies import Blamed, KindScores, RecentReply
from submerge_operate.fleet.nodes import new_rows, rows_table, setting_lines


def reply(at: list[float], **fields: object) -> RecentReply:
    known = {
        "node": "n",
        "group": "g",
        "version": 7,
        "provisional": False,
        "at": at,
        "kinds": [
            KindScores(kind="distance", limit=20.0, values=[10.0 + 10 * i for i in range(len(at))]),
            KindScores(kind="channel", limit=None, values=[1.5] * len(at)),
        ],
        "channels": ["flow", "hot\x1b[2J"],
        "blame": [[Blamed(1, 0.6), Blamed(0, 0.4)]] * len(at),
    }
    return RecentReply(**known | fields)


def drawn(said: RecentReply, most: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(rows_table(said, most=most))
    return console.file.getvalue()


def test_scores_are_over_their_limits_and_the_newest_row_is_last():
    """Without a limit a score is itself, in brackets; letters that control a terminal are not."""
    lines = drawn(reply([0.0, 60.0])).rstrip().splitlines()
    assert "n: scores over limits, model 7" == lines[0].strip()
    assert ["0.50", "(1.5)"] == lines[-2].split()[3:5]
    assert ["1970-01-01", "00:01:00", "UTC", "1.00", "(1.5)"] == lines[-1].split()[:5]
    assert "60 %, flow 40 %" in lines[-1]
    assert "\x1b" not in "".join(lines)
    assert "provisional limits" in drawn(reply([0.0], provisional=True))


def test_the_newest_rows_are_shown_unless_all_are_asked_for():
    said = reply([float(i) for i in range(30)])
    assert 20 == drawn(said, 20).count("UTC")
    assert 30 == drawn(said).count("UTC")


def test_a_row_is_a_line_once():
    """Of two looks the second shows what came between them; as JSON, an object each."""
    first, second = reply([0.0, 60.0]), reply([60.0, 120.0])
    assert 2 == len(new_rows(None, first, as_json=False))
    (line,) = new_rows(first, second, as_json=False)
    assert "1970-01-01 00:02:00 UTC  distance 1.00, channel (1.5)  hot" in line
    (row,) = [json.loads(each) for each in new_rows(first, second, as_json=True)]
    assert (120.0, {"value": 20.0, "limit": 20.0}) == (row["at"], row["scores"]["distance"])
    assert [] == new_rows(second, second, as_json=False)
    assert [] == new_rows(None, reply([], blame=[], kinds=[]), as_json=False)


def test_settings_are_lines_with_their_whole_names():
    """What is left out has no line; a long configuration says that it was cut."""
    said = {
        "node": "n",
        "kind": "client",
        "software": "submerge/1",
        "cut": True,
        "settings": {
            "node": "n",
            "kit": None,
            "schema": {"channels": [{"name": "größe", "unit": ""}], "lags": 1},
            "sensor": {"topics": ["a", "b"], "states": {}},
        },
    }
    assert [
        "# n, client, submerge/1",
        "# long lists and texts are cut",
        'node = "n"',
        'schema.channels[0].name = "größe"',
        'schema.channels[0].unit = ""',
        "schema.lags = 1",
        'sensor.topics = ["a", "b"]',
        "sensor.states = {}",
    ] == list(setting_lines(said))
