"""The rules that `check` applies for each provider, and their sources.

A rule is here because a provider documents it or answers 400 when it is broken; in the latter case
the source quotes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodline.history._formats.shapes import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    RESPONSES,
    parse_provider,
)


@dataclass(slots=True, frozen=True)
class Rule:
    """One thing that a provider insists on; `name` is the `rule` of the problems it finds."""

    provider: str
    name: str
    text: str
    source: str


_CHAT = "https://platform.openai.com/docs/api-reference/chat/create"
_INPUT = "https://platform.openai.com/docs/api-reference/responses/create#responses-create-input"
_REASONING = "https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context"
_APPROVALS = "https://platform.openai.com/docs/guides/tools-connectors-mcp#approvals"
_MESSAGES = "https://docs.claude.com/en/api/messages"
_TOOLS = "https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
_CONTENTS = "https://ai.google.dev/api/caching#Content"
_FUNCTIONS = "https://ai.google.dev/gemini-api/docs/function-calling"

RULES = (
    Rule(
        OPENAI,
        "shape",
        "fields that pair or carry messages are present and of the right type",
        _CHAT,
    ),
    Rule(
        OPENAI,
        "role",
        "the role is system, developer, user, assistant, tool or function",
        _CHAT,
    ),
    Rule(
        OPENAI,
        "call",
        "tool messages for all tool_calls come right after them",
        f"{_CHAT}; 400: an assistant message with 'tool_calls' must be followed by tool messages "
        "responding to each 'tool_call_id'",
    ),
    Rule(
        OPENAI,
        "result",
        "a tool message answers a call right before it",
        f"{_CHAT}; 400: messages with role 'tool' must be a response to a preceding message with "
        "'tool_calls'",
    ),
    Rule(OPENAI, "provider", "no messages in the shape of another provider", _CHAT),
    Rule(
        RESPONSES,
        "shape",
        "fields that pair or carry items are present and of the right type",
        _INPUT,
    ),
    Rule(
        RESPONSES,
        "role",
        "an item has a type, a message the role system, developer, user or assistant",
        _INPUT,
    ),
    Rule(
        RESPONSES,
        "call",
        "every call has its output before the next user message",
        f"{_INPUT}; 400: No tool output found for function call call_…",
    ),
    Rule(
        RESPONSES,
        "result",
        "an output follows its call",
        f"{_INPUT}; 400: No tool call found for function call output with call_id call_…",
    ),
    Rule(
        RESPONSES,
        "following",
        "reasoning is followed by an item of the model",
        f"{_REASONING}; 400: Item 'rs_…' of type 'reasoning' was provided without its required "
        "following item",
    ),
    Rule(
        RESPONSES,
        "reasoning",
        "messages, calls and hosted items stay with the reasoning before them (checked only if "
        "`original` is given)",
        f"{_REASONING}; 400: Item 'fc_…' of type 'function_call' (or message, web_search_call …) "
        "was provided without its required 'reasoning' item: 'rs_…'",
    ),
    Rule(
        RESPONSES,
        "approval",
        "an mcp_approval_response follows its mcp_approval_request, and every request has one "
        "before the next user message",
        f"{_APPROVALS}; 400: The following MCP approval requests do not have an approval: mcpr_…",
    ),
    Rule(RESPONSES, "provider", "no messages in the shape of another provider", _INPUT),
    Rule(
        ANTHROPIC,
        "shape",
        "fields that pair or carry blocks are present and of the right type",
        _MESSAGES,
    ),
    Rule(
        ANTHROPIC,
        "role",
        "the role is user or assistant; `window` leaves out system messages, which go outside the "
        "list",
        _MESSAGES,
    ),
    Rule(ANTHROPIC, "first", "the first message is from the user", _MESSAGES),
    Rule(
        ANTHROPIC,
        "call",
        "tool_result blocks for all tool_use blocks are in the next message",
        f"{_TOOLS}; 400: tool_use ids were found without tool_result blocks immediately after",
    ),
    Rule(
        ANTHROPIC,
        "result",
        "a tool_result answers a tool_use of the message before it",
        f"{_TOOLS}; 400: unexpected tool_use_id found in tool_result blocks",
    ),
    Rule(ANTHROPIC, "order", "tool_result blocks come before all others", _TOOLS),
    Rule(ANTHROPIC, "provider", "no messages in the shape of another provider", _MESSAGES),
    Rule(
        GEMINI,
        "shape",
        "fields that pair or carry parts are present and of the right type",
        _CONTENTS,
    ),
    Rule(
        GEMINI,
        "role",
        "the role is user or model (for responses also function or tool), or is left out; "
        "`window` leaves out system messages, which go outside the list",
        f"{_CONTENTS}; 400: Please use a valid role: user, model.",
    ),
    Rule(
        GEMINI,
        "first",
        "the first message is from the user",
        f"{_FUNCTIONS}; 400: Please ensure that function call turn comes immediately after a user "
        "turn or after a function response turn.",
    ),
    Rule(
        GEMINI,
        "call",
        "responses for all function calls are in the next message",
        f"{_FUNCTIONS}; 400: Please ensure that the number of function response parts is equal to "
        "the number of function call parts of the function call turn.",
    ),
    Rule(
        GEMINI,
        "result",
        "a function response answers a call of the message before it",
        f"{_FUNCTIONS}; 400: Please ensure that function response turn comes immediately after a "
        "function call turn.",
    ),
    Rule(GEMINI, "provider", "no messages in the shape of another provider", _CONTENTS),
)


def rules(provider: str | None = None) -> tuple[Rule, ...]:
    """Return the rules that `check` applies for a provider, or all of them."""
    family = parse_provider(provider)
    return tuple(rule for rule in RULES if family in (None, rule.provider))
