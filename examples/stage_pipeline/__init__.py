"""A pipeline of stages that runs for thousands of turns, before and after."""
