"""Settings from file, environment and flags: every field, every way to get one wrong, and the generated page."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from nodeagent.core.errors import NodeNameError, SettingsError
from nodeagent.core.settings import Settings
from nodeagent.core.settings_docs import configuration_page
from nodeagent.core.settings_load import Field, all_fields, check_node_name, load_settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
FIELDS = {f.path: f for f in all_fields()}


def load(text: str | None = None, environ: dict[str, str] | None = None, *overrides: str) -> Settings:
    return load_settings(text, "config.yaml", environ or {}, overrides)


def value(settings: Settings, path: str) -> object:
    area, _, key = path.partition(".")
    return getattr(getattr(settings, area), key)


def another_value(field: Field) -> tuple[str, object]:
    """A value other than the default, as text and as it should arrive."""
    if field.kind is bool:
        return str(not field.default).lower(), not field.default
    if field.kind in (int, float):
        number = field.facts["low"] if field.facts["low"] != field.default else field.facts["high"]
        return f"{number:g}", field.kind(number)
    choices = [c for c in field.facts["choices"] if c != field.default]
    return (choices[0], choices[0]) if choices else ("somewhere", "somewhere")


def complaint(text: str | None = None, environ: dict[str, str] | None = None, *overrides: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(text, environ, *overrides)
    return caught.value


class TestDeclarations:
    @pytest.mark.parametrize("field", FIELDS.values(), ids=list(FIELDS))
    def test_a_field_is_described_and_its_default_is_allowed(self, field: Field) -> None:
        assert field.facts["doc"].endswith(".")
        assert field.kind in (str, bool, int, float)
        if field.kind in (int, float):
            assert field.facts["low"] <= field.default <= field.facts["high"]
        if field.facts["choices"]:
            assert field.default in field.facts["choices"]

    def test_every_variable_sets_one_field(self) -> None:
        names = [f.env for f in FIELDS.values()]
        assert len(set(names)) == len(names)
        assert FIELDS["node.name"].env == "NODE_NAME"
        assert FIELDS["chips.health_period_s"].env == "NODEAGENT_CHIPS_HEALTH_PERIOD_S"

    def test_nothing_said_gives_the_defaults(self) -> None:
        assert load() == Settings()
        assert all(is_dataclass(getattr(Settings(), area.name)) for area in fields(Settings))


class TestSources:
    @pytest.mark.parametrize("path", FIELDS)
    @pytest.mark.parametrize("source", ["file", "environment", "flag"])
    def test_every_field_can_be_set_from_every_source_and_changes_nothing_else(self, path: str, source: str) -> None:
        field = FIELDS[path]
        text, expected = another_value(field)
        area, _, key = path.partition(".")
        if source == "file":
            settings = load(f"{area}:\n  {key}: {text}\n")
        elif source == "environment":
            settings = load(None, {field.env: text})
        else:
            settings = load(None, None, f"{path}={text}")
        changed = {p for p in FIELDS if value(settings, p) != value(Settings(), p)}
        assert changed == {path}
        assert value(settings, path) == expected

    def test_flag_over_environment_over_file(self) -> None:
        text, environ = "node:\n  name: from-file\n", {"NODE_NAME": "from-environment"}
        assert load(text).node.name == "from-file"
        assert load(text, environ).node.name == "from-environment"
        assert load(text, environ, "node.name=from-flag").node.name == "from-flag"

    def test_the_last_flag_wins(self) -> None:
        assert load(None, None, "node.name=a", "node.name=b").node.name == "b"

    def test_a_flag_may_contain_equals_signs_and_blanks_around(self) -> None:
        assert load(None, None, " driver.library = /opt/a=b ").driver.library == "/opt/a=b"

    @pytest.mark.parametrize("text", ["", "# only a comment\n", "chips:\n", "chips: ~\n", "chips: {}\n", "---\n"])
    def test_a_file_that_says_nothing_is_fine(self, text: str) -> None:
        assert load(text) == Settings()


class TestBooleans:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [(t, True) for t in ("true", "True", "TRUE", "yes", "on", "1")]
        + [(t, False) for t in ("false", "False", "no", "off", "0", "OFF")],
    )
    def test_spellings(self, text: str, expected: bool) -> None:
        assert load(f"driver: {{trust_library: {text}}}").driver.trust_library is expected
        assert load(None, {"NODEAGENT_DRIVER_TRUST_LIBRARY": text}).driver.trust_library is expected

    @pytest.mark.parametrize("text", ["", "2", "maybe", "y", "nein"])
    def test_anything_else_is_no_boolean(self, text: str) -> None:
        error = complaint(f"driver:\n  trust_library: '{text}'\n")
        assert error.sentence == f"config.yaml:2: driver.trust_library must be true or false, not {text!r}"


class TestMistakes:
    def test_an_unknown_key_is_named_with_its_line_and_the_nearest_one(self) -> None:
        error = complaint("node:\n  name: a\nchips:\n  health_periods_s: 3\n")
        assert error.sentence == "config.yaml:4: there is no setting 'chips.health_periods_s'"
        assert error.hint == "did you mean chips.health_period_s?"

    def test_a_key_that_resembles_nothing_points_at_the_list(self) -> None:
        assert "nodeagent config docs" in complaint("node:\n  zzzzzzzzzzzz: 3\n").hint

    @pytest.mark.parametrize("body", ["\n  key: 1\n", "\n", ": {}\n"])
    def test_an_unknown_area_is_named_with_its_line(self, body: str) -> None:
        text = f"node: {{name: a}}\nchip{body}" if body.startswith(":") else f"node: {{name: a}}\nchip:{body}"
        error = complaint(text)
        assert error.sentence.startswith(("config.yaml:2: ", "config.yaml:3: "))
        assert "chip" in error.sentence

    @pytest.mark.parametrize(
        ("path", "text"),
        [(p, t) for p, f in FIELDS.items() if f.kind is float for t in ("soon", "", "5s", "0x10")],
    )
    def test_a_number_is_wanted_where_there_is_one(self, path: str, text: str) -> None:
        area, _, key = path.partition(".")
        error = complaint(f"{area}:\n  {key}: '{text}'\n")
        assert error.sentence == f"config.yaml:2: {path} must be a number, not {text!r}"

    @pytest.mark.parametrize("text", ["soon", "", "80.5", "0x10", "inf"])
    def test_a_port_is_a_whole_number(self, text: str) -> None:
        error = complaint(f"http:\n  port: '{text}'\n")
        assert error.sentence == f"config.yaml:2: http.port must be a whole number, not {text!r}"

    @pytest.mark.parametrize("text", ["-1", "65536"])
    def test_a_port_beyond_its_bounds(self, text: str) -> None:
        assert "http.port must be 0..65535, not" in complaint(None, None, f"http.port={text}").sentence

    @pytest.mark.parametrize("path", [p for p, f in FIELDS.items() if f.kind is float])
    def test_bounds_belong_to_the_range_and_nothing_beyond_them(self, path: str) -> None:
        low, high, unit = (FIELDS[path].facts[k] for k in ("low", "high", "unit"))
        for bound in (low, high):
            assert value(load(None, None, f"{path}={bound}"), path) == bound
        outside = [number for number in (low * 0.99, high * 1.01, -1, 0) if not low <= number <= high]
        for beyond in (*outside, "nan", "inf", "-inf"):
            error = complaint(None, None, f"{path}={beyond}")
            assert f"{path} must be {low:g}..{high:g} {unit}".rstrip() + ", not" in error.sentence

    @pytest.mark.parametrize("path", [p for p, f in FIELDS.items() if f.facts["choices"]])
    def test_a_choice_lists_what_is_allowed(self, path: str) -> None:
        error = complaint(None, None, f"{path}=sideways")
        assert f"{path} must be one of {', '.join(FIELDS[path].facts['choices'])}, not 'sideways'" in error.sentence

    @pytest.mark.parametrize("nothing", ["", "null", "~"])
    def test_a_key_without_a_value_leaves_the_default(self, nothing: str) -> None:
        assert load(f"driver:\n  library: {nothing}\n").driver.library == ""

    def test_a_key_that_is_there_twice(self) -> None:
        error = complaint("chips:\n  health_period_s: 1\n  poll_period_s: 1\n  health_period_s: 2\n")
        assert error.sentence == "config.yaml:4: chips.health_period_s is set twice"

    def test_an_area_that_is_there_twice(self) -> None:
        error = complaint("chips:\n  health_period_s: 1\nlog:\n  level: debug\nchips:\n  poll_period_s: 1\n")
        assert error.sentence == "config.yaml:5: area 'chips' is there twice"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("chips:\n  health_period_s: [1, 2]\n", "config.yaml:2: chips.health_period_s must be a single value"),
            ("chips: fast\n", "config.yaml:1: area 'chips' must be a mapping"),
            ("- chips\n", "config.yaml:1: the settings must be a mapping"),
            ("just words\n", "config.yaml:1: the settings must be a mapping"),
            ("chips:\n  a: 'unfinished\n", "not YAML"),
            ("chips:\n\thealth_period_s: 1\n", "config.yaml:2: not YAML"),
            ("a: *nowhere\n", "config.yaml:1: not YAML"),
            ("a: 1\n---\nb: 2\n", "not YAML"),
            ("a: {b: \x01}\n", "not YAML"),
        ],
    )
    def test_a_file_of_another_shape_is_one_sentence_with_its_line(self, text: str, words: str) -> None:
        sentence = complaint(text).sentence
        assert words in sentence
        assert sentence.startswith("config.yaml")
        assert "\n" not in sentence

    def test_a_flag_without_a_value(self) -> None:
        assert complaint(None, None, "chips.health_period_s").sentence == (
            "--set chips.health_period_s: expected area.key=value"
        )

    def test_an_unknown_flag_has_a_suggestion(self) -> None:
        error = complaint(None, None, "publish.targets=stdout")
        assert error.sentence == "--set publish.targets=stdout: there is no setting 'publish.targets'"
        assert error.hint == "did you mean publish.target?"

    def test_a_bad_value_names_its_variable(self) -> None:
        error = complaint(None, {"NODEAGENT_LOG_LEVEL": "loud"})
        assert error.sentence.startswith("environment variable NODEAGENT_LOG_LEVEL: log.level must be one of")

    def test_a_variable_that_sets_nothing_is_a_typing_error(self) -> None:
        error = complaint(None, {"NODEAGENT_LOG_LEVELS": "debug"})
        assert error.sentence == "environment variable NODEAGENT_LOG_LEVELS is no setting"
        assert error.hint == "did you mean NODEAGENT_LOG_LEVEL?"

    @pytest.mark.parametrize(
        "name",
        [
            "NODEAGENT_SERVICE_HOST",
            "NODEAGENT_SERVICE_PORT",
            "NODEAGENT_SERVICE_PORT_HTTP_METRICS",
            "NODEAGENT_PORT",
            "NODEAGENT_PORT_9100_TCP",
            "NODEAGENT_PORT_9100_TCP_ADDR",
            "NODEAGENT_METRICS_SERVICE_HOST",
            "NODEAGENT_METRICS_PORT_53_UDP_PROTO",
        ],
    )
    def test_what_kubernetes_sets_for_a_service_named_like_us_is_no_typing_error(self, name: str) -> None:
        assert load(None, {name: "tcp://10.96.0.17:9100"}) == Settings()

    @pytest.mark.parametrize("name", ["PATH", "NODEAGENT_CONFIG", "NODEAGENTLOG", "nodeagent_log_level"])
    def test_other_variables_are_not_ours(self, name: str) -> None:
        assert load(None, {name: "x"}) == Settings()


class TestNodeName:
    @pytest.mark.parametrize("name", ["a", "0", "worker-1", "node.example.com", "a" * 230, "a--b", "1.2.3.4"])
    def test_names_that_a_node_can_have(self, name: str) -> None:
        assert check_node_name(name) == name

    @pytest.mark.parametrize(
        "name",
        ["Worker-1", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a_b", "a b", "a/b", "节点", "a\n", "../etc", "é"],
    )
    def test_names_that_no_node_has(self, name: str) -> None:
        with pytest.raises(NodeNameError) as caught:
            check_node_name(name)
        assert caught.value.sentence == (
            f"{name!r} cannot be the name of a node: lower-case letters, digits, '-' and '.'"
        )

    def test_231_characters_are_too_many_for_the_name_of_the_object(self) -> None:
        with pytest.raises(NodeNameError, match="has 231 characters, at most 230 are allowed"):
            check_node_name("a" * 231)
        assert len("mindx-dl-deviceinfo-" + "a" * 230) <= 253

    def test_a_missing_name_says_how_to_set_it(self) -> None:
        with pytest.raises(NodeNameError, match=r"the node name is not set \(set NODE_NAME from spec\.nodeName"):
            check_node_name("")


class TestPage:
    def test_every_setting_has_its_line_with_default_range_and_variable(self) -> None:
        page = configuration_page()
        for path, field in FIELDS.items():
            (line,) = [row for row in page.splitlines() if f"| `{field.env}` |" in row]
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert cells[0] == f"`{path.partition('.')[2]}`"
            assert cells[4] == field.facts["doc"]
            if field.kind is float:
                assert cells[1].startswith(f"{field.default:g}")
                assert cells[2].startswith(f"{field.facts['low']:g}..{field.facts['high']:g}")
            assert all(f"`{choice}`" in cells[2] for choice in field.facts["choices"])

    def test_the_page_in_docs_is_the_generated_one(self) -> None:
        if not PAGE.exists():
            pytest.skip("docs/configuration.md is not there yet")
        assert PAGE.read_text(encoding="utf-8") == configuration_page(), "run: make docs"
