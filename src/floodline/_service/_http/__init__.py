"""How conversations are asked for: requests, answers, and who may ask."""
