"""How many tokens a message costs: a cautious estimate, or an exact counter where there is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from floodline.errors import ConfigError
from floodline.history._formats.shapes import Message

CountTokens = Callable[[Message], int]

SAFETY = 1.1
MEDIA_TOKENS = 1500  # what the providers charge for a large image; never its base64 text
_MEDIA_KEYS: tuple[str, ...] = (
    "source",
    "image_url",
    "input_audio",
    "file",
    "file_data",
    "inlineData",
)
_MEDIA_KEYS += ("inline_data",)
_PART_KEYS = ("content", "parts", "output")
_to_json = msgspec.json.Encoder().encode


def estimate(message: Message) -> int:
    """Estimate the tokens of one message of any provider, a tenth on the safe side.

    Four ASCII characters count as one token, and each further byte of other scripts as half of one;
    an image or a file costs 1,500 whatever its size. `observe_usage` corrects the rest.
    """
    written = _to_json(message)
    size, characters = len(written), len(written.decode())
    media = 0
    for name in _PART_KEYS:
        if type(parts := message.get(name)) is list:
            media, heavy = _media(parts)
            characters -= heavy
            size -= heavy
    return int((characters / 4 + (size - characters) / 2) * SAFETY) + media * MEDIA_TOKENS + 1


def _media(parts: list[Any]) -> tuple[int, int]:
    """Return the number of images and files, and of the characters of their data."""
    count = heavy = 0
    for part in parts:
        if not isinstance(part, dict):
            continue
        if type(inner := part.get("content")) is list:  # a result with an image in it
            more, size = _media(inner)
            count, heavy = count + more, heavy + size
        key = next((key for key in _MEDIA_KEYS if key in part), None)
        if key and not (isinstance(part[key], dict) and part[key].get("type") == "text"):
            count, heavy = count + 1, heavy + len(_to_json(part[key]))
    return count, heavy


def tiktoken_counter(encoding: str = "o200k_base") -> CountTokens:
    """Return an exact counter for OpenAI's models; needs `floodline[tokens]`.

    It works offline if the encoding's file is in tiktoken's cache (`TIKTOKEN_CACHE_DIR`), and
    raises `ConfigError` if it cannot be loaded.
    """
    try:
        tiktoken: Any = import_module("tiktoken")
    except ImportError as error:
        raise ConfigError(
            f"tiktoken_counter({encoding!r}) needs tiktoken, which is not installed; "
            "install floodline[tokens], or leave count_tokens=estimate"
        ) from error
    try:
        encode: Callable[[str], list[int]] = tiktoken.get_encoding(encoding).encode_ordinary
    except Exception as error:  # unknown name, no network, damaged cache: no common error
        raise ConfigError(
            f"tiktoken has no encoding {encoding!r} here ({type(error).__name__}: {error}); put "
            "its file into TIKTOKEN_CACHE_DIR, or leave count_tokens=estimate"
        ) from error

    def count(message: Message) -> int:
        return 4 + sum(len(encode(text)) for text in _texts(message))

    return count


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [json.dumps(value)] if isinstance(value, (int, float)) else []


def count_with(counter: CountTokens, message: Message) -> int:
    """Call the user's counter, and raise if it does not return a number of tokens."""
    tokens = counter(message)
    if type(tokens) is not int or tokens < 0:
        raise ConfigError(
            f"count_tokens returned {tokens!r}; it must return a whole number of at least 0"
        )
    return tokens
