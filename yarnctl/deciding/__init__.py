"""Deciding: observation in, decision and actions out. Nothing here touches the world."""
