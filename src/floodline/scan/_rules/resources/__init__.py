"""FLD5xx: what has to be closed or limited: queues, handles, series, clients."""
