"""A worker that keeps conversations, queues and streams for its clients, before and after."""
