"""A price for each deadline: when work can be done, what that costs, and which account pays.

Law: as of all admission: values in, values out. ``timeline`` has no prices, ``prices`` no accounts.
"""
