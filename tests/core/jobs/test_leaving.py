"""What becomes of a job when nodes leave, restart, or are cut off."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import UsageError
from submerge.jobs.envelopes import OPENING, JobAsk, JobShare
from submerge.jobs.job import Leaver
from submerge.jobs.local_run import run_here
from submerge.jobs.machine import CancelJob, ChildrenKnown, JobHeard, JobPiece, OpenJob
from submerge.jobs.roster import names
from support.job_table import ROOT, JobTable, job


def rows(seed: int, n: int = 40) -> np.ndarray:
    """Rows in the plane, around a place of their own."""
    return np.random.default_rng(seed).standard_normal((n, 2)) + seed


def fleet() -> dict[str, object]:
    """Two halls with two clients each."""
    return {
        "hall": {"a": rows(1), "b": rows(2)},
        "gate": {"c": rows(3), "d": rows(4)},
    }


class Staged(JobTable):
    """A table on which something happens when a round begins."""

    def __init__(self, parts: object, at: tuple[int, int], happens: object) -> None:
        self._at, self._happens = at, happens
        super().__init__(parts)

    def step(self, name: str, event: object) -> None:
        """Do it once, when the root has said that the round begins."""
        super().step(name, event)
        if any((each.attempt, each.round) == self._at for each in self.progress) and self._happens:
            happens, self._happens = self._happens, None
            happens(self)


def stops(name: str) -> object:
    """Return what ends a process."""
    return lambda table: table.stop(name)


def restarts(name: str) -> object:
    """Return what ends a process and starts another."""

    def happens(table: JobTable) -> None:
        table.sent.clear()
        table.start(name)

    return happens


def same(left: object, right: object) -> bool:
    """Whether arrays are equal to the bit."""
    return left.keys() == right.keys() and all(
        left[name].tobytes() == right[name].tobytes() for name in left
    )


WITHOUT_B = {"hall": {"a": rows(1)}, "gate": {"c": rows(3), "d": rows(4)}}


@pytest.mark.parametrize("kind", ["kmeans", "moments"])
@pytest.mark.parametrize(("happens", "why"), [(stops("b"), "silent"), (restarts("b"), "restarted")])
def test_a_client_that_leaves_drops_out_of_an_exact_job_and_is_named(kind, happens, why):
    """The job begins again, and the answer is as if that client had never been there."""
    table = Staged(fleet(), (1, 2), happens)

    outcome = table.run(job(kind))

    assert {"b": Leaver(why, 0)} == outcome.left
    assert frozenset("acd") == names(outcome.stayed)
    assert frozenset("abcd") == names(outcome.opened)
    assert 2 == outcome.attempts
    assert same(run_here(kind, outcome.job.settings, WITHOUT_B), outcome.answer)


def test_a_job_that_is_not_exact_goes_on_with_what_was_given():
    """Rounds that are closed keep what the client gave, and the answer says how many these are."""
    table = Staged(fleet(), (1, 2), stops("b"))

    outcome = table.run(job(exact=False))

    assert {"b": Leaver("silent", 1)} == outcome.left
    assert 1 == outcome.attempts
    expected = run_here("kmeans", outcome.job.settings, fleet(), left_after={"b": 1})
    assert same(expected, outcome.answer)
    assert not same(run_here("kmeans", outcome.job.settings, WITHOUT_B), outcome.answer)


def test_an_aggregator_that_restarts_gets_everything_from_its_children_again():
    """It has lost the job and all shares; all participants stay, and the job goes on."""
    table = Staged(fleet(), (1, 2), restarts("hall"))

    outcome = table.run(job())

    assert {} == outcome.left
    assert 1 == outcome.attempts
    assert same(run_here("kmeans", outcome.job.settings, fleet()), outcome.answer)


def test_an_aggregator_that_stays_away_takes_its_children_with_it():
    """Both are named."""
    outcome = Staged(fleet(), (1, 1), stops("hall")).run(job("moments", least=2))

    assert {"a": Leaver("silent", 0), "b": Leaver("silent", 0)} == outcome.left
    assert same(run_here("moments", {}, {"gate": fleet()["gate"]}), outcome.answer)


def test_a_root_that_restarts_ends_its_jobs_as_failed():
    """What it had gathered is lost, and it says so."""
    outcome = Staged(fleet(), (1, 2), restarts(ROOT)).run(job())

    assert "the root restarted" == outcome.failure
    assert outcome.answer is None


def test_a_job_ends_at_its_deadline_whatever_happens():
    """No client ever answers a round: the reason says so, within job_s."""
    table = JobTable(fleet())
    table.loses = lambda _, send: isinstance(send.message, JobPiece) and send.message.stamp.seq > 0

    outcome = table.run(job(round_s=500.0, job_s=300.0))

    assert "no answer within 300 s" == outcome.failure
    assert frozenset("abcd") == names(outcome.opened)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"attempts": 1}, "left in each of 1 attempts"),
        ({"least": 4}, "3 participants stayed, 4 needed"),
        ({"rounds": 1}, "no answer after 1 rounds"),
    ],
)
def test_a_job_fails_clearly(fields, says):
    """One line with the reason; who left is named all the same."""
    outcome = Staged(fleet(), (1, 1), stops("b")).run(job(**fields))

    assert says in outcome.failure
    assert {"b"} == outcome.left.keys()


@pytest.mark.parametrize("exact", [True, False])
def test_more_than_half_have_to_stay_where_nothing_is_said(exact):
    """A few that make all others leave had an answer of their own; `least` allows it still."""
    parts = fleet()
    stayed = Staged(parts, (1, 1), stops("b")).run(job("moments", exact=exact))
    half = Staged(parts, (1, 1), stops("hall")).run(job("moments", exact=exact))
    few = Staged(parts, (1, 1), stops("hall")).run(job("moments", exact=exact, least=1))

    assert (3, "") == (stayed.job.least, stayed.failure)
    assert "2 participants stayed, 3 needed" == half.failure
    assert half.answer is None is not few.answer


def test_earlier_versions_read_a_job_of_which_nothing_is_said():
    """They take no 0: what travels says what they had as default."""
    asked = JobAsk(job(), 0, 60.0, None, OPENING, {})

    assert 0 == asked.job.least
    assert 1 == JobAsk.unpack(asked.pack()).job.least


def test_a_job_that_no_node_takes_part_in_fails():
    """Everybody has another schema: each is named with its reason, and the failure counts them."""
    outcome = JobTable(fleet()).run(job(fingerprint="cd" * 32))

    assert "no node takes part: another schema (4)" == outcome.failure
    assert dict.fromkeys("abcd", "another schema") == outcome.declined


def test_a_job_of_a_root_without_children_fails():
    """No node has declined, and the failure says so."""
    outcome = JobTable({}).run(job())

    assert "no node takes part: none reports for the group now" == outcome.failure


def test_an_operator_ends_a_job():
    """All nodes forget it."""
    table = JobTable(fleet())
    table.step(ROOT, OpenJob(job()))
    table.step(ROOT, CancelJob("job-1"))
    table.pass_time(60.0)

    assert "cancelled" == table.outcomes[0][1].failure
    assert {()} == {role.jobs for role in table.roles.values()}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"kind": "pca"}, "a job is one of"), ({"settings": {"clusters": 0}}, "clusters must be")],
)
def test_a_root_opens_no_job_that_makes_no_sense(wrong, says):
    """It refuses at once, and nothing is asked."""
    table = JobTable(fleet())

    with pytest.raises(UsageError, match=says):
        table.step(ROOT, OpenJob(job(**{"kind": "kmeans"} | wrong)))
    assert not table.sent


def test_only_a_parent_opens_a_job():
    """The same ask from any other node changes nothing, at a client and at an aggregator."""
    table = JobTable(fleet())
    table.step(ROOT, OpenJob(job()))
    asks = {send.to: send.message for _, send in table.sent}
    table.sent.clear()
    ask = asks["hall"]
    to_client = ask._replace(stamp=ask.stamp._replace(node="a"))

    table.step("hall", JobHeard(ask, "c", from_parent=False))
    table.step("a", JobHeard(to_client, "d", from_parent=False))

    assert [(), ()] == [table.roles[name].jobs for name in ("hall", "a")]
    assert not table.sent
    assert ["not the parent"] * 2 == [note.facts["why"] for note in table.notes]


def test_a_share_in_the_name_of_another_node_is_not_taken():
    """A child speaks for itself."""
    table = JobTable(fleet())
    table.step(ROOT, OpenJob(job()))
    table.deliver()
    share = next(
        send.message
        for source, send in table.heard
        if source == "a" and isinstance(send.message, JobPiece)
    )
    before = table.roles["hall"].held_bytes
    table.step("hall", JobHeard(share, "b", from_parent=False))

    assert before == table.roles["hall"].held_bytes
    assert "job message ignored" == table.notes[-1].what


def test_a_client_takes_part_for_itself_alone():
    """One that says that others are below it is refused, and named; they are there all the same."""
    table = JobTable({"c": rows(3), "d": rows(4)})
    table.step(ROOT, ChildrenKnown(frozenset("cd"), frozenset("cd")))
    honest = table.roles["d"]._share
    table.roles["d"]._share = lambda part, ask, *rest: JobShare(
        {"c": table.roles["d"].incarnation}, {}, honest(part, ask, *rest).arrays
    )

    outcome = table.run(job("moments"))

    assert {"c"} == names(outcome.stayed)
    assert {"d": "what it contributed was refused"} == outcome.declined


def test_a_round_that_does_not_fit_is_a_clear_failure():
    """Forty centers, where a payload has 800 bytes: the reason says what to raise."""
    small = job(settings={"clusters": 40}, payload_bytes=800, piece_bytes=256)

    many = np.random.default_rng(0).standard_normal((400, 2))
    outcome = JobTable({"a": many}).run(small)

    assert outcome.failure.startswith("no participant stayed, at last a (a payload of this job")
    assert "raise payload_bytes" in outcome.failure


def test_messages_that_come_late_twice_and_in_any_order_change_nothing():
    """Half are lost, the others come twice, later ones first; the answer has the same bytes."""
    rng = np.random.default_rng(7)
    table = JobTable(fleet())

    def loses(source: str, send: object) -> bool:
        if rng.random() < 0.3:
            table.sent.appendleft((source, send))
        if rng.random() < 0.3:
            table.sent.rotate(1)
        return bool(rng.random() < 0.3)

    table.loses = loses
    outcome = table.run(job(piece_bytes=256, round_s=600.0, job_s=86400.0))

    assert {} == outcome.left
    assert same(run_here("kmeans", outcome.job.settings, fleet()), outcome.answer)
