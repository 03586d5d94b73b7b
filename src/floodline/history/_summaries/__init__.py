"""Rolling summaries of what is cut, and the threads that write them."""
