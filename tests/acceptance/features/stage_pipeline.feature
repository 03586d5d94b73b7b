Feature: A pipeline of stages runs for thousands of turns in little memory
  Snapshots, output bags, conversations and events used to pile up, and so did the samples of the
  tracker that was to find out. These scenarios drive examples/stage_pipeline/bounded.py.

  Background:
    Given a pipeline on floodline that has taken 50 turns

  Scenario: A thousand turns stay under 5 MB
    When it takes 1000 turns
    Then memory grew by less than 5 MB
    And it keeps at most 1030 messages, outputs and events

  Scenario: Cycles do not hang it
    When it takes 1 turn whose context refers to itself
    Then the output of that turn is there
    And measuring it ends

  Scenario: 5,000 events do not overflow
    When 5000 events come at once
    Then the newest 1000 events are there
    And no others are kept

  Scenario: The tracker forgets old samples, and knows every stage
    When it takes 400 turns
    Then the tracker has at most 200 samples
    And the tracker knows the stages "load" and "rank"

  Scenario: A stage that fails leaves the pipeline as it was
    When a turn fails
    And it takes 1 turn
    Then the output of that turn is there

  Scenario: What is cut from the conversation is summarised
    When it takes 100 turns
    Then the conversation has at most 20 messages
    And the conversation has a summary
