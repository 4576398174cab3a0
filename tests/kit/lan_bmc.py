"""An iBMC on the network, as a process: pyghmi's server side with the two commands of an iBMC (node-faults 6.2).

Usage: lan_bmc.py PORT FOLDER. What it is like stands in FOLDER/state.json, read anew for each message (see `State`).
FOLDER/journal has one word for each login and each command.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kit.bmc import FakeBmc

from nodeagent.core.alarms import Alarm

USER, PASSWORD = "monitor", "secret-of-the-bmc"


@dataclass
class State:
    """alarms: fields of `Alarm`. serial: parts as hex. mute: no commands are answered, logins are.

    no_cipher: every proposal is refused. rakp_status: with which RAKP message 1 is answered, 0 = as it must be.
    code: completion code of every command of the iBMC.
    """

    alarms: list[list[int]] = field(default_factory=list)
    page_size: int = 16
    serial: list[str] = field(default_factory=lambda: ["0080"])
    mute: bool = False
    no_cipher: bool = False
    rakp_status: int = 0
    code: int = 0

    def write(self, folder: Path) -> None:
        """Put it where the process looks; in one step, because it may look at any moment."""
        new = folder / "state.new"
        new.write_text(json.dumps(asdict(self)))
        new.replace(folder / "state.json")


def _read(folder: Path) -> State:
    return State(**json.loads((folder / "state.json").read_text()))


def answer(state: State, netfn: int, command: int, data: Sequence[int]) -> bytes:
    """Completion code and payload of a command of the iBMC."""
    if state.code:
        return bytes([state.code])
    bmc = FakeBmc(
        [Alarm(*fields) for fields in state.alarms], state.page_size, [bytes.fromhex(p) for p in state.serial]
    )
    return bmc.answer(netfn, command, bytes(data))


def main() -> None:
    """Serve until killed."""
    from pyghmi.ipmi import bmc as pyghmi_bmc
    from pyghmi.ipmi.private import constants, serversession

    port, folder = int(sys.argv[1]), Path(sys.argv[2])

    def note(word: str) -> None:
        with (folder / "journal").open("a") as journal:
            journal.write(word + "\n")

    class Session(serversession.ServerSession):  # type: ignore[misc]
        def create_open_session_response(self, request: Any) -> bytearray:
            # pyghmi's server speaks suite 3 alone and does not say so: without a refusal its own client fails.
            good = super().create_open_session_response(request)
            if request[12] == 3 or _read(folder).no_cipher:
                return bytearray([request[0], 0x11, 0, 0]) + bytearray(request[4:8])
            note("open")
            return good

        def _got_rakp1(self, data: Any) -> None:
            status = _read(folder).rakp_status
            known = self.authdata.get(bytes(data[28:]).decode()) is not None
            note("login" if known else "stranger")
            if status or not known:
                refusal = bytearray([data[0], status or 0x0D, 0, 0]) + bytearray(self.clientsessionid)
                self.send_payload(refusal, constants.payload_types["rakp2"], retry=False)
            else:
                super()._got_rakp1(data)

        def close_server_session(self) -> None:
            note("logout")

    class Bmc(pyghmi_bmc.Bmc):  # type: ignore[misc]
        def handle_raw_request(self, request: Any, session: Any) -> None:
            state = _read(folder)
            if request["netfn"] != 0x30:
                super().handle_raw_request(request, session)
            elif not state.mute:
                note(f"{request['netfn']:02x}/{request['command']:02x}")
                said = answer(state, request["netfn"], request["command"], request["data"])
                session.send_ipmi_response(code=said[0], data=said[1:])

    serversession.ServerSession = Session
    server = Bmc({USER: PASSWORD}, port=port, address="127.0.0.1")
    (folder / "ready").touch()
    server.listen()


if __name__ == "__main__":
    main()
