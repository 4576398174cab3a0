"""All settings: one dataclass per area, each field with unit, range and a sentence.

docs/configuration.md is generated from here (`nodeagent config docs`). Sources, later ones win: defaults, the YAML
file, the environment (`NODEAGENT_<AREA>_<KEY>`, and `NODE_NAME`), flags (`--set area.key=value`).
"""

from dataclasses import dataclass, field
from typing import Any


def setting(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    env: str = "",
) -> Any:
    """A dataclass field with the facts that checking and the reference page need. Bounds are inclusive."""
    facts = {"doc": doc, "unit": unit, "low": low, "high": high, "choices": choices, "env": env}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Which node this is."""

    name: str = setting("", "Name of the Kubernetes node; part of the name of every published object.", env="NODE_NAME")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and how."""

    level: str = setting("info", "Least serious line that is written.", choices=("debug", "info", "warning", "error"))
    format: str = setting("text", "`text` for people, `json` for machines.", choices=("text", "json"))
    fault_diag_file: str = setting(
        "",
        "File with one line for each alarm of the BMC, in the form that FaultDiag of MindCluster reads from NodeD."
        " Empty: none.",
    )


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """The DCMI library and the host process around it."""

    library: str = setting("", "Path of libdcmi.so. Empty: LD_LIBRARY_PATH, then the loader's cache.")
    trust_library: bool = setting(
        False, "Load a library although others than root could have written it. For dry runs and tests only."
    )
    generation: str = setting(
        "auto", "API generation: v1 (before Ascend 950), v2 (950), or try v1 first.", choices=("auto", "v1", "v2")
    )
    call_deadline_s: float = setting(
        5.0,
        "Longest time a query of one chip may take before its host is replaced and the chip left alone.",
        unit="s",
        low=0.1,
        high=60,
    )
    init_deadline_s: float = setting(
        120.0, "Longest time loading and initialising the library may take.", unit="s", low=1, high=600
    )


@dataclass(frozen=True, slots=True)
class ChipSettings:
    """How often chips are asked."""

    health_period_s: float = setting(5.0, "Card-drop check of each chip.", unit="s", low=0.5, high=300)
    poll_period_s: float = setting(
        5.0, "Code list of each chip while fault events are not subscribed.", unit="s", low=0.5, high=300
    )
    full_query_period_s: float = setting(
        300.0,
        "Code list of each chip while events are subscribed: repairs lost messages in both directions.",
        unit="s",
        low=1,
        high=300,
    )


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The network ports of the chips: their gateway, and hccn_tool."""

    gateway: bool = setting(
        True,
        "Ask for the gateway detection of each chip; a gateway that does not answer counts as a link that is down.",
    )
    gateway_period_s: float = setting(5.0, "Gateway sample of each chip.", unit="s", low=0.5, high=300)
    gateway_deadline_s: float = setting(
        1.0, "Longest time a gateway call may take; it has a driver host of its own.", unit="s", low=0.1, high=60
    )
    hccn_tool: str = setting(
        "", "Path of hccn_tool, a second opinion on links. `auto`: the driver's own if it is there. Empty: not used."
    )
    hccn_deadline_s: float = setting(
        5.0, "Longest time hccn_tool may take for one chip before it is killed.", unit="s", low=0.1, high=60
    )
    query_period_s: float = setting(
        300.0, "Distance of two questions to hccn_tool about one chip.", unit="s", low=30, high=3600
    )
    down_query_period_s: float = setting(
        30.0, "The same while the link of the chip is believed down.", unit="s", low=5, high=300
    )
    uboe_boards: str = setting(
        "0x23,0x25,0x27", "Main boards of the 950 that have UBoE ports: hexadecimal numbers with commas between them."
    )


@dataclass(frozen=True, slots=True)
class SwitchSettings:
    """The L1 switches of an A3 node: the LingQu library. Other products never use it."""

    enabled: bool = setting(True, "Watch the switches of an A3 node; without it their state is published as not known.")
    library: str = setting("", "Path of liblingqu-dcmi.so. Empty: LD_LIBRARY_PATH, then the loader's cache.")
    query_period_s: float = setting(
        300.0, "List of all switch faults: repairs lost messages in both directions.", unit="s", low=1, high=300
    )
    poll_period_s: float = setting(
        5.0, "The same while switch events cannot be subscribed.", unit="s", low=0.5, high=300
    )


@dataclass(frozen=True, slots=True)
class IpmiSettings:
    """The BMC of the board, whose alarms are node faults (docs/node-faults.md)."""

    transport: str = setting(
        "inband",
        "How the BMC is asked: `inband` through `ipmi.device`, `lan` through the network, `off` not at all. A dry run"
        " asks the pretended BMC instead, except with `lan`.",
        choices=("inband", "lan", "off"),
    )
    device: str = setting("/dev/ipmi0", "Device file of the kernel's IPMI driver.")
    address: str = setting(
        "",
        "Host name or IP address of the BMC, for transport `lan`; `{node}` in it stands for the node's name. Empty:"
        " what the file `address` in `ipmi.credentials_dir` says.",
    )
    port: int = setting(623, "UDP port of the BMC, for transport `lan`.", low=1, high=65535)
    credentials_dir: str = setting(
        "",
        "Folder with the files `username`, `password` and perhaps `address` (a mounted Secret), for transport `lan`."
        " They are read anew for each login.",
    )
    poll_period_s: float = setting(60.0, "Distance of two polls of the alarms.", unit="s", low=0.2, high=600)
    command_deadline_s: float = setting(
        10.0, "Longest time the BMC may take for one command.", unit="s", low=0.1, high=60
    )
    serial_number: bool = setting(
        True, "Read the serial number of the product and write it to the node as `product-serial-number`."
    )
    report_interval_s: float = setting(
        5.0, "Least time between two writes of the node-info object.", unit="s", low=0.02, high=300
    )


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Storage clients whose faults are told to ClusterD as public faults (docs/node-faults.md)."""

    dpc: str = setting(
        "auto",
        "Watch the client of Scale-Out Storage (DPC): `on`, `off`, or `auto`, which begins once its file is there.",
        choices=("auto", "on", "off"),
    )
    dtfs: str = setting("auto", "Watch the DTFS client; as `storage.dpc`.", choices=("auto", "on", "off"))
    proc: str = setting("/proc", "Where /proc of the host is seen; in a pod a mount of it.")
    read_period_s: float = setting(5.0, "Distance of two readings of a state file.", unit="s", low=0.1, high=60)


