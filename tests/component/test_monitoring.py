"""Dashboard, alerts and the page about them: every metric and label in them exists, and promtool takes them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.promtool import promtool

from nodeagent.daemon.exposition import PREFIX
from nodeagent.daemon.metrics import DECLARED, Kind

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "manifests" / "monitoring"
PAGE = ROOT / "docs" / "monitoring.md"

LABELS: dict[str, set[str]] = {}
for _name, _declared in DECLARED.items():
    if _declared.kind is Kind.HISTOGRAM:
        LABELS[f"{_name}_bucket"] = {*_declared.labels, "le"}
        LABELS[f"{_name}_sum"] = LABELS[f"{_name}_count"] = set(_declared.labels)
    else:
        LABELS[_name] = set(_declared.labels)
OF_THE_SCRAPE = {"instance", "job"}
FUNCTIONS = {"sum", "count", "max", "min", "rate", "increase", "time", "vector", "histogram_quantile", "label_values"}
GROUPING = {"by", "without", "on", "ignoring"}
WORDS = {"or", "and", "unless", "offset", "bool", *GROUPING}
_TOKEN = re.compile(r'"[^"]*"|\[[^\]]*\]|\{|\}|\(|\)|=~|!~|!=|[a-zA-Z_:][\w:]*|[\d.]+[smhd]?|\S')


def check(expression: str) -> set[str]:
    """Metrics of an expression, without prefix. AssertionError for a name or label that nobody gives."""
    tokens = _TOKEN.findall(expression)
    metrics: set[str] = set()
    grouped: set[str] = set()
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        position += 1
        if token in GROUPING:
            end = tokens.index(")", position)
            grouped |= {t for t in tokens[position + 1 : end] if t != ","}
            position = end + 1
        elif not re.fullmatch(r"[a-zA-Z_:][\w:]*", token) or token in WORDS:
            continue
        elif following == "(" or following in GROUPING:
            assert token in FUNCTIONS, f"no function: {token} in {expression}"
        else:
            end = tokens.index("}", position) if following == "{" else position
            used = {
                name
                for name, sign in zip(tokens[position:end], tokens[position + 1 : end + 1], strict=True)
                if sign in ("=", "=~", "!=", "!~")
            }
            position = end
            if token in ("up", "instance"):  # of Prometheus itself; the second in label_values()
                continue
            assert token.startswith(PREFIX), f"no metric of ours: {token} in {expression}"
            name = token.removeprefix(PREFIX)
            assert name in LABELS, f"not declared: {name} in {expression}"
            assert used <= LABELS[name] | OF_THE_SCRAPE, f"no label of {name}: {used} in {expression}"
            metrics.add(name)
    known = OF_THE_SCRAPE.union(*(LABELS[name] for name in metrics)) if metrics else OF_THE_SCRAPE
    assert grouped <= known, f"no labels of {metrics}: {grouped - known} in {expression}"
    return metrics


def labels_of(metrics: set[str]) -> set[str]:
    """What a sample of these metrics can carry."""
    return OF_THE_SCRAPE.union(*(LABELS[name] for name in metrics))


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "nodeagent-dashboard.json").read_text())
    return found


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    """(title of the panel, query) of the whole dashboard."""
    for panel in board()["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target


def rules(name: str = "nodeagent-alerts.yaml") -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / name).read_text())
    groups = document["groups"] if "groups" in document else document["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


class TestChecker:
    @pytest.mark.parametrize(
        "wrong",
        [
            "sum(nodeagent_chip)",
            "node_load1 > 3",
            'nodeagent_faults{code="x"}',
            "sum by (code) (nodeagent_faults)",
            "fun(nodeagent_chips)",
            "rate(nodeagent_publish_latency_seconds[5m])",
        ],
    )
    def test_it_finds_what_is_wrong(self, wrong: str) -> None:
        with pytest.raises(AssertionError):
            check(wrong)

    def test_it_knows_what_is_right(self) -> None:
        right = (
            'sum by (le, object) (rate(nodeagent_publish_latency_seconds_bucket{instance=~"$x"}[$__rate_interval])) > 1'
        )
        assert check(right) == {"publish_latency_seconds_bucket"}


class TestDashboard:
    def test_every_metric_and_label_exists(self) -> None:
        seen = 0
        for title, target in targets():
            metrics = check(target["expr"])
            assert metrics, title
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels_of(metrics), title
            seen += 1
        assert seen > 25

    def test_every_query_asks_for_the_chosen_nodes(self) -> None:
        for title, target in targets():
            assert target["expr"].count('instance=~"$instance"') == target["expr"].count("nodeagent_"), title

    def test_panels_lie_beside_each_other_in_rows(self) -> None:
        taken: set[tuple[int, int]] = set()
        panels = board()["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        for panel in panels:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert place["x"] + place["w"] <= 24
            assert not cells & taken, panel["title"]
            taken |= cells
        rows = [panel["title"] for panel in panels if panel["type"] == "row"]
        assert rows == ["Overview", "Switches", "Node faults", "Pipeline", "Driver", "Configuration", "Daemon"]

    def test_it_chooses_among_the_nodes_there_are(self) -> None:
        (query,) = [v["definition"] for v in board()["templating"]["list"] if v["name"] == "instance"]
        assert check(query) == {"build_info"}


class TestAlerts:
    @pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
    def test_every_metric_and_label_exists(self, rule: dict[str, Any]) -> None:
        metrics = check(rule["expr"])
        texts = rule["annotations"]
        assert set(texts) == {"summary", "description", "next_step"}
        used = {label for text in texts.values() for label in re.findall(r"\$labels\.(\w+)", text)}
        assert used <= labels_of(metrics)
        assert rule["labels"]["severity"] in ("critical", "warning", "info")

    def test_the_page_lists_every_alert(self) -> None:
        listed = re.findall(r"^\| `(Nodeagent\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        assert listed == [rule["alert"] for rule in rules()]

    def test_the_operators_object_has_the_same_rules(self) -> None:
        document = yaml.safe_load((FOLDER / "nodeagent-prometheusrule.yaml").read_text())
        assert (document["apiVersion"], document["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
        assert rules("nodeagent-prometheusrule.yaml") == rules()

    def test_prometheus_takes_them(self) -> None:
        done = ask_promtool("check", "rules", FOLDER / "nodeagent-alerts.yaml")
        assert f"SUCCESS: {len(rules())} rules found" in done.stdout

    def test_they_fire_when_they_should(self) -> None:
        ask_promtool("test", "rules", Path(__file__).parent / "data" / "alerts_test.yaml")


class TestPage:
    def test_what_is_generated_is_up_to_date(self) -> None:
        tool = ROOT / "tools" / "monitoring" / "generate.py"
        done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    def test_every_metric_has_its_line(self) -> None:
        listed = re.findall(rf"^\| `{PREFIX}(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        assert listed == sorted(DECLARED)

    def test_the_scrape_configuration_is_one(self, tmp_path: Path) -> None:
        (text,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        discovery = "    kubernetes_sd_configs:\n      - role: node\n"
        assert discovery in text
        # Debian builds promtool without the discovery of Kubernetes.
        static = text.replace(discovery, "    static_configs:\n      - targets: [worker-1:10250]\n")
        (tmp_path / "prometheus.yml").write_text(static)
        ask_promtool("check", "config", "--syntax-only", tmp_path / "prometheus.yml")


def ask_promtool(*words: object) -> subprocess.CompletedProcess[str]:
    """Run it; AssertionError with its words when it is not content."""
    done = subprocess.run([promtool(), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
