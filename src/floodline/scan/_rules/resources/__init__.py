"""FLD5xx: what has to be closed or limited: queues, handles, time series, clients."""
