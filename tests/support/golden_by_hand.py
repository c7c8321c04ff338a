"""A golden file of another program's making: what sinks have told of alarms.

It is written out here, name by name, so that none follows a class when that is renamed.
"""

from __future__ import annotations

JOURNAL = (
    '{"form":1,"sinks":{'
    '"lines pumps":{"open":['
    '{"node":"pump-3","number":1700086390000,"began":1700086390.25,"peaked":1700086395.5,'
    '"ended":0.0,"worst":3.25,"cause":"spe",'
    '"top":[["bearing heat",0.5],["flow",0.25],["läuft",0.125]],'
    '"version":1700086000000,"withheld":60,"verdict":"rejected"},'
    '{"node":"pump-4","number":1700086389000,"began":1700086389.25,"peaked":1700086394.5,'
    '"ended":1700086398.75,"worst":4.25,"cause":"t2","top":[],'
    '"version":1700086000001,"withheld":61,"verdict":"accepted"},'
    '{"node":"pump-5","number":1700086388000,"began":1700086388.25,"peaked":1700086393.5,'
    '"ended":0.0,"worst":5.25,"cause":"linear","top":[],'
    '"version":1700086000002,"withheld":62,"verdict":""},'
    '{"node":"pump-6","number":1700086387000,"began":1700086387.25,"peaked":1700086392.5,'
    '"ended":0.0,"worst":6.25,"cause":"channel","top":[],'
    '"version":1700086000003,"withheld":63,"verdict":""},'
    '{"node":"pump-7","number":1700086386000,"began":1700086386.25,"peaked":1700086391.5,'
    '"ended":0.0,"worst":7.25,"cause":"stuck","top":[],'
    '"version":1700086000004,"withheld":64,"verdict":""}],'
    '"over":["pump-3-19aa41f2c30","pump-4-18bcfe56801"]},'
    '"webhook pumps":{"open":[],"over":["pump-3-19aa41f2c30"]}}}'
)
"""As it stands beside a checkpoint or a store; every cause and every verdict."""


def journal() -> bytes:
    """What two sinks have told."""
    return JOURNAL.encode()
