"""`submerge demo` in parts: dealing, watching, adding up; tests/live has the whole, for real."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from click.testing import CliRunner

from submerge import Channel, Identity, Scaling, Schema, UsageError
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge_aggregator import config as aggregator_config
from submerge_client.alarms.event import event_facts
from submerge_client.config import client_config
from submerge_lab.demo import command as demo
from submerge_lab.demo.alarms import LEAST, SOON, FleetAlarms, NamedAlarm, incidents, match_faults
from submerge_lab.demo.failures import DOWN_S, ProcessFailure, plan_failures
from submerge_lab.demo.feed import AHEAD, Dealer, Stint, Trial
from submerge_lab.demo.scores import (
    LOUD,
    ChannelWatch,
    InOrder,
    PictureLimits,
    ScoreLine,
    ScoreTable,
    read_line,
)
from submerge_lab.demo.site import GrpcWire, MqttWire, Site, check_sizes, free_ports, members
from submerge_lab.plants.room import Fault
from submerge_operate import cli
from support.nodes import EPOCH

CHANNELS = tuple(Channel(f"mote{mote:02d}.{q}") for mote in (1, 2, 3) for q in ("a", "b"))
NAMES = tuple(channel.name for channel in CHANNELS)
TRIAL = Trial(rows=3, knock_s=0.5)


# -- dealing -------------------------------------------------------------------------


def clients(n: int, *, known=True) -> list[Stint]:
    """Clients that read, and have scored a row or not."""
    return [Stint(f"client-{i + 1}", reading=True, scored=int(known)) for i in range(n)]


def started(stints, total=1000) -> Dealer:
    """A dealer whose clock runs, from time 0 on."""
    dealer = Dealer(total, TRIAL)
    dealer.deal(stints, 0.0, rate=1.0)
    return dealer


def test_snapshots_are_dealt_in_turn():
    """As many for each, in order, at the rate that is asked for."""
    stints = clients(3)
    dealt = started(stints).deal(stints, 0.1, rate=90.0)

    assert [(i, f"client-{i % 3 + 1}") for i in range(9)] == [(i, s.node) for i, s in dealt]


@pytest.mark.parametrize("state", [{"killed": True}, {"ended": True}, {"reading": False}])
def test_a_dead_clients_share_goes_to_the_others(state):
    """What it would have been dealt is not kept for it."""
    stints = clients(3)
    for name, value in state.items():
        setattr(stints[1], name, value)
    started(stints).deal(stints, 0.1, rate=90.0)

    assert [5, 0, 4] == [stint.given for stint in stints]


def test_nobody_is_fed_faster_than_it_scores():
    """A client that scores nothing is not given more; what it scores or its parent has, it read."""
    (stint,) = stints = clients(1)
    dealer = Dealer(10_000, TRIAL)
    for now in range(40):
        dealer.deal(stints, float(now), rate=1000.0)

    assert AHEAD + 1 == stint.given
    stint.acknowledged = 20
    dealer.deal(stints, 41.0, rate=1000.0)
    assert AHEAD + 20 == stint.given


def test_a_fleet_without_a_model_is_on_trial():
    """A few rows each, then one now and then, until everybody has scored one."""
    stints = clients(2, known=False)
    dealer = Dealer(1000, TRIAL)
    for now in (1.0, 1.1, 1.2):
        dealer.deal(stints, now, rate=500.0)
    assert [3, 3] == [stint.given for stint in stints]

    dealer.deal(stints, 1.6, rate=500.0)
    stints[0].scored = 4
    dealer.deal(stints, 1.7, rate=500.0)
    assert [4, 4] == [stint.given for stint in stints]


def test_a_client_that_comes_back_is_on_trial_alone():
    """The others go on at full pace."""
    stints = clients(2)
    dealer = started(stints)
    stints[1] = Stint("client-2", reading=True)
    dealer.deal(stints, 0.25, rate=40.0)

    assert [7, 3] == [stints[0].given, stints[1].given]


def test_lost_time_is_made_up_for_a_little():
    """After a long pause at most a quarter of a second's worth comes at once."""
    stints = clients(8)

    assert 25 == len(started(stints).deal(stints, 100.0, rate=100.0))


