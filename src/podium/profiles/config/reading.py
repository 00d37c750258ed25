"""Text to a configuration document: YAML or JSON, its kind, fields and arguments.

Defaults and checks follow later; here only what cannot be decoded is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from podium.errors import ConfigError
from podium.objects.names import quoted
from podium.profiles.config import json_parser, yaml_parser
from podium.profiles.config.decoding import Decoded, DecodingError, decode
from podium.profiles.config.document import (
    API_VERSION,
    GROUP,
    KIND,
    VERSION,
    ConfigurationDocument,
    PluginConfig,
    ProfileDocument,
    schemas,
)
from podium.profiles.config.json_values import Fields, JsonValue, compact, from_python, json_type

if TYPE_CHECKING:
    from podium.engine.framework.generation import Generation

_SCHEME: Final = "pkg/scheduler/apis/config/scheme/scheme.go:29"
_HEAD: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
_BEGINS: Final = f"it begins with apiVersion: {API_VERSION} and kind: {KIND}"


class _Kind(NamedTuple):
    """Group, version and kind of an object."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group_version}, Kind={self.kind}"

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class _StrictError(ValueError):
    """An object was decoded, with strict errors."""

    def __init__(self, texts: list[str], hint: str = "") -> None:
        self.texts = texts
        self.hint = hint
        super().__init__(f"strict decoding error: {', '.join(texts)}")


def read_config(text: str, generation: Generation) -> ConfigurationDocument:
    """The document that *text* holds."""
    try:
        tree, repeated = _parsed(text)
        return _document(tree, text, repeated, generation)
    except _StrictError as error:
        raise ConfigError(str(error), hint=error.hint) from None
    except (DecodingError, yaml_parser.YamlError) as error:
        raise ConfigError(str(error)) from None


def read_mapping(value: Mapping[str, Any], generation: Generation) -> ConfigurationDocument:
    """The document in a value that was decoded from JSON or YAML."""
    tree = from_python(dict(value))
    try:
        return _document(tree, compact(tree), [], generation)
    except _StrictError as error:
        raise ConfigError(str(error), hint=error.hint) from None
    except DecodingError as error:
        raise ConfigError(str(error)) from None


def _parsed(text: str) -> tuple[JsonValue, list[str]]:
    """The text as JSON, and the error about keys that are set twice."""
    if json_parser.looks_like_json(text):
        try:
            return json_parser.parse(text), []
        except json_parser.JsonSyntaxError as error:
            raise DecodingError(f"couldn't get version/kind; json parse error: {error}") from None
    tree, repeated = yaml_parser.parse(text)
    lines = "\n  ".join(map(str, repeated))
    return tree, [f"yaml: unmarshal errors:\n  {lines}"] if repeated else []


def _document(
    tree: JsonValue, text: str, strict: list[str], generation: Generation
) -> ConfigurationDocument:
    found = _kind(tree)
    if not found.kind:
        raise ConfigError(f"Object 'Kind' is missing in '{text}'", hint=_BEGINS)
    if not found.version:
        raise ConfigError(f"Object 'apiVersion' is missing in '{text}'", hint=_BEGINS)
    decoded = _decoded(tree, found, generation)
    strict = [*strict, *decoded.strict]
    if found.kind != KIND:
        if strict:
            raise _StrictError(strict, decoded.hint)
        raise ConfigError(f"couldn't decode as {KIND}, got {found}: ", hint=_BEGINS)
    document: ConfigurationDocument = decoded.value
    hints = [decoded.hint]
    profiles = [
        _with_arguments(profile, index, strict, hints, generation)
        for index, profile in enumerate(document.profiles)
    ]
    if strict:
        raise _StrictError(strict, next(filter(None, hints), ""))
    return replace(document, profiles=tuple(profiles))


def _kind(tree: JsonValue, default: _Kind | None = None) -> _Kind:
    """The kind of an object; what it does not say is taken from the expected kind."""
    if tree is not None and not isinstance(tree, Fields):
        what = f"json: cannot unmarshal {json_type(tree)} into Go value of type {_HEAD}"
        raise DecodingError(f"couldn't get version/kind; json parse error: {what}")
    group, version = _group_version(_text(tree, "apiVersion"))
    kind = _text(tree, "kind")
    if default is not None:
        kind = kind or default.kind
        if not version and group in ("", default.group):
            group, version = default.group, default.version
    return _Kind(group, version, kind)


def _text(tree: Fields | None, name: str) -> str:
    """A field that must be text; the case of its name does not matter."""
    values = [value for key, value in tree or () if key.lower() == name.lower()]
    for value in values:
        if value is not None and json_type(value) != "string":
            what = f"json: cannot unmarshal {json_type(value)} into Go struct field .{name}"
            raise DecodingError(
                f"couldn't get version/kind; json parse error: {what} of type string"
            )
    return next((value for value in reversed(values) if value is not None), "")


def _group_version(text: str) -> tuple[str, str]:
    if text.count("/") > 1:
        raise DecodingError(f"unexpected GroupVersion string: {text}")
    group, _, version = text.rpartition("/")
    return group, version


def _decoded(tree: JsonValue, found: _Kind, generation: Generation) -> Decoded:
    known = schemas(generation)
    if (found.group, found.version) != (GROUP, VERSION) or found.kind not in known:
        raise ConfigError(
            f"no kind {quoted(found.kind)} is registered for version "
            f"{quoted(found.group_version)} in scheme {quoted(_SCHEME)}",
            hint=_BEGINS,
        )
    return decode(tree, known[found.kind])


def _with_arguments(
    profile: ProfileDocument,
    index: int,
    errors: list[str],
    hints: list[str],
    generation: Generation,
) -> ProfileDocument:
    configs = []
    for place, config in enumerate(profile.plugin_config):
        prefix = f"decoding .profiles[{index}].pluginConfig[{place}]: "
        try:
            config, strict = _arguments(config, generation)  # noqa: PLW2901  the same one, with its arguments
        except (DecodingError, ConfigError) as error:
            text = error.text if isinstance(error, ConfigError) else str(error)
            hint = error.hint if isinstance(error, ConfigError) else ""
            raise ConfigError(f"{prefix}{text}", hint=hint) from None
        if strict is not None:
            errors.append(f"{prefix}{strict}")
            hints.append(strict.hint)
        configs.append(config)
    return replace(profile, plugin_config=tuple(configs))


def _arguments(
    config: PluginConfig, generation: Generation
) -> tuple[PluginConfig, _StrictError | None]:
    """Decode the arguments; those of plugins that declare none stay as they are."""
    plugin = generation.plugin.get(config.name)
    if plugin is None or plugin.arguments is None:
        return config, None
    wanted = plugin.arguments.kind
    prefix = f"decoding args for plugin {config.name}: "
    try:
        found = _kind(config.raw, _Kind(GROUP, VERSION, wanted))
        decoded = _decoded(config.raw, found, generation)
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error.text}", hint=error.hint) from None
    except DecodingError as error:
        raise DecodingError(f"{prefix}{error}") from None
    if found.kind != wanted:
        raise DecodingError(
            f"args for plugin {config.name} were not of type {wanted}.{GROUP}, "
            f"got {found.kind}.{found.group}"
        )
    read = replace(config, args=decoded.value)
    if not decoded.strict:
        return read, None
    inner = _StrictError(decoded.strict)
    return read, _StrictError([f"{prefix}{inner}"], decoded.hint)
