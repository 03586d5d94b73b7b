"""What the providers' messages mean: who speaks, which calls are made, which results are given.

The one place that knows OpenAI chat, OpenAI responses, Anthropic and Gemini. A message that two of
them could have written has no family; one that mixes them, or an item of unknown type, is opaque.
One without role and type, or with a role unknown to its provider, is refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from floodline.errors import ConfigError, MalformedMessage

Message = dict[str, Any]

OPENAI, RESPONSES, ANTHROPIC, GEMINI = "openai", "responses", "anthropic", "gemini"
PROVIDERS = (OPENAI, RESPONSES, ANTHROPIC, GEMINI)
_ALIASES = {
    "openai_chat": OPENAI,
    "chat": OPENAI,
    "openai_responses": RESPONSES,
    "claude": ANTHROPIC,
    "google": GEMINI,
}


class Kind(StrEnum):
    """The role of a message in the rules of trimming."""

    system = "system"
    user = "user"
    model = "model"
    result = "result"
    reasoning = "reasoning"
    opaque = "opaque"


class Reading(NamedTuple):
    """One message, understood. `calls` and `results` hold the keys that pair them."""

    family: str | None
    kind: Kind
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


_ROLES = {
    "system": Kind.system,
    "developer": Kind.system,
    "user": Kind.user,
    "assistant": Kind.model,
}
# The roles that each API accepts; for the last two, system messages go outside the list.
ROLES = {
    OPENAI: ("system", "developer", "user", "assistant", "tool", "function"),
    RESPONSES: ("system", "developer", "user", "assistant"),
    ANTHROPIC: ("system", "user", "assistant"),
    GEMINI: ("system", "user", "model", "function", "tool"),
}
_PLAIN = {role: Reading(None, kind) for role, kind in _ROLES.items()}  # most messages are text
_OPAQUE = Reading(None, Kind.opaque)
_FUNCTION = Reading(OPENAI, Kind.opaque)  # from before tool_calls
_SENT_ID = "the id that the provider sent"

_BLOCK_FAMILIES = {
    **dict.fromkeys(("image_url", "file"), OPENAI),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking"), ANTHROPIC),
    **dict.fromkeys(("image", "document", "search_result", "server_tool_use"), ANTHROPIC),
}

PAIRED_ITEMS = (
    *("function_call", "custom_tool_call", "computer_call"),
    *("local_shell_call", "shell_call", "apply_patch_call"),
)
_OUTPUT_ITEMS = tuple(f"{item}_output" for item in PAIRED_ITEMS)
APPROVAL_REQUEST, APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"
ANSWERS = (*_OUTPUT_ITEMS, APPROVAL_RESPONSE)  # items that the caller adds, which end a response
_LONE_ITEMS = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools", "item_reference", "compaction", "compaction_trigger"),
    *("tool_search_call", "tool_search_output", "program", "program_output"),
)


def parse_provider(value: str | None) -> str | None:
    """Return the provider's family name; `openai_responses`, `google` and the like are known."""
    if value is None:
        return None
    name = str(value).lower().replace("-", "_").replace(" ", "_")
    name = _ALIASES.get(name, name)
    if name not in PROVIDERS:
        known = ", ".join(repr(p) for p in PROVIDERS)
        raise ConfigError(f"provider={value!r} is unknown; choose one of {known}, or None")
    return name


def read(message: object, place: str) -> Reading:
    """Understand one message; `MalformedMessage` names what is wrong and where."""
    if not isinstance(message, dict):
        raise _wrong(place, f"a message must be a dict, {_not(message)}")
    role, type_ = message.get("role"), message.get("type")
    if role is not None and not isinstance(role, str):
        raise _wrong(f"{place}.role", f"the role must be a str, not {type(role).__name__}")
    if "parts" in message or (role == "model" and "content" not in message):
        return _read_parts(message, role, place)
    if role is None:
        if isinstance(type_, str) and type_:
            return _read_item(message, type_, place)
        raise _wrong(
            f"{place}.role", "a message needs a role, or a type like the items of responses"
        )
    if role == "tool":
        key = _text(message, "tool_call_id", place, "the id of the call that this answers")
        return Reading(OPENAI, Kind.result, (), (key,))
    if role not in _ROLES:
        if role != "function":
            raise _unknown_role(role, RESPONSES if type_ == "message" else OPENAI, place)
        return _FUNCTION
    if type(message.get("content")) is str and type_ is None and "tool_calls" not in message:
        return _PLAIN[role]
    return _read_turn(message, role, type_, place)


