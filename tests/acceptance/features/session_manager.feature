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

  Scenario: New work cancels the clean-up
    Given a session manager that waits 5 minutes after the last work
    And "alice" has said "hello"
    When "alice" is retired
    And 4 minutes pass in the worker
    And "alice" says "one more thing"
    And 4 minutes pass in the worker
    Then "alice" is in memory
    And "alice" was opened once

  Scenario: A running stream is not interrupted, and an abandoned one is let go
    Given the example worker with a stream for "alice" that has begun
    When 30 other sessions ask something
    Then the stream for "alice" continues
    Given the example worker with a stream for "bob" that has begun
    When the client of "bob" goes away
    And 30 other sessions ask something
    Then "bob" has left the example worker

  Scenario: Work that waits is not lost when its session leaves memory
    Given the example worker with work waiting for "alice"
    When 30 other sessions ask something
    Then "alice" has left the example worker
    And the work of "alice" is done when asked for

  Scenario: Idle time counts from the last activity
    Given "alice" has said "hello"
    When 29 minutes pass in the worker
    And "alice" says "still here"
    And 29 minutes pass in the worker
    Then "alice" is in memory
    And "alice" was opened once
