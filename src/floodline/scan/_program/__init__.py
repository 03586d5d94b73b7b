"""All facts linked: names, calls and containers of the whole program."""