def _read_turn(message: Message, role: str, type_: object, place: str) -> Reading:
    calls = _read_tool_calls(message, place)
    blocks = message.get("content")
    families = {OPENAI} if calls else set()
    if isinstance(blocks, list):
        uses, results = _read_blocks(blocks, role, f"{place}.content", families)
    else:
        uses, results = (), ()
        optional = role == "assistant" and blocks is None
        if not (isinstance(blocks, str) or optional):
            raise _wrong(f"{place}.content", f"the content must be text, {_not(blocks)}")
    if type_ == "message" and ANTHROPIC not in families and "stop_reason" not in message:
        families.add(RESPONSES)
    if len(families) > 1:
        return _OPAQUE
    if ANTHROPIC in families and role == "developer":
        raise _unknown_role(role, ANTHROPIC, place)
    kind = Kind.result if results else _ROLES[role]
    return Reading(next(iter(families), None), kind, calls or uses, results)


def _read_tool_calls(message: Message, place: str) -> tuple[str, ...]:
    calls = message.get("tool_calls")
    if calls is None:
        return ()
    place = f"{place}.tool_calls"
    if not isinstance(calls, list):
        raise _wrong(place, f"tool_calls must be a list, {_not(calls)}")
    keys: list[str] = []
    for i, call in enumerate(calls):
        here = f"{place}[{i}]"
        _add_key(keys, _text(_dict(call, here), "id", here, _SENT_ID), here)
        if call.get("type", "function") == "function":
            function = _dict(call.get("function"), f"{here}.function")
            _text(function, "name", f"{here}.function", "the name of the function")
            if not isinstance(arguments := function.get("arguments"), str):
                why = f"the arguments must be a str of JSON, {_not(arguments)}"
                raise _wrong(f"{here}.function.arguments", why)
    return tuple(keys)


