"""What the stores on a server share: addresses, times, and batches over one connection."""
