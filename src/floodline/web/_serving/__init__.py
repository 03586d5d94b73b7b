"""`floodline serve` as processes: what listens, forks, drains and logs around the service."""
