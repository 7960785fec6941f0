"""Long campaigns: many seeded runs of whole live clusters, each compared with what must be."""
