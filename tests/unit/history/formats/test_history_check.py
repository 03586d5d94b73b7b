"""What an API would reject, and why."""

from __future__ import annotations

import pytest

from floodline.history import Problem, check, rules
from history_messages import SHAPES, Anthropic, Gemini, OpenAI, Responses

openai, responses, anthropic, gemini = OpenAI(), Responses(), Anthropic(), Gemini()
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)


def places(messages, provider=None, **options):
    return [problem.place for problem in check(messages, provider, **options)]


@every_shape
def test_a_whole_conversation_passes(shape):
    messages = [
        shape.system("be brief"),
        shape.user("go"),
        *shape.calls("hm", ["a", "b"], reasoning=True),
        *shape.results("1", ["b"]),
        *shape.results("2", ["a"], nested=True),
        *shape.says("done"),
    ]
    assert check(messages) == []
    assert check(messages, shape.provider, in_flight=False) == []


@every_shape
def test_a_result_without_its_call_is_rejected(shape):
    messages = [shape.user("go"), *shape.results("1", ["a"])]
    (problem,) = check(messages)
    assert problem == Problem("$[1]", "a result for 'a', which was not called before it")
    assert str(problem) == "a result for 'a', which was not called before it: $[1]"


@every_shape
def test_a_call_without_its_result_is_rejected_after_the_next_user_turn(shape):
    call = shape.calls("hm", ["a"])
    messages = [shape.user("go"), *call, shape.user("well?")]
    assert places(messages) == ["$[1]"]
    assert "no result" in check(messages)[0].why


@every_shape
def test_a_call_in_flight_passes_unless_it_is_to_be_sent(shape):
    messages = [shape.user("go"), *shape.calls("hm", ["a", "b"]), *shape.results("1", ["b"])]
    assert check(messages) == []
    assert places(messages, in_flight=False) == ["$[1]"]


@every_shape
def test_a_second_result_for_one_call_is_rejected(shape):
    result = shape.results("1", ["a"])
    messages = [shape.user("go"), *shape.calls("hm", ["a"]), *result, *result]
    assert places(messages) == ["$[3]"]


@pytest.mark.parametrize("shape", [openai, anthropic, gemini], ids=lambda s: s.provider)
def test_a_result_must_stand_right_after_its_call(shape):
    messages = [shape.user("go"), *shape.calls("hm", ["a"]), shape.user("x")]
    messages += shape.results("1", ["a"])
    assert places(messages) == ["$[3]"]
    assert "does not come right after its call" in check(messages)[0].why


def test_openai_takes_no_system_message_between_call_and_result():
    messages = [openai.user("go"), *openai.calls("hm", ["a"]), openai.system("x")]
    assert places([*messages, *openai.results("1", ["a"])]) == ["$[3]"]


def test_responses_may_give_outputs_later_in_the_turn():
    messages = [responses.user("go"), *responses.calls("hm", ["a"]), *responses.says("wait")]
    assert check([*messages, *responses.results("1", ["a"])]) == []


def test_reasoning_must_be_followed_by_what_it_led_to():
    reasoning = responses.calls("hm", [], reasoning=True)
    assert places([responses.user("go"), *reasoning, responses.user("x")]) == ["$[1]"]
    assert check([responses.user("go"), *reasoning]) == []
    assert places([responses.user("go"), *reasoning], in_flight=False) == ["$[1]"]


@pytest.mark.parametrize("shape", [anthropic, gemini], ids=lambda s: s.provider)
def test_the_first_message_must_be_the_users(shape):
    assert places([*shape.calls("hi", ["a"]), *shape.results("1", ["a"])]) == ["$[0]"]
    assert check([shape.system("x"), shape.user("hi")], shape.provider) == []


def test_calls_of_neighbouring_messages_of_the_model_are_one_turn_for_anthropic():
    messages = [anthropic.user("go"), *anthropic.calls("1", ["a"]), *anthropic.calls("2", ["b"])]
    assert check([*messages, *anthropic.results("x", ["a", "b"])]) == []


def test_anthropic_wants_results_before_text():
    (message,) = anthropic.results("1", ["a"])
    message["content"].insert(0, {"type": "text", "text": "here"})
    messages = [anthropic.user("go"), *anthropic.calls("hm", ["a"]), message]
    assert places(messages) == ["$[2].content"]


def test_a_malformed_message_is_reported_with_its_place():
    assert places([openai.user("go"), {"role": "tool"}, 5]) == ["$[1].tool_call_id", "$[2]"]


def test_messages_of_another_provider_are_rejected_if_one_is_named():
    mixed = [openai.user("go"), *anthropic.calls("hm", ["a"]), *anthropic.results("1", ["a"])]
    assert check(mixed) == []
    assert places(mixed, "openai") == ["$[1]", "$[2]"]
    assert places([openai.user("go")], "gemini") == ["$[0]"]


