"""What a client may append: the item types of the API, checked and completed."""
