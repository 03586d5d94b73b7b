Feature: Another project tests its sessions with the steps of floodline
  The program under test is examples/plan_service/bounded.py, which keeps at most 50 sessions.

  Scenario: Abandoned sessions do not pile up
    When I open 500 sessions and abandon them
    Then the live count stays at or below 50

  Scenario: Closed sessions leave at once
    When I open 20 sessions and close them
    Then the live count stays at or below 1
