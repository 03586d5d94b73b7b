Feature: A plugin host clears what it keeps for a session, whatever happens to the close event
  The host keeps 35 maps keyed by session. They should be cleared by a session.deleted event,
  which fires on most days, sometimes twice, sometimes late, and on some machines never.

  Background:
    Given a plugin host that keeps idle sessions for 30 minutes and at most 20 of them

  Scenario: The event clears all maps at once
    Given "alice" has worked
    When the event for "alice" fires
    Then no map has an entry for "alice"
    And "alice" was finalized once

  Scenario: The event never fires
    Given "alice" has worked
    When 31 minutes pass in the host
    Then no map has an entry for "alice"
    And "alice" was finalized once

  Scenario: The event fires twice
    Given "alice" has worked
    When the event for "alice" fires
    And the event for "alice" fires
    Then no map has an entry for "alice"
    And "alice" was finalized once

  Scenario: The event fires late, after the session has left
    Given "alice" has worked
    When 31 minutes pass in the host
    And the event for "alice" fires
    Then no map has an entry for "alice"
    And "alice" was finalized once

  Scenario: The event fires before the session began
    When the event for "alice" fires
    And "alice" works
    Then all maps have an entry for "alice"
    And "alice" was finalized 0 times

  Scenario: Work that comes after the end brings no session back to life
    Given "alice" has worked
    When the event for "alice" fires
    And late work for "alice" arrives
    Then the late work is refused
    And no map has an entry for "alice"

  Scenario: With a tombstone even new work is refused for a while
    Given the host remembers closed sessions for 10 minutes
    And "alice" has worked
    When the event for "alice" fires
    Then work for "alice" is refused
    When 11 minutes pass in the host
    And "alice" works
    Then all maps have an entry for "alice"

  Scenario: A task that is running is not evicted
    When "alice" works for 45 minutes while others come and go
    Then all maps have an entry for "alice"
    And "alice" was finalized 0 times

  Scenario: An old session that is in use again and again stays
    Given "alice" has worked
    When "alice" works every 10 minutes for 5 hours
    Then "alice" has done 31 tasks
    And "alice" was finalized 0 times

  Scenario: The maps are bounded in a long run without a single event
    When 2000 sessions work and no event fires
    Then the maps never had more than 20 sessions in them
    And each session that left was finalized once

  Scenario: With a store, a session that was pushed out comes back as it was
    Given the host has a store
    And "alice" has worked
    And "alice" has worked
    When 100 sessions work and no event fires
    Then no map has an entry for "alice"
    When "alice" works
    Then "alice" has done 3 tasks

  Scenario: With a store, the event still means the end
    Given the host has a store
    And "alice" has worked
    When the event for "alice" fires
    And late work for "alice" arrives
    Then the late work is refused

  Scenario: When the host ends, all is cleared
    Given "alice" has worked
    And "bob" has worked
    When the host ends
    Then the maps are empty
    And "alice" was finalized once
    And "bob" was finalized once

  Scenario: Memory is flat after 20 and more rounds with an event that is often lost
    Given the example host with an event bus that loses 3 of 4 events
    When 20 sessions work in each of 25 rounds
    Then after round 5 the host never held more entries than after it
