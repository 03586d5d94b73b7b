"""A host whose plugins keep maps by session and wait for a close event, before and after."""
