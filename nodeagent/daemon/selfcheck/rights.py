"""Every right that the settings need at the API server, and what is said of those that are missing. Pure.

`needed_rights` is the one list: whoever adds a request to the daemon adds its right here, and the manifests are tested
against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.settings import Settings
from nodeagent.core.storage import StorageClient
from nodeagent.daemon.selfcheck.check import Check, fail, ok, warn
from nodeagent.publish.public_fault_leftover import PUBLIC_FAULT_PREFIX
from nodeagent.render import node_info
from nodeagent.render.device_info import NAMESPACE, SHADOW_SUFFIX, object_name

NAME = "rights"


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource, in the words of RBAC. group: empty = core. namespace: empty = the whole cluster.

    name: of the one object that is meant, empty = every object of the resource.
    """

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    group: str = ""
    subresource: str = ""

    @property
    def rbac_resource(self) -> str:
        """`nodes/status` and the like."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def review(self) -> dict[str, object]:
        """A SelfSubjectAccessReview that asks for this right."""
        wanted = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in wanted.items() if value}},
        }


def needed_rights(settings: Settings) -> tuple[Right, ...]:
    """The rights of a daemon with these settings; none when it does not publish to a cluster.

    A list or watch by `metadata.name` is granted by a rule with `resourceNames`; a create never is, because the name
    is not known when the right is judged.
    """
    if settings.publish.target != "kubernetes":
        return ()
    shadow = settings.publish.mode == "shadow"
    own = object_name(settings.node.name, shadow)
    rights = [Right("create", "configmaps", NAMESPACE)]
    rights += [Right(verb, "configmaps", NAMESPACE, own) for verb in ("get", "update", "list", "watch")]
    if shadow and settings.shadow.compare:
        rights += [Right(verb, "configmaps", NAMESPACE, object_name(settings.node.name)) for verb in ("list", "watch")]
    if settings.faults.config_map:
        namespace, _, name = settings.faults.config_map.partition("/")
        rights += [Right(verb, "configmaps", namespace, name) for verb in ("get", "list", "watch")]
    if settings.cluster.pods:
        rights += [Right(verb, "pods") for verb in ("list", "watch")]
    if settings.node_object.enabled and not shadow:
        rights += [Right(verb, "nodes", name=settings.node.name) for verb in ("get", "patch")]
    if settings.events.enabled:
        rights.append(Right("create", "events", settings.events.namespace))
    if settings.node_object.conditions and not shadow:
        rights.append(Right("patch", "nodes", name=settings.node.name, subresource="status"))
    return tuple(dict.fromkeys([*rights, *_node_fault_rights(settings, shadow)]))


def _node_fault_rights(settings: Settings, shadow: bool) -> list[Right]:
    """Node faults (node-faults 17.2): their objects, the levels, and our own pod, which says to whom they belong."""
    rights: list[Right] = []
    place, node = node_info.NAMESPACE, settings.node.name
    if settings.ipmi.transport != "off":
        own = node_info.object_name(node, shadow)
        rights.append(Right("create", "configmaps", place))
        rights += [Right(verb, "configmaps", place, own) for verb in ("get", "update", "delete")]
        rights.append(Right("get", "pods", place))
        if settings.faults.node_config_map:
            namespace, _, name = settings.faults.node_config_map.partition("/")
            rights += [Right(verb, "configmaps", namespace, name) for verb in ("get", "list", "watch")]
    if settings.public_faults.delivery == "configmap":
        suffix = SHADOW_SUFFIX if shadow else ""
        for client in StorageClient:
            if getattr(settings.storage, client.value) != "off":
                own = f"{PUBLIC_FAULT_PREFIX}{client.value}-{node}{suffix}"
                rights.append(Right("create", "configmaps", place))
                rights += [Right(verb, "configmaps", place, own) for verb in ("get", "update")]
    return rights


def rbac_rules(rights: Sequence[Right]) -> list[str]:
    """Lines of YAML that grant these rights: below each role that is named its rules, ready for its `rules:`."""
    roles: dict[str, dict[tuple[str, str, str], list[str]]] = {}
    for right in rights:
        rules = roles.setdefault(right.namespace, {})
        rules.setdefault((right.group, right.rbac_resource, right.name), []).append(right.verb)
    lines = []
    for namespace, rules in roles.items():
        lines.append(f"# Role in the namespace {namespace}" if namespace else "# ClusterRole")
        lines += [_rule(*key, verbs) for key, verbs in rules.items()]
    return lines


def check_rights(needed: Sequence[Right], denied: Sequence[Right] | NodeAgentError) -> Check:
    """denied: those of `needed` that the API server does not grant, or why it could not be asked."""
    if isinstance(denied, NodeAgentError):
        return warn(NAME, f"the API server does not say what we may do: {denied.sentence}", denied.hint)
    if not denied:
        return ok(NAME, f"all {len(needed)} rights are granted")
    lines = [f"{len(denied)} of {len(needed)} rights are missing", *rbac_rules(denied)]
    hint = (
        "add these rules to the roles of our service account; what needs them does not work without."
        " For a service account that many nodes share leave out resourceNames with the name of this node"
    )
    return fail(NAME, "\n".join(lines), hint)


def _rule(group: str, resource: str, name: str, verbs: Sequence[str]) -> str:
    names = f', resourceNames: ["{name}"]' if name else ""
    listed = ", ".join(f'"{verb}"' for verb in verbs)
    return f'- {{apiGroups: ["{group}"], resources: ["{resource}"]{names}, verbs: [{listed}]}}'
