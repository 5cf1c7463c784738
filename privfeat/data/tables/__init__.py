"""Tables in files: each value is read as it stands, whatever other records hold."""