def test_opaque_messages_pass():
    assert check([openai.user("go"), {"type": "of next year"}], "gemini") == [
        Problem("$[0]", "gemini does not accept messages of another provider")
    ]
    assert check([{"type": "of next year"}], "openai") == []


def test_an_approval_response_needs_its_request():
    messages = [responses.user("go"), responses.approves("mcpr_1")]
    (problem,) = check(messages)
    assert problem == Problem("$[1]", "a response to 'mcpr_1', which was not requested before it")
    assert problem.rule == "approval"
    assert (
        check([responses.user("go"), responses.asks("mcpr_1"), responses.approves("mcpr_1")]) == []
    )


def test_an_approval_request_needs_a_response_before_the_next_turn():
    messages = [responses.user("go"), responses.asks("mcpr_1")]
    assert check(messages) == []
    (problem,) = check(messages, in_flight=False)
    assert problem == Problem("$[1]", "the approval request 'mcpr_1' has no response after it")
    assert places([*messages, responses.user("well?")]) == ["$[1]"]
    late = [*messages, responses.user("well?"), responses.approves("mcpr_1")]
    (problem,) = check(late)
    assert problem.why == "the response to 'mcpr_1' comes after the next user message"


def test_an_item_that_lost_its_reasoning_is_found_beside_the_original():
    (thought,) = responses.calls("hm", [], reasoning=True)
    call, searches = responses.calls("hm", ["a"]), [responses.hosted(), responses.hosted()]
    whole = [responses.user("go"), thought, *searches, *call, *responses.results("1", ["a"])]
    assert check(whole, original=whole) == []
    parted = [whole[0], *call, whole[-1]]
    assert check(parted) == []
    (problem,) = check(parted, original=whole)
    assert (problem.place, problem.rule) == ("$[1]", "reasoning")
    assert "function_call was separated from the reasoning" in problem.why
    assert places([whole[0], *searches], original=whole) == ["$[1]", "$[2]"]


def test_an_item_belongs_to_the_last_reasoning_before_it_and_to_all_that_stand_together():
    thoughts = [{"type": "reasoning", "id": f"rs_{n}", "summary": []} for n in range(3)]
    searches = [responses.hosted() | {"id": f"ws_{n}"} for n in range(2)]
    system = responses.system("x")
    whole = [responses.user("go"), thoughts[0], searches[0], thoughts[1], system, thoughts[2]]
    whole.append(searches[1])
    assert check([whole[0], *whole[3:]], "responses", original=whole) == []
    parted = [whole[0], thoughts[2], searches[1]]
    assert places(parted, original=whole) == ["$[2]"]


@every_shape
def test_every_problem_names_a_rule_of_its_provider(shape):
    known = {rule.name for rule in rules(shape.provider)}
    thought = {"type": "reasoning", "summary": []}
    lists = [
        [shape.user("go"), *shape.results("1", ["a"])],
        [shape.user("go"), *shape.calls("hm", ["a"]), shape.user("well?")],
        [shape.user("go"), {"role": 7}, {"role": "tool"}, {"parts": 5}],
        [*shape.says("hi"), shape.user("go")],
        [{"role": "user", "content": "x", "parts": []}],
        [shape.user("go"), thought] if shape.provider == "responses" else [],
    ]
    if shape.provider == "anthropic":
        (message,) = anthropic.results("1", ["a"])
        message["content"].insert(0, {"type": "text", "text": "here"})
        lists.append([shape.user("go"), *shape.calls("hm", ["a"]), message])
    if shape.provider == "responses":
        lists.append([shape.user("go"), shape.approves("x")])
    found = {
        problem.rule for one in lists for problem in check(one, shape.provider, in_flight=False)
    }
    assert found <= known
    only_beside_the_original = {"reasoning"} & known
    assert known - found <= only_beside_the_original | {"provider"}


def test_rules_say_where_they_come_from():
    assert {rule.provider for rule in rules()} == {"openai", "responses", "anthropic", "gemini"}
    assert rules("claude") == rules("anthropic")
    for rule in rules():
        assert rule.text
        assert rule.source.startswith("https://")


def test_messages_without_a_role_and_with_one_that_nobody_has_are_reported():
    messages = [openai.user("go"), {"content": "hm"}, {"role": "critic", "content": "hm"}]
    problems = check(messages)
    assert [(p.place, p.rule) for p in problems] == [("$[1].role", "role"), ("$[2].role", "role")]
    assert str(problems[0]) == (
        "a message needs a role, or a type like the items of responses: $[1].role"
    )
    assert str(problems[1]) == (
        "the role 'critic' is unknown; openai accepts system, developer, user, assistant, tool and "
        "function: $[2].role"
    )


def test_a_role_that_another_provider_has_is_reported():
    function = {"role": "function", "name": "f", "content": "42"}
    assert check([openai.user("go"), function], "openai") == []
    for provider in ("responses", "anthropic", "gemini"):
        assert places([function], provider) == ["$[0]"]
    assert (
        "gemini accepts system, user, model" in check([{"role": "assistant", "parts": []}])[0].why
    )