def test_the_last_snapshot_is_the_last():
    """Nobody is dealt what there is not."""
    stints = clients(1)
    dealer = started(stints, total=5)
    dealt = dealer.deal(stints, 1.0, rate=1000.0)

    assert [0, 1, 2, 3, 4] == [snapshot for snapshot, _ in dealt]
    assert dealer.done


# -- scores, in order -----------------------------------------------------------------


def line(spe=1.0, **shares) -> ScoreLine:
    """A score line; shares by quantity of mote 1."""
    return ScoreLine(
        0, spe, 2 * spe, 7, {f"mote01.{name}": share for name, share in shares.items()}
    )


def test_scores_come_in_the_order_of_snapshots():
    """Whoever scored them, and whenever; what never will be is unknown, and holds nobody up."""
    scores = InOrder(NAMES)
    scores.put(1, line(4.0, b=0.75, a=0.25))
    assert scores.ready == 0
    scores.put(0, None)
    scores.put(3, line())
    assert scores.ready == 2

    taken = scores.take(10)
    assert [False, True] == taken.known.tolist()
    assert [4.0, 8.0] == [taken.spe[1], taken.t2[1]]
    assert [1.0, 3.0, 0, 0, 0, 0] == taken.residual[1].tolist()
    assert scores.ready == 0


def test_a_kernel_groups_residuals_are_the_readings():
    """Dealt out by the shares that are told; how odd a row is stands beside, once that is known."""
    scores, shares = InOrder(NAMES), {"mote01.a": 0.25, "mote01.b": 0.75}
    scores.put(0, ScoreLine(0, 0.5, 9.0, 7, shares, linear=8.0))
    scores.put(1, ScoreLine(1, 0.5, 9.0, 7, shares, linear=8.0, anomaly_score=1.5))

    taken = scores.take(2)
    assert [8.0, 8.0] == taken.spe.tolist()
    assert [2.0, 6.0, 0, 0, 0, 0] == taken.residual[1].tolist()
    assert np.array_equal([np.nan, 1.5], taken.anomaly_score, equal_nan=True)


def test_a_clients_score_line_is_read():
    """What submerge_client.score_outputs.lines writes, all of its fields."""
    said = (
        b'{"row":7,"at":1.5,"spe":3.1,"t2":9.7,"model":123,"over":0.99,"expired":true,'
        b'"top":{"mote01.a":0.81},"alarm":"a-1","withheld":true}'
    )
    top = {"mote01.a": 0.81}

    assert ScoreLine(7, 3.1, 9.7, 123, top, over=0.99) == read_line(said)
    kernel = b'{"row":7,"spe":0.1,"t2":9.7,"model":123,"linear":3.1,"anomaly_score":1.2}'
    assert ScoreLine(7, 0.1, 9.7, 123, linear=3.1, anomaly_score=1.2) == read_line(kernel)


# -- the watch -----------------------------------------------------------------------


def scores(n, *, loud=(), size=1.0):
    """Rows whose residuals are about 1, and `size` in the loud channels."""
    residual = np.random.default_rng(n).uniform(0.5, 1.0, (n, len(CHANNELS)))
    residual[:, list(loud)] = size**2
    total = residual.sum(axis=1)
    return ScoreTable(total, total, residual, np.full(n, np.nan), *np.zeros((2, n)))


def settled():
    """A watch that has its limits: about 1 for every channel."""
    watch = ChannelWatch(CHANNELS, settle=400)
    for _ in range(4):
        watch.see(scores(100))
    return watch


def test_a_channel_is_told_by_its_own_limit():
    """The root mean square of its rows, in multiples; nothing of a mote that is out of service."""
    watch = settled()
    seen = watch.see(scores(50, loud=[3], size=2 * LOUD))
    assert seen[3] == pytest.approx(2 * LOUD, rel=0.01)
    assert (np.delete(seen, 3) < 1).all()

    watch.take_out(2)
    seen = watch.see(scores(50, loud=[3], size=2 * LOUD))
    assert [False, False, True, True, False, False] == (seen == 0).tolist()


