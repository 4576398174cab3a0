"""A daemon's socket, played by a test."""

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = Callable[[dict[str, Any]], Any]


class Played:
    """A daemon that answers with what the test says, and keeps the questions."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path = path
        self.questions: list[dict[str, Any]] = []
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                question = json.loads(client.makefile("rb").readline())
                self.questions.append(question)
                client.sendall(json.dumps({"ok": True, "answer": self.answer(question)}).encode() + b"\n")

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.listener.close()
