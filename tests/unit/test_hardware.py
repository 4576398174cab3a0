"""Signs of a real NPU, and the dry run that refuses to pretend beside one."""

from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.cli import run
from nodeagent.core.errors import SettingsError
from nodeagent.core.settings import MockSettings, PublishSettings, Settings
from nodeagent.drivers.hardware import npu_traces

LIVE = Settings(publish=PublishSettings(target="kubernetes"))


def pci(root: Path, name: str, vendor: str, kind: str) -> None:
    device = root / "sys" / "bus" / "pci" / "devices" / name
    device.mkdir(parents=True)
    (device / "vendor").write_text(vendor + "\n")
    (device / "class").write_text(kind + "\n")


def test_a_machine_without_one(tmp_path: Path) -> None:
    assert npu_traces(tmp_path) == ()
    pci(tmp_path, "0000:01:00.0", "0x19e5", "0x020000")  # a network card of the same vendor
    pci(tmp_path, "0000:02:00.0", "0x10de", "0x120000")  # an accelerator of another
    (tmp_path / "sys" / "bus" / "pci" / "devices" / "0000:03:00.0").mkdir()  # pulled just now
    assert npu_traces(tmp_path) == ()


def test_device_files_and_pci_devices_are_signs(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("davinci_manager", "davinci0", "davinci1", "davinci2", "davinci_other"):
        (tmp_path / "dev" / name).touch()
    for number in range(8):
        pci(tmp_path, f"0000:0{number}:00.0", "0x19e5", "0x120000")
    found = npu_traces(tmp_path)
    assert [Path(each).name for each in found[:3]] == ["davinci_manager", "davinci0", "davinci1"]
    assert found[3] == "PCI device 0000:00:00.0"
    assert len(found) == 6, "a few of each are enough"


def test_a_live_dry_run_is_refused_beside_real_npus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "npu_traces", lambda: ("/dev/davinci0",))
    with pytest.raises(SettingsError, match="real NPUs: /dev/davinci0") as caught:
        run._check_pretending(LIVE)
    assert "mock.on_real_node=publish" in caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        replace(LIVE, publish=PublishSettings(target="kubernetes", mode="shadow")),
        replace(LIVE, publish=PublishSettings(target="directory", directory="out")),
        replace(LIVE, mock=MockSettings(on_real_node="publish")),
    ],
)
def test_what_harms_nobody_or_is_said_in_words_is_allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "npu_traces", lambda: ("/dev/davinci0",))
    run._check_pretending(settings)


def test_without_real_npus_everything_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "npu_traces", lambda: ())
    run._check_pretending(LIVE)
