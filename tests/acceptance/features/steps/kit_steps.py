"""What a project writes to have the steps of floodline."""

from floodline.testing.behave_steps import *  # noqa: F403  # registers the steps