def _read_blocks(
    blocks: list[Any], role: str, place: str, families: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    uses: list[str] = []
    results: list[str] = []
    for i, block in enumerate(blocks):
        here = f"{place}[{i}]"
        type_ = _text(_dict(block, here), "type", here, "the type of the block")
        if family := _BLOCK_FAMILIES.get(type_):
            families.add(family)
        if type_ in ("text", "input_text", "output_text"):
            if not isinstance(text := block.get("text"), str):
                raise _wrong(f"{here}.text", f"the text must be a str, {_not(text)}")
        elif type_ == "tool_use":
            _speaker(role, "assistant", here, type_)
            _add_key(uses, _text(block, "id", here, _SENT_ID), here)
            _text(block, "name", here, "the name of the tool")
        elif type_ == "tool_result":
            _speaker(role, "user", here, type_)
            key = _text(block, "tool_use_id", here, "the id of the call that this answers")
            _add_key(results, key, here, "tool_use_id")
    return tuple(uses), tuple(results)


def _read_item(item: Message, type_: str, place: str) -> Reading:
    if type_ == "reasoning":
        return Reading(RESPONSES, Kind.reasoning)
    if type_ in PAIRED_ITEMS:
        key = _text(item, "call_id", place, "the call_id that the provider sent")
        if type_ == "function_call":
            _text(item, "name", place, "the name of the function")
            if not isinstance(arguments := item.get("arguments"), str):
                why = f"the arguments must be a str of JSON, {_not(arguments)}"
                raise _wrong(f"{place}.arguments", why)
        return Reading(RESPONSES, Kind.model, (key,))
    if type_ in _OUTPUT_ITEMS:
        key = _text(item, "call_id", place, "the call_id of the call that this answers")
        if item.get("output") is None and type_ != "apply_patch_call_output":
            raise _wrong(f"{place}.output", "the output of the call is missing")
        return Reading(RESPONSES, Kind.result, (), (key,))
    if type_ == APPROVAL_REQUEST:
        return Reading(RESPONSES, Kind.model, (_text(item, "id", place, _SENT_ID),))
    if type_ == APPROVAL_RESPONSE:
        key = _text(item, "approval_request_id", place, "the id of the request that this answers")
        if not isinstance(approve := item.get("approve"), bool):
            raise _wrong(f"{place}.approve", f"approve must be True or False, {_not(approve)}")
        return Reading(RESPONSES, Kind.result, (), (key,))
    if type_ == "message":
        raise _wrong(f"{place}.role", "a message item needs a role")
    return Reading(RESPONSES, Kind.model) if type_ in _LONE_ITEMS else _OPAQUE


def _read_parts(message: Message, role: str | None, place: str) -> Reading:
    if "content" not in message and "tool_calls" not in message:
        return _read_gemini(message, role, place)
    if role not in ROLES[GEMINI] and role not in ROLES[OPENAI]:
        raise _unknown_role(role or "", GEMINI, place)
    return _OPAQUE


def _read_gemini(message: Message, role: str | None, place: str) -> Reading:
    if role is not None and role not in ROLES[GEMINI]:
        raise _unknown_role(role, GEMINI, place)
    parts = message.get("parts")
    place = f"{place}.parts"
    if not isinstance(parts, list):
        raise _wrong(place, f"parts must be a list, {_not(parts)}")
    calls: list[str] = []
    results: list[str] = []
    for i, part in enumerate(parts):
        here = f"{place}[{i}]"
        if (call := gemini_part(_dict(part, here), "functionCall")) is not None:
            _speaker(role, "model", here, "functionCall")
            where = f"{here}.functionCall"
            calls.append(_text(_dict(call, where), "name", where, "the name of the function"))
        elif (answer := gemini_part(part, "functionResponse")) is not None:
            where = f"{here}.functionResponse"
            results.append(_text(_dict(answer, where), "name", where, "the name of the function"))
            if not isinstance(response := answer.get("response"), dict):
                raise _wrong(f"{where}.response", f"the response must be a dict, {_not(response)}")
    if results:
        return Reading(GEMINI, Kind.result, (), tuple(results))
    kinds = {"system": Kind.system, "model": Kind.model, "user": Kind.user, None: Kind.user}
    return Reading(GEMINI, kinds.get(role, Kind.opaque), tuple(calls))


def is_linked(message: Message) -> bool:
    """Return True if the API may know by an item's id which reasoning it came with.

    A message that was written by hand as text has no id, and stands alone.
    """
    return "type" in message and ("role" not in message or "id" in message)


def gemini_part(part: Message, name: str) -> Any:
    """Return a part's call or response, in the spelling of the API or of its Python SDK."""
    found = part.get(name)
    if found is None:
        found = part.get("function_call" if name == "functionCall" else "function_response")
    return found


def _unknown_role(role: str, provider: str, place: str) -> MalformedMessage:
    *others, last = ROLES[provider]
    known = f"{', '.join(others)} and {last}"
    return _wrong(f"{place}.role", f"the role {role!r} is unknown; {provider} accepts {known}")


def _speaker(role: object, wanted: str, place: str, what: str) -> None:
    if role != wanted:
        raise _wrong(place, f"a {what} belongs to the role {wanted!r}, not {role!r}")


def _add_key(keys: list[str], key: str, place: str, name: str = "id") -> None:
    if key in keys:
        raise _wrong(f"{place}.{name}", f"the id {key!r} appears twice in one message")
    keys.append(key)


def _dict(value: object, place: str) -> Message:
    if not isinstance(value, dict):
        raise _wrong(place, f"this must be a dict, {_not(value)}")
    return value


def _text(value: Message, name: str, place: str, what: str) -> str:
    found = value.get(name)
    if not isinstance(found, str) or not found:
        raise _wrong(f"{place}.{name}", f"{name} must be {what}, {_not(found)}")
    return found


def _not(value: object) -> str:
    if value is None:
        return "and is missing"
    if hasattr(value, "model_dump"):
        return f"not {type(value).__name__}; append its model_dump()"
    return "and is empty" if value in ("", [], {}) else f"not {type(value).__name__}"


def _wrong(place: str, why: str) -> MalformedMessage:
    return MalformedMessage(why, place=place)
