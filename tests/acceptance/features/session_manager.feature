Feature: A worker service retires conversations without losing an answer
  Sessions used to be deleted by an HTTP call or at shutdown only. A lifetime that counted from the
  start killed busy ones, retiring lost answers in flight, and only the copy that was sent was trimmed.

  Background:
    Given a session manager that keeps idle conversations for 30 minutes

  Scenario: A conversation that nobody deletes leaves memory and comes back with its history
    Given "alice" has said "hello"
    When 31 minutes pass in the worker
    Then "alice" is out of memory
    And "alice" remembers "hello"

  Scenario: An answer that takes longer than the idle time is not lost
    Given "alice" waits for an answer to "a long question"
    When 90 minutes pass in the worker
    And the answer for "alice" arrives
    Then "alice" remembers "answer to a long question"
    And "alice" was opened once

  Scenario: Retiring a conversation while an answer is in flight waits for the answer
    Given "alice" waits for an answer to "a question"
    When "alice" is retired
    And the answer for "alice" arrives
    Then "alice" is out of memory
    And "alice" left the worker because of completed
    And "alice" remembers "answer to a question"

  Scenario: Deleting a conversation while an answer is in flight is final
    Given "alice" has said "hello"
    And "alice" waits for an answer to "a question"
    When "alice" is deleted
    And the answer for "alice" arrives
    Then the answer for "alice" is refused
    And "alice" left the worker because of closed
    And nobody remembers "alice"

  Scenario: A request that was cancelled leaves no hold behind, and what it did is kept
    Given "alice" waits for an answer to "a question"
    When the request is cancelled
    And "alice" says "are you there?"
    Then "alice" remembers "a question"
    And "alice" remembers "are you there?"

  Scenario: Many requests at once open a conversation once, and none is lost
    When 40 requests for "alice" come at once
    Then "alice" was opened once
    And "alice" has 40 turns

  Scenario: The stored history is trimmed, not only the copy that is sent
    When "alice" says 500 things
    Then "alice" keeps at most 50 messages
    And "alice" remembers "thing 499"

  Scenario: At shutdown everything is saved
    Given "alice" has said "hello"
    When the worker is shut down
    Then "alice" left the worker because of shutdown
    And the store has 1 conversation
