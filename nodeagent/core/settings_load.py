"""Settings from a YAML text, the environment and flags. Pure: texts and mappings in, `Settings` out."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import yaml

from nodeagent.core.errors import NodeNameError, SettingsError
from nodeagent.core.settings import Settings

ENV_PREFIX = "NODEAGENT_"
_FALSE, _TRUE = frozenset({"false", "no", "off", "0"}), frozenset({"true", "yes", "on", "1"})
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE_NAME_MAX = 230
_SHADOW_NAME_MAX = 226
_SERVICE_LINK = re.compile(r"\w*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
"""What Kubernetes puts into every pod of a namespace with a Service whose name begins like ours."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting, described: `area.key`, its type, default and the facts given in its declaration."""

    area: str
    key: str
    kind: type
    default: Any
    facts: Mapping[str, Any]

    @property
    def path(self) -> str:
        """`area.key`, as in messages and `--set`."""
        return f"{self.area}.{self.key}"

    @property
    def env(self) -> str:
        """Environment variable that sets it."""
        return self.facts["env"] or f"{ENV_PREFIX}{self.area}_{self.key}".upper()


def all_fields() -> list[Field]:
    """Every setting in the order of its declaration."""
    found = []
    for area in fields(Settings):
        part: Any = area.default
        for key in fields(part):
            found.append(Field(area.name, key.name, type(key.default), key.default, key.metadata))
    return found


def load_settings(
    text: str | None,
    label: str,
    environ: Mapping[str, str],
    overrides: Sequence[str] = (),
    base: Settings | None = None,
) -> Settings:
    """Settings from all sources. text None: no file. overrides: `area.key=value`. base: what no source says.

    Raises SettingsError naming file and line, variable or flag, the key, and what is allowed.
    """
    values: dict[str, Any] = {}
    known = {f.path: f for f in all_fields()}
    if text is not None:
        for path, node, place in _entries(text, label):
            values[path] = _from_text(_field(known, path, place), node, place)
    for described in known.values():
        if described.env in environ:
            place = f"environment variable {described.env}"
            values[described.path] = _from_text(described, environ[described.env], place)
    _check_environment(known.values(), environ)
    for override in overrides:
        path, equals, value = override.partition("=")
        place = f"--set {override}"
        if not equals:
            raise SettingsError(f"{place}: expected area.key=value")
        values[path.strip()] = _from_text(_field(known, path.strip(), place), value.strip(), place)
    settings = base or Settings()
    for area in fields(Settings):
        mine = {p.partition(".")[2]: v for p, v in values.items() if p.startswith(area.name + ".")}
        if mine:
            settings = replace(settings, **{area.name: replace(getattr(settings, area.name), **mine)})
    return settings


def check_node_name(name: str, shadow: bool = False) -> str:
    """The name, if a node can have it (device-info 1): 1..230 characters of a DNS subdomain. Raises NodeNameError.

    shadow: 226 characters, so that the name of the shadow object is none too long for the API server.
    """
    longest = _SHADOW_NAME_MAX if shadow else _NODE_NAME_MAX
    hint = "set NODE_NAME from spec.nodeName with the downward API, or node.name in the settings"
    if not name:
        raise NodeNameError("the node name is not set", hint)
    if len(name) > longest:
        raise NodeNameError(f"the node name has {len(name)} characters, at most {longest} are allowed", hint)
    if not _NODE_NAME.fullmatch(name):
        raise NodeNameError(f"{name!r} cannot be the name of a node: lower-case letters, digits, '-' and '.'", hint)
    return name


def _entries(text: str, label: str) -> Iterable[tuple[str, str, str]]:
    """(area.key, text of the value, place) of every entry of the file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{label}:{mark.line + 1}" if mark is not None else label
        problem = getattr(error, "problem", None) or "cannot be read"
        raise SettingsError(f"{where}: not YAML: {problem}") from error
    if root is None:
        return
    areas = set()
    for area, area_place, body in _pairs(root, label, "the settings"):
        if area in areas:
            raise SettingsError(f"{area_place}: area {area!r} is there twice")
        areas.add(area)
        seen = set()
        for key, place, value in _pairs(body, label, f"area {area!r}"):
            if not isinstance(value, yaml.ScalarNode):
                raise SettingsError(f"{place}: {area}.{key} must be a single value")
            if key in seen:
                raise SettingsError(f"{place}: {area}.{key} is set twice")
            seen.add(key)
            if value.tag != "tag:yaml.org,2002:null":  # a key without a value leaves the default
                yield f"{area}.{key}", value.value, place
        if not seen and area not in {f.name for f in fields(Settings)}:
            raise SettingsError(f"{area_place}: there is no area {area!r}")


def _pairs(node: Any, label: str, what: str) -> Iterable[tuple[str, str, Any]]:
    place = f"{label}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null"):
        return
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{place}: {what} must be a mapping of names to values")
    for key, value in node.value:
        yield str(key.value), f"{label}:{key.start_mark.line + 1}", value


def _field(known: Mapping[str, Field], path: str, place: str) -> Field:
    if path in known:
        return known[path]
    near = difflib.get_close_matches(path, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`nodeagent config docs` lists all settings"
    raise SettingsError(f"{place}: there is no setting {path!r}", hint)


def _from_text(described: Field, text: str, place: str) -> Any:
    """The value of a text in the type of the setting, in its range."""
    value: Any = text
    if described.kind is bool:
        value = _bool(described, text, place)
    elif described.kind in (int, float):
        try:
            value = described.kind(text)
        except ValueError:
            what = "a number" if described.kind is float else "a whole number"
            raise SettingsError(f"{place}: {described.path} must be {what}, not {text!r}") from None
        _check_range(described, value, place)
    choices = described.facts["choices"]
    if choices and value not in choices:
        raise SettingsError(f"{place}: {described.path} must be one of {', '.join(choices)}, not {text!r}")
    return value


def _bool(described: Field, text: str, place: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise SettingsError(f"{place}: {described.path} must be true or false, not {text!r}")


def _check_range(described: Field, value: float, place: str) -> None:
    low, high, unit = described.facts["low"], described.facts["high"], described.facts["unit"]
    if not (low is None or value >= low) or not (high is None or value <= high):
        raise SettingsError(f"{place}: {described.path} must be {low:g}..{high:g} {unit}".rstrip() + f", not {value:g}")


def _check_environment(known: Iterable[Field], environ: Mapping[str, str]) -> None:
    """A variable with our prefix that means nothing is a typing error of somebody."""
    names = {f.env for f in known} | {"NODEAGENT_CONFIG", "NODEAGENT_TERMINATION_LOG"}
    for name in environ:
        if name.startswith(ENV_PREFIX) and name not in names and not _SERVICE_LINK.fullmatch(name):
            near = difflib.get_close_matches(name, names, n=1)
            raise SettingsError(
                f"environment variable {name} is no setting", f"did you mean {near[0]}?" if near else ""
            )
