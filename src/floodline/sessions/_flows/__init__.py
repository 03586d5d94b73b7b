"""What the table asks for, step by step: opening, saving, leaving, upkeep."""
