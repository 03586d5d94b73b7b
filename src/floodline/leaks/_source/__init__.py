"""What source code says about a container: who assigns, feeds and limits it."""
