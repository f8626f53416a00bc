"""A folder of photos, as a stand-in for your own."""
