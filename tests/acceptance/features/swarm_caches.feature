Feature: The limits of a swarm's caches are really enforced
  Five limits were announced as done, and four of them were not in the code.
  These scenarios drive examples/swarm_caches/bounded.py.

  Scenario Outline: A cache keeps its limit, whatever comes
    Given the <cache> of the swarm
    When <many> new entries are put into it
    Then it never held more than <limit>
    And its last entry is still there

    Examples:
      | cache           | limit | many |
      | analytics cache | 1000  | 3000 |
      | status cache    | 20    | 300  |
      | cookie cache    | 100   | 500  |

  Scenario: The analytics cache keeps what is read
    Given the analytics cache of the swarm
    When entry "popular" is put, and read again after every 10 of 2000 new ones
    Then entry "popular" is there

  Scenario: The cookie cache does not care what is read
    Given the cookie cache of the swarm
    When entry "popular" is put, and read again after every 10 of 2000 new ones
    Then entry "popular" is gone

  Scenario: The batch is really flushed at 50
    Given the message batch of the swarm
    When 120 messages are added
    Then 100 messages were sent, in batches of 50
    And 20 messages wait
    When the batch is flushed
    Then 120 messages were sent, and none is missing

  Scenario: The history of metrics is a rolling window
    Given the metrics history of the swarm
    When 5000 figures are added
    Then it holds the newest 1000

  Scenario: An announcement is not a fix
    When the announced fixes are verified
    Then 4 are refuted and 1 is proved
    When the fixes on floodline are verified
    Then 0 are refuted and 5 are proved
