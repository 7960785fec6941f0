"""A price for each deadline: when work can be done, what that costs, and which account pays."""
