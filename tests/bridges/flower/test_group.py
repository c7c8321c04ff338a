"""What both sides of an app agree on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from submerge import UsageError
from submerge_bridges.flower.group import FlowerGroup

MANY = tuple(f"x{i}" for i in range(2000))
CHANNELS = "flow [m3/h]", "speed [rpm]", "power [kW]"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a b"}, "a name has"),
        ({"channels": ()}, "at least one"),
        ({"channels": ("a", "a")}, "twice"),
        ({"rank": 3}, "fewer than"),
        ({"rank": 0}, "whole number of at least 1"),
        ({"rank": "most"}, "whole number"),
        ({"scaling": "fixed"}, '"fleet" or "none"'),
        ({"scaling_rows": 0}, "at least 1"),
        ({"period_s": -1.0}, "positive time"),
        ({"channels": MANY, "rank_max": 600}, "a limit of 4194304 bytes"),
    ],
    ids=lambda each: str(each)[:24],
)
def test_a_wrong_value_is_an_error_when_the_group_is_made(wrong: dict[str, Any], said: str) -> None:
    """An app fails when it is loaded, on both sides, and not in its first round."""
    with pytest.raises(UsageError, match=said):
        FlowerGroup(**({"name": "pumps", "channels": CHANNELS} | wrong))


def test_a_list_of_channels_is_as_good_as_a_tuple() -> None:
    """Settings from a TOML file are lists."""
    assert FlowerGroup("g", CHANNELS) == FlowerGroup("g", list(CHANNELS))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_door_loads_nothing_of_flower() -> None:
    """`submerge.flower` and its group are there without Flower; the apps say what is missing."""
    code = (
        "import sys; sys.modules['flwr'] = None\n"
        "import submerge.flower\n"
        "assert not any(name.startswith('submerge_operate') for name in sys.modules)\n"
        "submerge.flower.FlowerGroup('g', ('a', 'b'))\n"
        "submerge.flower.client_app"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert "pip install 'submerge[flower]'" in done.stderr.splitlines()[-1]
