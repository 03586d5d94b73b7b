"""Messages of the four providers, as their APIs define them, for the tests of histories."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]


class OpenAI:
    provider = "openai"

    def system(self, text: str) -> Message:
        return {"role": "system", "content": text}

    def user(self, text: str) -> Message:
        return {"role": "user", "content": text}

    def says(self, text: str) -> list[Message]:
        return [{"role": "assistant", "content": text}]

    def calls(self, text: str, ids: list[str], *, reasoning: bool = False) -> list[Message]:
        tool_calls = [
            {"id": key, "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
            for key in ids
        ]
        return [{"role": "assistant", "content": text, "tool_calls": tool_calls}]

    def results(self, text: str, ids: list[str], *, nested: bool = False) -> list[Message]:
        content = [{"type": "text", "text": text}] if nested else text
        return [{"role": "tool", "tool_call_id": key, "content": content} for key in ids]


class Responses(OpenAI):
    provider = "responses"

    def user(self, text: str) -> Message:
        return {"role": "user", "content": [{"type": "input_text", "text": text}]}

    def says(self, text: str) -> list[Message]:
        blocks = [{"type": "output_text", "text": text}]
        return [{"type": "message", "role": "assistant", "content": blocks}]

    def calls(self, text: str, ids: list[str], *, reasoning: bool = False) -> list[Message]:
        items: list[Message] = []
        if reasoning:
            items.append({"type": "reasoning", "summary": [], "encrypted_content": text})
        call = {"type": "function_call", "name": "look", "arguments": f'"{text}"'}
        return items + [{**call, "call_id": key} for key in ids]

    def results(self, text: str, ids: list[str], *, nested: bool = False) -> list[Message]:
        output = [{"type": "input_text", "text": text}] if nested else text
        return [{"type": "function_call_output", "call_id": key, "output": output} for key in ids]

    def hosted(self, kind: str = "web_search_call") -> Message:
        return {"type": kind, "status": "completed"}

    def asks(self, key: str) -> Message:
        wanted = {"type": "mcp_approval_request", "id": key, "server_label": "wiki"}
        return {**wanted, "name": "look", "arguments": "{}"}

    def approves(self, key: str, approve: bool = True) -> Message:
        answer = {"type": "mcp_approval_response", "approval_request_id": key}
        return {**answer, "approve": approve}


HOSTED = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools", "an_item_of_next_year"),
)


class Anthropic(OpenAI):
    provider = "anthropic"

    def says(self, text: str) -> list[Message]:
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]

    def calls(self, text: str, ids: list[str], *, reasoning: bool = False) -> list[Message]:
        blocks: list[Message] = []
        if reasoning:
            blocks.append({"type": "thinking", "thinking": text, "signature": "s"})
        blocks.append({"type": "text", "text": text})
        blocks += [{"type": "tool_use", "id": key, "name": "look", "input": {}} for key in ids]
        return [{"role": "assistant", "content": blocks}]

    def results(self, text: str, ids: list[str], *, nested: bool = False) -> list[Message]:
        content = [{"type": "text", "text": text}] if nested else text
        blocks = [{"type": "tool_result", "tool_use_id": key, "content": content} for key in ids]
        return [{"role": "user", "content": blocks}] if blocks else []


class Gemini(OpenAI):
    provider = "gemini"

    def system(self, text: str) -> Message:
        return {"role": "system", "parts": [{"text": text}]}

    def user(self, text: str) -> Message:
        return {"role": "user", "parts": [{"text": text}]}

    def says(self, text: str) -> list[Message]:
        return [{"role": "model", "parts": [{"text": text}]}]

    def calls(self, text: str, ids: list[str], *, reasoning: bool = False) -> list[Message]:
        parts: list[Message] = [{"text": text}]
        if reasoning:
            parts.append({"text": text, "thought": True})
        parts += [{"functionCall": {"name": key, "args": {}}} for key in ids]
        return [{"role": "model", "parts": parts}]

    def results(self, text: str, ids: list[str], *, nested: bool = False) -> list[Message]:
        response = {"rows": [{"text": text}]} if nested else {"text": text}
        parts = [{"functionResponse": {"name": key, "response": response}} for key in ids]
        return [{"role": "user", "parts": parts}] if parts else []


SHAPES = [OpenAI(), Responses(), Anthropic(), Gemini()]
