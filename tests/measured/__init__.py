"""What was measured, as data: campaigns, their index, the tables and quoted figures taken from them."""
