"""FLD2xx: what looks like a bound and is not one."""
