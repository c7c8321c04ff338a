"""How much a client's jobs may take: of its unit's memory, its process's, and the machine's."""

from __future__ import annotations

import math
import os
import resource

import pytest

from submerge_client.memory import FOR_JOBS, room_for_jobs

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def machine(tmp_path):
    """A machine with 900 MiB free, and a unit with 192 of which the client holds 70."""
    proc, unit = tmp_path / "proc", tmp_path / "cgroup" / "system.slice" / "submerge.service"
    (proc / "self").mkdir(parents=True)
    unit.mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:  {900 * 1024} kB\n")
    (proc / "self" / "cgroup").write_text("0::/system.slice/submerge.service\n")
    pages = [300 * MIB, 70 * MIB, 0, 0, 0, 100 * MIB, 0]
    (proc / "self" / "statm").write_text(" ".join(str(each // PAGE) for each in pages))
    (unit / "memory.max").write_text(f"{192 * MIB}\n")
    return proc, tmp_path / "cgroup", unit


def test_a_unit_limits_its_jobs(machine):
    proc, cgroups, _ = machine

    assert FOR_JOBS * 122 * MIB == room_for_jobs(proc, cgroups)


def test_without_a_limit_it_is_what_the_machine_has_free(machine):
    proc, cgroups, unit = machine
    (unit / "memory.max").write_text("max\n")

    assert FOR_JOBS * 900 * MIB == room_for_jobs(proc, cgroups)


def test_a_limit_of_the_process_counts_as_well(machine, monkeypatch):
    proc, cgroups, _ = machine
    limits = {resource.RLIMIT_AS: 350 * MIB, resource.RLIMIT_DATA: 120 * MIB}
    monkeypatch.setattr(resource, "getrlimit", lambda name: (limits[name], limits[name]))

    assert FOR_JOBS * 20 * MIB == room_for_jobs(proc, cgroups)


def test_a_process_over_its_limit_has_no_room(machine):
    proc, cgroups, unit = machine
    (unit / "memory.max").write_text(str(50 * MIB))

    assert 0.0 == room_for_jobs(proc, cgroups)


def test_where_nothing_is_known_nothing_is_declined(tmp_path):
    assert math.inf == room_for_jobs(tmp_path, tmp_path)


def test_here_it_is_some():
    assert 0.0 < room_for_jobs()
