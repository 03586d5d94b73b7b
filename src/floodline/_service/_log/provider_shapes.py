"""The window of a conversation in the shape of another provider's API.

Items have the shape of the Responses API. Messages, function calls and their results can be said in
every shape; what only OpenAI runs or understands (searches, reasoning) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from floodline.errors import MalformedMessage
from floodline.history import Conversation

Message = dict[str, Any]

OPENAI, RESPONSES, ANTHROPIC, GEMINI = "openai", "responses", "anthropic", "gemini"
_TEXTS = ("input_text", "output_text", "text", "summary_text")


def translated(chat: Conversation, provider: str) -> Conversation:
    """Return a conversation of the same messages that the provider understands."""
    made = Conversation(max_messages=max(1, 4 * len(chat)), max_bytes=None, max_message_bytes=None)
    for message in _SHAPES[provider](chat):
        try:
            made.append(message)
        except MalformedMessage:
            continue  # a message that cannot be said in this shape
    return made


def _openai(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        kind = message.get("type")
        if kind == "message":
            if text := _text(message):
                yield {"role": message["role"], "content": text}
        elif kind == "function_call":
            called = {"name": message["name"], "arguments": message["arguments"]}
            call = {"id": message["call_id"], "type": "function", "function": called}
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
        elif kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": message["call_id"], "content": _output(message)}
        elif kind is None:
            yield message


def _anthropic(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        kind = message.get("type")
        if kind == "message":
            if text := _text(message):
                yield {"role": message["role"], "content": [{"type": "text", "text": text}]}
        elif kind == "function_call":
            used = {"id": message["call_id"], "name": message["name"], "input": _arguments(message)}
            yield {"role": "assistant", "content": [{"type": "tool_use", **used}]}
        elif kind == "function_call_output":
            done = {"tool_use_id": message["call_id"], "content": _output(message)}
            yield {"role": "user", "content": [{"type": "tool_result", **done}]}
        elif kind is None:
            yield message


def _gemini(messages: Iterable[Message]) -> Iterator[Message]:
    names: dict[str, str] = {}
    for message in messages:
        kind = message.get("type")
        if kind == "message":
            if text := _text(message):
                role = {"assistant": "model"}.get(message["role"], message["role"])
                yield {"role": role, "parts": [{"text": text}]}
        elif kind == "function_call":
            names[message["call_id"]] = message["name"]
            call = {"name": message["name"], "args": _arguments(message)}
            yield {"role": "model", "parts": [{"functionCall": call}]}
        elif kind == "function_call_output":
            name = names.get(message["call_id"], "unknown")
            answer = {"name": name, "response": {"output": _output(message)}}
            yield {"role": "user", "parts": [{"functionResponse": answer}]}
        elif kind is None:
            yield message


_SHAPES = {OPENAI: _openai, ANTHROPIC: _anthropic, GEMINI: _gemini}


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in content or () if isinstance(part, dict)]
    return "\n".join(part["text"] for part in parts if part.get("type") in _TEXTS)


def _output(message: Message) -> str:
    output = message.get("output")
    return output if isinstance(output, str) else _text({"content": output})


def _arguments(message: Message) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(message["arguments"])
    except msgspec.DecodeError:  # the model wrote something else
        read = None
    return read if isinstance(read, dict) else {"arguments": message["arguments"]}
