"""A unit for systemd: written once, started, removed; said plainly where there is no systemd."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_operate.up.config import load
from submerge_operate.up.install import UnitFolder, install, uninstall, unit_name, unit_text

BOX = """
node = "desk"
folder = "kept"
[sensor]
kind = "host"
[schema]
channels = ["cpu.percent", "load.1"]
"""
ANALYZE = shutil.which("systemd-analyze")
NAME = "submerge-desk.service"
ME = pwd.getpwuid(os.geteuid()).pw_name

SYSTEMCTL = """#!/bin/sh
echo "$@" >> "{log}"
{then}
"""


class Home:
    """A folder with a configuration, a place for units, and a systemctl of our own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "home with spaces"
        self.folder.mkdir()
        self.path = Path("box.toml")
        self.write(BOX)
        monkeypatch.chdir(self.folder)
        self.bin, self.log = folder / "bin", folder / "systemctl.log"
        self.bin.mkdir()
        monkeypatch.setenv("PATH", str(self.bin))
        self.place = UnitFolder(folder / "units", user=True, system=folder / "system")
        self.said: list[str] = []

    @property
    def unit(self) -> Path:
        return self.place.folder / NAME

    def write(self, text: str) -> None:
        (self.folder / self.path).write_text(text)

    def systemctl(self, then: str = "exit 0") -> None:
        """Put a systemctl on the path that notes what it is asked for."""
        script = self.bin / "systemctl"
        script.write_text(SYSTEMCTL.format(log=self.log, then=then))
        script.chmod(0o755)

    @property
    def ran(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def do(self, act=install) -> int:
        self.said.clear()
        self.log.unlink(missing_ok=True)
        return act(load(self.path, {}), self.path, self.place, self.said.append)


@pytest.fixture
def home(tmp_path, monkeypatch):
    return Home(tmp_path, monkeypatch)


def test_it_starts_now_and_at_boot(home):
    home.systemctl()
    assert 0 == home.do()
    assert ["--user daemon-reload", f"--user enable --now {NAME}"] == home.ran
    assert f"wrote {home.unit}" == home.said[0]
    assert any("loginctl enable-linger" in line for line in home.said)
    assert (home.folder / "kept").is_dir()


def test_a_second_time_changes_nothing(home):
    home.systemctl()
    home.do()
    before = home.unit.stat()
    assert 0 == home.do()
    assert f"{home.unit} is as it was" == home.said[0]
    assert before.st_ino == home.unit.stat().st_ino
    assert not any("restart" in line for line in home.ran)


def test_a_unit_that_was_another_is_replaced_and_begins_again(home):
    home.systemctl()
    home.do()
    home.unit.write_text("[Service]\nExecStart=/another\n")
    assert 0 == home.do()
    assert f"--user restart {NAME}" == home.ran[-1]
    assert "=/another" not in home.unit.read_text()


def test_what_is_left_after_it_was_removed_is_the_data_and_the_configuration(home):
    home.systemctl()
    home.do()
    (home.folder / "kept" / "root.db").touch()
    assert 0 == home.do(uninstall)
    assert [f"--user disable --now {NAME}", "--user daemon-reload"] == home.ran
    assert [] == list(home.place.folder.iterdir())
    assert {"box.toml", "kept"} == {each.name for each in home.folder.iterdir()}
    assert str(home.folder / "kept") in home.said[-1]
    assert str(home.folder / "box.toml") in home.said[-1]
    assert 0 == home.do(uninstall)
    assert f"{NAME} is not installed" == home.said[0]


def test_without_systemd_it_says_what_to_type(home):
    assert 1 == home.do()
    assert home.unit.exists()
    assert "there is no systemctl here" in home.said[-1]
    assert (
        f"systemctl --user daemon-reload && systemctl --user enable --now {NAME}" in home.said[-1]
    )
    assert 0 == home.do(uninstall)
    assert not home.unit.exists()


def test_what_systemd_refuses_is_one_line(home):
    home.systemctl('echo "Failed to connect to bus: No medium found" >&2; exit 1')
    assert 1 == home.do()
    assert "Failed to connect to bus: No medium found; it does not start" in home.said[-1]
    assert 1 == home.do(uninstall)
    assert not home.unit.exists()


def test_a_sensor_that_reads_standard_input_is_no_service(home):
    home.write(BOX.replace("host", "ndjson"))
    with pytest.raises(UsageError, match="reads standard input"):
        home.do()
    assert not home.place.folder.exists()


def test_one_machine_has_one_unit(home):
    """A user's unit beside the system's would find its files taken."""
    home.systemctl()
    home.place.system.mkdir()
    (home.place.system / NAME).touch()
    with pytest.raises(UsageError, match="sudo submerge up --uninstall"):
        home.do()
    with pytest.raises(UsageError, match="sudo submerge up --uninstall"):
        home.do(uninstall)


def test_two_machines_have_two_units(home):
    home.systemctl()
    home.do()
    home.write(BOX.replace('"desk"', '"shed"'))
    assert 0 == home.do()
    assert {NAME, "submerge-shed.service"} == {each.name for each in home.place.folder.iterdir()}


def test_the_system_runs_it_as_the_owner_of_its_folder(home):
    home.systemctl()
    home.place = home.place._replace(user=False, folder=home.place.system)
    assert 0 == home.do()
    text = home.unit.read_text()
    assert f"User={ME}\n" in text
    assert f'ReadWritePaths="{home.folder}/kept"' in text
    assert "daemon-reload" == home.ran[0]
    assert not any("linger" in line for line in home.said)


def test_a_program_of_its_own_is_found_and_not_confined(home):
    """It may be anything, and inherits what the unit forbids."""
    home.write(BOX.replace('kind = "host"', 'kind = "program"\ncommand = ["read-it"]'))
    text = unit_text(load(home.path, {}), home.path, home.folder, owner="daemon")
    assert f"PATH={home.bin}" in text
    assert "User=daemon" in text
    assert not any(word in text for word in ("SystemCallFilter", "PrivateDevices", "MemoryMax"))


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
@pytest.mark.parametrize("owner", [None, "daemon"])
def test_systemd_understands_every_line(home, owner, tmp_path):
    """A setting that is misspelt would be passed over in silence, and so would a torn path."""
    home.write(BOX.replace('"kept"', '"100 % \\"kept\\" $HOME"'))
    config = load(home.path, {})
    unit = tmp_path / unit_name(config)
    unit.write_text(unit_text(config, home.path, home.folder, owner=owner))
    manager = "--user" if owner is None else "--system"
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(ANALYZE), manager, "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        env=environ,
    )
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_a_system_unit_may_do_little(home, tmp_path):
    """0 is nothing at all, 10 is what a service without any setting may do."""
    unit = tmp_path / NAME
    unit.write_text(unit_text(load(home.path, {}), home.path, Path("/srv/desk"), owner="daemon"))
    said = subprocess.run(
        [str(ANALYZE), "security", "--offline=true", "--no-pager", "--threshold=20", unit],
        capture_output=True,
        text=True,
    )
    assert 0 == said.returncode, said.stdout


def test_a_user_without_a_home_is_one_line(monkeypatch):
    """As in a container that runs under a number."""
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))

    with pytest.raises(UsageError, match=r"expected HOME or XDG_CONFIG_HOME .* user 54321"):
        UnitFolder.of_this_process({})
    assert Path("/x/systemd/user") == UnitFolder.of_this_process({"XDG_CONFIG_HOME": "/x"}).folder


def test_a_user_without_a_name_goes_by_its_number(home, monkeypatch):
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    home.systemctl()

    assert 0 == home.do()
    assert any(f"enable-linger {os.geteuid()}" in each for each in home.said)