@dataclass(frozen=True, slots=True)
class PublicFaultSettings:
    """How ClusterD hears of public faults (docs/node-faults.md)."""

    delivery: str = setting(
        "configmap",
        "`configmap` writes one ConfigMap for each storage client, `grpc` calls ClusterD (needs `nodeagent[grpc]`),"
        " `off` tells nobody.",
        choices=("configmap", "grpc", "off"),
    )
    address: str = setting(
        "clusterd-grpc-svc.mindx-dl.svc.cluster.local:8899", "HOST:PORT of ClusterD, for delivery `grpc`."
    )
    tls_ca: str = setting("", "File with the CA that signed ClusterD's certificate. Empty: no TLS.")
    tls_certificate: str = setting("", "File with our own certificate, where ClusterD asks for one.")
    tls_key: str = setting("", "File with the key of `public_faults.tls_certificate`.")
    tls_server_name: str = setting("", "Name in ClusterD's certificate, where it is not the host of the address.")
    call_deadline_s: float = setting(5.0, "Longest time a call may take.", unit="s", low=0.5, high=60)
    chips_deadline_s: float = setting(
        120.0,
        "How long a fault waits for the list of the chips that it concerns; then it is told for chip 0.",
        unit="s",
        low=0,
        high=3600,
    )


@dataclass(frozen=True, slots=True)
class FaultSettings:
    """Fault tables and rules (docs/rules.md): shipped < `site_file` < `config_dir` < `config_map`."""

    site_file: str = setting("", "YAML file laid over the shipped tables and rules, merged by code and field.")
    config_dir: str = setting(
        "",
        "Folder with faultCode.json, faultCustomization.json, SwitchFaultCode.json, NodeDConfiguration.json,"
        " PollInterval and nodeagent.yaml, each optional; the same documents as in the ConfigMaps. Empty: none.",
    )
    config_map: str = setting(
        "kube-system/mindx-dl-fault-config",
        "ConfigMap with these documents, NAMESPACE/NAME, read from where the objects are published to. Empty: none.",
    )
    node_config_map: str = setting(
        "mindx-dl/mindx-dl-node-fault-config",
        "ConfigMap with NodeDConfiguration.json or nodeagent.yaml, the levels of node faults. Empty: none.",
    )
    node_on_delete: str = setting(
        "builtin",
        "What holds for node faults when that ConfigMap is deleted: `builtin`, the layers below it, or `keep`, the"
        " levels that it had until the next start.",
        choices=("builtin", "keep"),
    )
    reload_period_s: float = setting(
        5.0, "How often `site_file` and `config_dir` are compared with what is in force.", unit="s", low=0.1, high=300
    )


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """Where the objects go."""

    target: str = setting(
        "kubernetes",
        "`kubernetes` writes ConfigMaps, `directory` files that kubectl can apply, `stdout` prints them.",
        choices=("kubernetes", "directory", "stdout"),
    )
    mode: str = setting(
        "live",
        "`live` writes the objects that schedulers read. `shadow` writes `<name>-shadow` without their label and leaves"
        " the node object alone, so that both can be compared while another program is in charge.",
        choices=("live", "shadow"),
    )
    other_writer: str = setting(
        "wait",
        "What `live` does at its start while another program (the device plugin of MindCluster) writes our object:"
        " `wait` until it has been quiet for 15 minutes, or `overwrite` it.",
        choices=("wait", "overwrite"),
    )
    directory: str = setting("", "Folder for target `directory`: DIR/<namespace>/<name>.yaml.")
    kubeconfig: str = setting(
        "", "kubeconfig file for target `kubernetes`. Empty: the service account of the pod we run in."
    )
    min_distance_s: float = setting(
        1.0,
        "Least time between two writes of one object; the first after quiet is not delayed.",
        unit="s",
        low=0.02,
        high=60,
    )
    refresh_period_s: float = setting(
        300.0, "An unchanged object is written again after this time.", unit="s", low=10, high=300
    )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What else is read from and written to the API server, with target `kubernetes`."""

    pods: bool = setting(
        True, "Follow the pods of this node: a chip that a pod uses is not offered, and PreSeparateNPU waits for it."
    )


@dataclass(frozen=True, slots=True)
class ShadowSettings:
    """The comparison with the live object in shadow mode, with target `kubernetes` (docs/migration.md)."""

    compare: bool = setting(
        True, "Follow the live object that another program writes, and tell in log and metrics how ours differs."
    )
    settle_s: float = setting(
        10.0,
        "How long a difference must stand to count: both sides write at their own pace.",
        unit="s",
        low=0.1,
        high=600,
    )
    time_tolerance_s: float = setting(
        10.0, "Two times of one fault that lie no further apart count as equal.", unit="s", low=0, high=3600
    )


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Kubernetes Events about the node, with target `kubernetes` (docs/events.md)."""

    enabled: bool = setting(True, "Send Events to the API server; the log has them in any case.")
    namespace: str = setting(
        "kube-system",
        "Where they lie. The API server allows Events about a node in these two namespaces only.",
        choices=("kube-system", "default"),
    )
    per_minute: int = setting(10, "Most Events in the long run; what is more is merged.", low=1, high=600)
    burst: int = setting(25, "Most Events at once after quiet.", low=1, high=250)


