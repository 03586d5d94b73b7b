"""The message formats of the providers: reading, checking, shortening and closing them."""
