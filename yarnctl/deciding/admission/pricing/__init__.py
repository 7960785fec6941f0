"""A price for each deadline: when work can be done, what that costs, and who pays.

Law: as of all admission: values in, values out. ``timeline`` knows no price, ``prices`` no account.
"""
