"""How a history of the Agent Framework lies in a store."""
