"""`floodline top`: the command, and its keyboard."""