def test_rows_that_nobody_scored_are_not_judged():
    """They pass, and say nothing."""
    watch = settled()
    assert [0.0] * len(CHANNELS) == watch.see(ScoreTable.unknown(9, len(CHANNELS))).tolist()
    more = scores(5)
    more.over[:], more.over_t2[:] = (0.0, 0.95, 0.99, 0.999, 0.999), (0, 0, 0, 0, 0.999)
    watch.see(more)

    assert (5, 2, 1) == (watch.rows, watch.over_spe, watch.over_t2)


def test_odd_rows_are_counted():
    """Those above 1, the fleet's own limit; of a row that has none nobody knows."""
    watch, more = settled(), scores(4)
    more.anomaly_score[:3] = 0.9, 1.1, 7.0
    watch.see(more)

    assert watch.over_anomaly_score == 2


def test_limits_need_scores():
    """A settling time without a model is refused, not taken for silence."""
    with pytest.raises(UsageError, match="got none: settle longer"):
        PictureLimits.from_scores([ScoreTable.unknown(5, 6)])


def test_limits_are_those_of_the_rows_that_were_scored():
    """Unknown rows among them change nothing."""
    known = scores(500)
    mixed = PictureLimits.from_scores([ScoreTable.unknown(99, 6), known, ScoreTable.unknown(1, 6)])
    alone = PictureLimits.from_scores([known])

    assert alone.spe == mixed.spe
    assert np.array_equal(alone.residual, mixed.residual)


# -- alarms --------------------------------------------------------------------------


def start(node, number=1, **top):
    """What a client says when an alarm begins: shares by mote and quantity, as mote1_light."""
    top = {f"{mote[:4]}{mote[4:]:0>2}.{q}": top[k] for k in top for mote, q in [k.split("_")]}
    alarm = Alarm(node, number, EPOCH, EPOCH, 0.0, 2.0, "spe", tuple(top.items()), 3)
    return event_facts(AlarmEvent("start", alarm), "room")


def end(node, number=1):
    """What it says when it is over."""
    return {**start(node, number), "event": "end", "ended": EPOCH + 60}


def acknowledged(*news, clients=2):
    """Alarms of a fleet that has said so much: pairs of event and snapshot."""
    alarms = FleetAlarms(clients)
    for event, snapshot in news:
        alarms.add(event, snapshot)
    return alarms


def test_two_clients_have_to_blame_a_mote():
    """While both have an alarm open; then it is out of service, once."""
    one, two = start("a", mote1_light=LEAST), start("b", mote1_voltage=LEAST)
    assert [] == acknowledged((one, 10)).out
    assert [] == acknowledged((one, 10), (end("a"), 20), (two, 30)).out
    assert [] == acknowledged((one, 10), (start("b", mote1_light=0.9 * LEAST), 20)).out

    assert [NamedAlarm(1, "light", 20)] == acknowledged((one, 10), (two, 20)).out
    assert [NamedAlarm(1, "light", 20)] == acknowledged(
        (one, 10), (two, 20), (start("c", mote1_light=1), 30)
    ).out
    assert [NamedAlarm(1, "light", 10)] == acknowledged((one, 10), clients=1).out


def test_what_is_said_twice_is_heard_once():
    """A client that was killed may tell its last alarm again; of an end that has no start, none."""
    one = start("a", mote1_light=1.0)
    alarms = acknowledged((one, 10), (end("a"), 20), (one, 30), (end("a"), 40), (end("z"), 50))

    assert [(10, 20)] == [(alarm.began, alarm.ended) for alarm in alarms.raised]
    assert [] == alarms.open


def test_alarms_at_a_time_are_one_incident():
    """Whoever raised them; the next begins when all of them are over."""
    alarms = acknowledged(
        (start("a"), 10), (start("b"), 20), (end("a"), 25), (start("a", 2), 29),
        (end("b"), 30), (end("a", 2), 40), (start("b", 2), 41),
    )  # fmt: skip

    assert [[10, 20, 29], [41]] == [
        [each.began for each in incident] for incident in incidents(alarms.raised)
    ]


