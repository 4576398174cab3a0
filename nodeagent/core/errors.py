"""One root for all errors of nodeagent.

Every error has a stable short code (an anchor in docs/errors.md), one sentence, and a hint what to do.
"""

from typing import ClassVar


class NodeAgentError(Exception):
    """Root of all errors.

    sentence: what is wrong, naming file, line or key; one sentence without a final period.
    hint: what the reader can do about it; may be empty.
    """

    code: ClassVar[str] = "NA000"

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}" + (f" ({self.hint})" if self.hint else "")


class SettingsError(NodeAgentError, ValueError):
    """A setting is unknown, of the wrong type or out of range."""

    code = "NA101"


class NodeNameError(SettingsError):
    """The node name is missing or cannot be the name of a Kubernetes node."""

    code = "NA102"


class TableError(NodeAgentError, ValueError):
    """A fault table cannot be used: not readable, not YAML, or an entry is wrong."""

    code = "NA201"


class UnknownCodeError(NodeAgentError, KeyError):
    """A fault code is in no table and has no readable form."""

    code = "NA202"

    __str__ = NodeAgentError.__str__


class LibraryError(NodeAgentError, OSError):
    """The vendor library was not found, is not trusted or cannot be loaded."""

    code = "NA301"


class DriverError(NodeAgentError):
    """A driver call failed. Subclasses and `kind` live in `nodeagent.drivers.answers`."""

    code = "NA302"


class HostError(NodeAgentError):
    """The driver host (child process) died, does not answer, or spoke out of protocol."""

    code = "NA303"


class IpmiError(NodeAgentError):
    """The BMC did not answer a command, or not as it must; nothing is known of its alarms now."""

    code = "NA304"


class IpmiNotSupportedError(IpmiError):
    """The BMC does not know the command or does not let us use it: asking often is of no use (node-faults 3.6)."""

    code = "NA304"


class IpmiAccessError(IpmiError):
    """No way to the BMC: no device file, no credentials, a login that it refuses."""

    code = "NA305"


class StorageStateError(NodeAgentError):
    """The state file of a storage client cannot be read, is not trusted or is not understood."""

    code = "NA306"


class ScenarioError(NodeAgentError, ValueError):
    """A node description or timeline of the mock is wrong."""

    code = "NA401"


class MockError(NodeAgentError):
    """The mock node refused a command or cannot be reached."""

    code = "NA402"


class ContractError(NodeAgentError):
    """An object would be misread or refused by its consumers, so it is not sent."""

    code = "NA501"


class PublishError(NodeAgentError):
    """A target did not take an object; it is tried again."""

    code = "NA502"


class ReadBackError(NodeAgentError):
    """Our own published object could not be read back; what is known is kept.

    retry_after_s: how long the target wants to be left alone, 0 = it did not say.
    """

    code = "NA503"
    retry_after_s: float = 0.0


class NotAskedError(ReadBackError):
    """Nobody was asked yet; an answer will come."""

    code = "NA503"


class ForbiddenError(ReadBackError):
    """We have no right to read an object: asking again is of no use before somebody grants it."""

    code = "NA506"


class PublicFaultError(PublishError):
    """ClusterD refused a public fault message or was not reached; it is tried again."""

    code = "NA507"
