"""The messages that floodline writes itself, each in the shape of its provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from floodline.history._formats.shapes import (
    ANTHROPIC,
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    GEMINI,
    RESPONSES,
    Message,
    gemini_part,
)

NEVER_ANSWERED = "[no result: the conversation went on before this call was answered]"
STILL_RUNNING = "[no result yet: this call is still running]"
INTERRUPTED = "floodline_interrupted"  # a key of a stored message; no API ever sees it
SUMMARY_HEADING = "[Summary of earlier messages that were cut]"


def unmarked(message: Message) -> Message:
    """Return a stored message as it may be sent."""
    if INTERRUPTED not in message:
        return message
    return {key: value for key, value in message.items() if key != INTERRUPTED}


def results_for(
    family: str | None, asked: Iterable[Message], open_calls: Sequence[str], text: str
) -> list[Message]:
    """Answer the `open_calls` of the messages `asked` with `text`."""
    if not open_calls:
        return []
    if family == ANTHROPIC:
        blocks = [
            {"type": "tool_result", "tool_use_id": key, "content": text, "is_error": True}
            for key in open_calls
        ]
        return [{"role": "user", "content": blocks}]
    if family == GEMINI:
        return [{"role": "user", "parts": _gemini_responses(asked, list(open_calls), text)}]
    if family == RESPONSES:
        items = list(asked)
        types = {item.get("call_id"): str(item.get("type")) for item in items}
        requests = {item.get("id") for item in items if item.get("type") == APPROVAL_REQUEST}
        return [
            _denial(key, text) if key in requests else _output(types.get(key), key, text)
            for key in open_calls
        ]
    return [{"role": "tool", "tool_call_id": key, "content": text} for key in open_calls]


def _output(called: str | None, key: str, text: str) -> Message:
    answer: Message = {"type": f"{called or 'function_call'}_output", "call_id": key}
    if called == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        return {**answer, "output": [{"stdout": "", "stderr": text, "outcome": outcome}]}
    if called == "apply_patch_call":
        answer["status"] = "failed"
    return {**answer, "output": text}


def _denial(key: str, why: str) -> Message:
    """Deny an unanswered approval request; the API accepts nothing more without an answer."""
    answer = {"type": APPROVAL_RESPONSE, "approval_request_id": key}
    return {**answer, "approve": False, "reason": why}


def _gemini_responses(asked: Iterable[Message], names: list[str], text: str) -> list[Message]:
    parts: list[Message] = []
    for part in [part for message in asked for part in message.get("parts", ())]:
        call = gemini_part(part, "functionCall")
        if call is None or call["name"] not in names:
            continue
        names.remove(call["name"])
        answer = {"name": call["name"], "response": {"error": text}}
        if call.get("id"):
            answer["id"] = call["id"]
        spelling = "functionResponse" if "functionCall" in part else "function_response"
        parts.append({spelling: answer})
    return parts


def summary_message(family: str | None, text: str) -> Message:
    """Write a summary as a user message: what others said must not gain system rank."""
    text = f"{SUMMARY_HEADING}\n{text}"
    if family == GEMINI:
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": text}


def pick(message: Message, family: str | None, wanted: Sequence[bool], *, rest: bool) -> Message:
    """Copy a message with the `wanted` ones of its results, and the `rest` if asked.

    A message whose results cannot be split (one result, one message) comes back without content.
    """
    name = {ANTHROPIC: "content", GEMINI: "parts"}.get(family or "")
    if name is None:
        return {}
    choices = iter(wanted)
    kept = [part for part in message[name] if (next(choices) if _is_result(part, family) else rest)]
    return {**message, name: kept} if kept else {}


def _is_result(part: Message, family: str | None) -> bool:
    if family == GEMINI:
        return gemini_part(part, "functionResponse") is not None
    return part.get("type") == "tool_result"


def alternate(messages: list[Message], family: str | None) -> list[Message]:
    """Join neighbours of one role into one message, where the provider wants roles to alternate.

    Gemini's responses to calls are joined with each other, but not with text; Anthropic's come
    before the text, wherever they were.
    """
    name = {ANTHROPIC: "content", GEMINI: "parts"}.get(family or "")
    if name is None:
        return messages
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is not None and _joinable(last, message, name):
            joined[-1] = {**last, name: _blocks(last[name]) + _blocks(message[name])}
        else:
            joined.append(message)
    return [_results_first(message) for message in joined] if family == ANTHROPIC else joined


def _results_first(message: Message) -> Message:
    blocks = message.get("content")
    if not isinstance(blocks, list):
        return message
    behind = [not (isinstance(block, dict) and _is_result(block, ANTHROPIC)) for block in blocks]
    if behind == sorted(behind):
        return message
    ordered = sorted(zip(behind, blocks, strict=True), key=itemgetter(0))
    return {**message, "content": [block for _, block in ordered]}


def _joinable(last: Message, message: Message, name: str) -> bool:
    if last.get("role", "user") != message.get("role", "user"):
        return False
    if not last.get(name) or not message.get(name):
        return False
    if name == "content":
        return True
    sides = [any(_is_result(part, GEMINI) for part in side[name]) for side in (last, message)]
    return sides[0] == sides[1]


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