def test_verdicts_match_alarms_with_the_truth():
    """Found while it held or soon after, by whoever names the mote; missed; else it is false."""
    faults = [
        Fault(1, "light", "stuck", 100, 200),
        Fault(2, "temperature", "dying", 100, 200),
        Fault(3, "voltage", "offset", 100, 200, -0.1),
    ]
    alarms = acknowledged(
        (start("a", 1, mote1_light=1.0), 90),
        (end("a", 1), 95),
        (start("a", 2, mote9_light=0.6, mote2_voltage=0.3, mote1_light=0.9 * LEAST), 120),
        (end("a", 2), 150),
        (start("a", 3, mote3_voltage=1.0), 201 + SOON),
    )
    one, two, three, *false = match_faults(faults, alarms)

    assert ["missed", "found", "missed"] == [one.outcome, two.outcome, three.outcome]
    assert NamedAlarm(2, "voltage", 120) == two.alarm
    assert two.delay_h == pytest.approx(20 * 31 / 3600)
    assert [(1, 90), (3, 201 + SOON)] == [(v.mote, v.alarm.snapshot) for v in false]


def test_a_false_alarm_need_not_blame_anybody():
    """Weather may be odd at every channel alike; what its other clients blame goes first."""
    (alone,) = match_faults([], acknowledged((start("a"), 150)))
    (blamed,) = match_faults(
        [], acknowledged((start("a"), 150), (start("b", mote3_light=0.05), 160))
    )

    assert (0, NamedAlarm(0, "", 150)) == (alone.mote, alone.alarm)
    assert (3, NamedAlarm(3, "light", 150)) == (blamed.mote, blamed.alarm)


def test_a_sound_mote_that_is_taken_out_is_false():
    """Though the alarm that named it found a fault; as part of a false incident it counts once."""
    fault = Fault(1, "light", "stuck", 100, 200)
    both = {"mote1_light": 0.5, "mote2_light": 0.4}
    alarms = acknowledged((start("a", **both), 150), (start("b", **both), 150))
    assert ["found", "false"] == [each.outcome for each in match_faults([fault], alarms)]

    alarms = acknowledged((start("a", mote2_light=1), 150), (start("b", mote2_light=1), 160))
    assert ["missed", "false"] == [each.outcome for each in match_faults([fault], alarms)]


# -- mishaps ---------------------------------------------------------------------------


def test_recovery_is_timed_from_the_new_start():
    """A client is back when it is acknowledged; what came before its start does not count."""
    failure = ProcessFailure("a", "client", frozenset("a"), at=5)
    failure.kills(10.0, 7)
    failure.note_acknowledged("a", 10.1)
    assert (failure.is_due(10.0 + DOWN_S / 2), failure.is_due(10.0 + DOWN_S)) == (False, True)

    failure.starts(11.0)
    failure.note_ready("a", 11.5)
    failure.note_acknowledged("a", 12.0)
    assert {
        "node": "a",
        "role": "client",
        "state": "over",
        "ready_s": 0.5,
        "back_s": 1.0,
        "away_s": 2.0,
        "snapshot": 7,
    } == failure.figures()


def test_an_aggregator_is_back_when_all_its_children_are_heard_again():
    """Not before the last of them."""
    failure = ProcessFailure("mid", "aggregator", frozenset("ab"), at=5)
    failure.kills(1.0, 5)
    failure.starts(2.0)
    failure.note_acknowledged("a", 3.0)
    failure.note_acknowledged("a", 4.0)
    assert failure.state == "starting"

    failure.note_acknowledged("b", 5.0)
    assert ("over", 3.0) == (failure.state, failure.back_s)


def test_a_client_is_killed_and_then_an_aggregator():
    """The third client, on day 6; the last aggregator, on day 9, with all its children."""
    client, aggregator = plan_failures(members(7), 14_000)

    assert ("client-3", frozenset({"client-3"}), 6000) == (client.node, client.waits_for, client.at)
    assert ("aggregator-2", 9000) == (aggregator.node, aggregator.at)
    assert {"client-5", "client-6", "client-7"} == aggregator.waits_for
    assert "client-1" == plan_failures(members(1), 100)[0].node


