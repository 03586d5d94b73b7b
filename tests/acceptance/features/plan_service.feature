Feature: PlanService keeps a memory service for each session, and only as long as it is needed
  A plan session is used by three code paths and is over when somebody calls clear_memory.
  Exceptions, time-outs and forgetful callers see to it that often nobody does.

  Background:
    Given a plan service that keeps idle sessions for 30 minutes and at most 50 of them

  Scenario Outline: An abandoned session does not stay
    Given a session "alice" that was abandoned by <cause>
    When 29 minutes pass
    Then "alice" is live
    When 2 minutes pass
    Then "alice" is not live
    And "alice" left exactly once, because of idle
    And no memory service is left in the process

    Examples:
      | cause            |
      | an exception     |
      | a time-out       |
      | a forgotten call |

  Scenario: The explicit clear is the canonical path
    Given a session "alice" with a plan
    When "alice" is cleared
    Then "alice" is not live
    And "alice" left exactly once, because of closed
    And no memory service is left in the process

  Scenario: Clearing is idempotent
    Given a session "alice" with a plan
    When "alice" is cleared
    And "alice" is cleared
    And "alice" is cleared
    Then "alice" left exactly once, because of closed

  Scenario: Clearing what never existed is harmless
    When "nobody" is cleared
    Then 0 sessions are live
    And "nobody" never left

  Scenario: A cleared session starts anew under the same id
    Given a session "alice" with a plan
    When "alice" is cleared
    And a plan is made for "alice"
    Then "alice" has 1 note

  Scenario: Normal use is as before
    When a plan is made for "alice"
    And "alice" runs a step
    And "alice" is reviewed
    And a plan is made for "bob"
    Then "alice" has 3 notes
    And "bob" has 1 note
    And 2 sessions are live

  Scenario: A session lives on between two calls, though nobody refers to it
    When a plan is made for "alice"
    And the garbage collector runs
    And "alice" runs a step
    Then "alice" has 2 notes

  Scenario: Idle time counts from the end of the last use
    When a plan is made for "alice"
    And 20 minutes pass
    And "alice" runs a step
    And 20 minutes pass
    Then "alice" is live
    And "alice" has 2 notes

  Scenario: A step that takes hours keeps its session
    When "alice" runs a step that takes 300 minutes
    Then "alice" is live
    And "alice" has 1 note

  Scenario: A clear while a step is running waits for its end
    When "alice" is cleared in the middle of a step
    Then "alice" is not live
    And "alice" left exactly once, because of closed

  Scenario: The size is bounded in a long run
    When 5000 sessions make a plan each and are abandoned
    Then never were more than 50 sessions live
    And 4950 sessions left because of count
    And nothing is kept for sessions that left

  Scenario: Sweep, cap and clear run the same finalizer
    Given a session "idle" with a plan
    When 31 minutes pass
    And a plan is made for "cleared"
    And "cleared" is cleared
    And a plan is made for "pushed-out"
    And 50 sessions make a plan each and are abandoned
    Then "idle" left exactly once, because of idle
    And "cleared" left exactly once, because of closed
    And "pushed-out" left exactly once, because of count

  Scenario: A service that cannot be closed stops nothing
    Given a session "broken" whose service cannot be closed
    And a session "alice" with a plan
    When 31 minutes pass
    Then 0 sessions are live
    And "broken" left exactly once, because of idle
    And "alice" left exactly once, because of idle
    And 1 failure was counted

  Scenario: The locks of the sessions do not leak either
    When 500 sessions make a plan each and are abandoned
    Then there are as many locks as live sessions

  Scenario: At the end of the service everything is closed
    Given a session "alice" with a plan
    When the plan service is shut down
    Then "alice" left exactly once, because of shutdown
    And no memory service is left in the process
