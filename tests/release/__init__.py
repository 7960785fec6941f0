"""What a release is made of: archives, the unit, and its service manager, which the tests play."""