# -- the fleet as files ----------------------------------------------------------------


def test_four_clients_share_an_aggregator():
    """Eight have two; a ninth has one of its own."""
    parents = [member.parent for member in members(9) if member.role == "client"]

    assert ["aggregator-1"] * 4 + ["aggregator-2"] * 4 + ["aggregator-3"] == parents


@pytest.mark.parametrize("features", [Identity(), RandomFourier(Gaussian(0.3), 66)])
@pytest.mark.parametrize(("over", "center"), [("grpc", "fleet"), ("mqtt", "own")])
def test_every_configuration_loads(tmp_path, over, center, features):
    """As the programs themselves read it: schema, scaling, center and kernel included."""
    who = members(5)
    wire = MqttWire("::1", 1883, "room-1", own=False)
    if over == "grpc":
        wire = GrpcWire(dict.fromkeys((member.name for member in who), 4711))
    channels = (Channel('mote 1."°C"', "°C"), Channel("b", "%"))
    schema = Schema(channels, Scaling((21.0, 1e-3), (0.04, 300.0)), features, center)
    site = Site(tmp_path, wire, schema, rank=1, oversample=1)
    site.write(who)

    for member in who:
        kind = client_config if member.role == "client" else aggregator_config
        config = kind.load(site.config(member), {})
        assert member.name == config.node
        group = config if member.role == "client" else config.groups["room"]
        if group.schema is not None:
            assert schema == group.schema.built


def test_messages_that_a_broker_would_drop_are_refused(tmp_path):
    """Before anything is started, in words of the demo's options; over gRPC they are none."""
    schema = Schema(CHANNELS, features=RandomFourier(Gaussian(0.3), 4096))
    broker, grpc = MqttWire("::1", 1883, "room-1", own=False), GrpcWire({})

    check_sizes(Site(tmp_path, grpc, schema, rank=16, oversample=10))
    with pytest.raises(UsageError, match=r"at most 122880 .* got up to 5\d{5}: lower --features"):
        check_sizes(Site(tmp_path, broker, schema, rank=16, oversample=10))


def test_free_ports_differ():
    """They are held until each node has its own."""
    assert 20 == len(set(free_ports(map(str, range(20))).values()))


# -- the command ------------------------------------------------------------------------


@pytest.fixture
def submerge():
    """Run the group as a program does, in this process."""
    return lambda *arguments: CliRunner().invoke(cli.submerge, ["demo", *map(str, arguments)])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--days", 0.5),
        ("--clients", 0),
        ("--rank", 0),
        ("--seed", -1),
        ("--seconds", 0),
        ("--kernel", "--features", 0),
    ],
)
def test_bad_options_are_refused(submerge, arguments):
    """Status 2, and the range that was expected."""
    done = submerge(*arguments)

    assert done.exit_code == 2
    assert "is not in the range" in done.stderr


def refusal(done) -> str:
    """What the command was refused with, in one line."""
    assert isinstance(done.exception, UsageError)
    return str(done.exception)


def test_a_missing_extra_is_named(submerge, monkeypatch):
    """At once, whichever of its packages is not there."""
    monkeypatch.setattr(demo, "NEEDED", ("json", "no_such_package.inside"))

    assert "pip install submerge-lab" in refusal(submerge())


def test_features_without_a_kernel_are_refused(submerge):
    """They would be thought to be in use."""
    assert "give --kernel as well" in refusal(submerge("--features", 256))


def test_without_matplotlib_a_picture_is_refused_at_once(submerge, monkeypatch, tmp_path):
    """Before the work, in one line that names the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for module in ("submerge_files.console.figures", "submerge_lab.demo.plot"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    assert "pip install 'submerge[plot]'" in refusal(submerge("--plot", tmp_path / "demo.png"))


def test_a_folder_that_holds_something_is_not_used(submerge, tmp_path):
    """An older fleet's stores would be taken up again."""
    (tmp_path / "root.db").touch()

    assert "expected an empty folder" in refusal(submerge("--keep", tmp_path))
