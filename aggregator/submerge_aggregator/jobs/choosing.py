"""LandmarkChooser: has a root's fleet choose landmarks, where a group waits for them.

It looks now and then whether a group has enough readings, and opens a job of kind `landmarks`. A
job that fails is opened again later: what clients have shared for it is spent, so the waits grow.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.root import LandmarksWanted, choice_for, wanted
from submerge.errors import SubmergeError, UsageError
from submerge.features import OpenLandmarks
from submerge.jobs.job import Job, JobOutcome
from submerge.protocol.machine import Now, SettleLandmarks
from submerge_aggregator.jobs.board import JobBoard
from submerge_aggregator.jobs.runtime import JobRuntime
from submerge_client.logs import say

LOOK_S = 10.0  # how often it looks; each look adds up the moments of all rows

FIRST_WAIT_S, LONGEST_WAIT_S = 60.0, 3600.0
"""How long it waits after a job that failed: the first time, and at most."""

KIND = "landmarks"


class LandmarkChooser:
    """Opens a root's jobs of kind `landmarks`. For the event loop; `ask` is `Server.ask`."""

    def __init__(
        self,
        jobs: JobRuntime,
        board: JobBoard,
        ask: Callable[..., Awaitable[Any]],
        clock: Callable[[], Now],
    ) -> None:
        self._jobs, self._board, self._ask, self._clock = jobs, board, ask, clock
        self._choosing: dict[str, Job] = {}  # by group
        self._replacing = set[str]()  # groups whose landmarks the newest choice is to replace
        self._wait: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._settling = set[asyncio.Task[None]]()

    def start(self) -> None:
        """Begin to look, if a group leaves its landmarks to the fleet."""
        self._jobs.effects.on_end = self.ended
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def choose_again(self, group: str) -> str:
        """Have the fleet choose the landmarks of a group again; return the job's id."""
        if group in self._choosing:
            raise UsageError(
                f"landmarks of {group} are being chosen by {self._choosing[group].id}: wait for it"
            )
        asked = await self._ask(lambda node, _: _again(node, group))
        job = self._job(group, asked)
        await self._begin(job, asked)
        return job.id

    def ended(self, outcome: JobOutcome) -> None:
        """Take the end of a job, if it is one of these."""
        job = outcome.job
        chosen = self._choosing.get(job.group)
        if chosen is None or chosen.id != job.id:
            return
        if outcome.answer is None:
            del self._choosing[job.group]
            self._failed(job.group, outcome.failure)
            return
        task = asyncio.create_task(self._settle(job, outcome))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, job: Job, outcome: JobOutcome) -> None:
        points = (outcome.answer or {})["points"].astype(float)
        try:
            event = SettleLandmarks(job.group, job.fingerprint, points)
            await self._ask(lambda *_: None, event)
            self._wait.pop(job.group, None)
            # Refused landmarks leave the schema open: another choice waits as after a failure.
            self._not_before[job.group] = self._clock().steady + FIRST_WAIT_S
        except SubmergeError as error:
            self._failed(job.group, str(error))
        finally:
            del self._choosing[job.group]

    def _failed(self, group: str, why: str) -> None:
        if group in self._replacing:  # its schema has landmarks: nothing chooses again by itself
            say("landmarks not chosen", level="warning", group=group, why=why)
            return
        wait = min(2 * self._wait.get(group, FIRST_WAIT_S / 2), LONGEST_WAIT_S)
        self._wait[group] = wait
        self._not_before[group] = self._clock().steady + wait
        say("landmarks not chosen", level="warning", group=group, why=why, again_in_s=wait)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                found = await self._ask(_wanted)
                if found is None:
                    return  # no group leaves them to the fleet
                for group, asked in found.items():
                    await self._open(group, asked)
            except SubmergeError as error:  # the store cannot be written now
                say("landmarks wait", level="warning", why=str(error))

    async def _open(self, group: str, asked: LandmarksWanted) -> None:
        early = self._clock().steady < self._not_before.get(group, 0.0)
        if early or group in self._choosing:
            return
        try:
            await self._begin(self._job(group, asked), asked)
        except SubmergeError as error:
            self._failed(group, str(error))

    def _job(self, group: str, asked: LandmarksWanted) -> Job:
        return Job(
            id=f"job-{secrets.token_hex(5)}",
            kind=KIND,
            settings={**asked.settings, "seed": secrets.randbits(62)},
            group=group,
            fingerprint=asked.schema.fingerprint,
            width=asked.schema.width,
        )

    async def _begin(self, job: Job, asked: LandmarksWanted) -> None:
        """Open a job of a choice; nothing is left of one that cannot be opened."""
        self._choosing[job.group] = job
        if isinstance(asked.schema.features, OpenLandmarks):
            self._replacing.discard(job.group)
        else:
            self._replacing.add(job.group)
        board = self._board
        board.announce(job, asked.schema.canonical)
        try:
            await self._jobs.open(job)
        except SubmergeError:
            board.withdraw(job)
            self._choosing.pop(job.group, None)
            raise


def _again(node: AggregatorNode, group: str) -> LandmarksWanted:
    """Return the choice of a group's landmarks, for an operator."""
    if not node.top:
        raise UsageError(f"only the root chooses landmarks: {node.settings.parent} is above")
    ledger = node.ledger(group) if group in node.groups else None
    if ledger is None:
        raise UsageError(f"no group {group} here, or it has no schema yet")
    return choice_for(node.plan(group), ledger.schema)


def _wanted(node: AggregatorNode, _: Now) -> dict[str, LandmarksWanted] | None:
    """Return the choices that groups wait for; None if no group ever waits for one."""
    schemas = [node.plan(group).schema for group in node.groups]
    if not any(each is not None and isinstance(each.features, OpenLandmarks) for each in schemas):
        return None
    least = node.settings.scaling_rows
    found = {g: wanted(node.plan(g), node.ledger(g), least) for g in node.groups}
    return {group: asked for group, asked in found.items() if asked is not None}
