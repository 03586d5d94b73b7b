"""How conversations are kept: every item a row of its session, the window a `Conversation`."""
