"""Five caches of a swarm of agents with five announced limits, before and after."""
