"""What can be measured about this process, and the limit the kernel sets for it."""