@dataclass(frozen=True, slots=True)
class NodeObjectSettings:
    """Labels and annotations of the Kubernetes node."""

    enabled: bool = setting(
        True,
        "Write labels and annotations that schedulers need to the node object; off in shadow mode.",
    )
    skip: str = setting(
        "", "Labels and annotations that are not written: names with commas between them, e.g. `servertype`."
    )
    conditions: bool = setting(
        False,
        "Keep the node conditions AscendChipsHealthy, AscendNetworkHealthy and NodeagentDriver; never in shadow mode.",
    )


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """Files of the daemon itself."""

    state_dir: str = setting(
        "/var/lib/nodeagent",
        "Folder for counters and timers that must survive a restart. Empty: they start from zero.",
    )
    lock: str = setting(
        "/run/nodeagent/nodeagent.lock",
        "Lock file: a second daemon of this node waits until the first has ended. Empty: none.",
    )
    socket: str = setting(
        "/run/nodeagent/nodeagent.sock",
        "UNIX socket for `scan`, `why`, `release`, `shadow diff` and `table diff`. Empty: none.",
    )


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP endpoint: /healthz, /readyz, /metrics, and on a loopback address /state (docs/monitoring.md)."""

    address: str = setting(
        "127.0.0.1",
        "IP address to listen at, also IPv6. `::` is every address of both kinds, `0.0.0.0` every IPv4 one.",
    )
    port: int = setting(11256, "TCP port; 0: no endpoint.", low=0, high=65535)


@dataclass(frozen=True, slots=True)
class MockSettings:
    """The pretended node of a dry run."""

    node: str = setting("a2", "Profile name (310, 310p, 910a, a2, a3, 950) or a YAML node description.")
    timeline: str = setting("", "YAML file with what happens to the pretended node, and when.")
    socket: str = setting(
        "", "Control socket of a mock node that runs already; empty: start one.", env="NODEAGENT_MOCK_SOCKET"
    )
    on_real_node: str = setting(
        "refuse",
        "What a dry run that writes live objects to a cluster does on a machine with real NPUs: `refuse` to start, or"
        " `publish` pretended faults for schedulers to act on.",
        choices=("refuse", "publish"),
    )
    time_factor: float = setting(
        1.0, "How many times as fast policy time runs in a dry run; deadlines and writes stay real.", low=0.1, high=3600
    )
    time_anchor_s: float = setting(
        0.0,
        "Monotonic second at which accelerated time begins, so that it goes on across a restart; 0: when we start.",
        unit="s",
        low=0,
        high=1e10,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    node: NodeSettings = NodeSettings()
    log: LogSettings = LogSettings()
    driver: DriverSettings = DriverSettings()
    chips: ChipSettings = ChipSettings()
    links: LinkSettings = LinkSettings()
    switches: SwitchSettings = SwitchSettings()
    ipmi: IpmiSettings = IpmiSettings()
    storage: StorageSettings = StorageSettings()
    public_faults: PublicFaultSettings = PublicFaultSettings()
    faults: FaultSettings = FaultSettings()
    publish: PublishSettings = PublishSettings()
    cluster: ClusterSettings = ClusterSettings()
    shadow: ShadowSettings = ShadowSettings()
    events: EventSettings = EventSettings()
    node_object: NodeObjectSettings = NodeObjectSettings()
    daemon: DaemonSettings = DaemonSettings()
    http: HttpSettings = HttpSettings()
    mock: MockSettings = MockSettings()
